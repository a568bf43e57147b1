//! Which conversation a turn continues, and what the model gets to see there.

use domain::actions::{Action, OccurrenceState};
use domain::agents::{Agent, AgentStatus};
use domain::chats::Chat;
use domain::chats::Thread;
use domain::chats::conversation::title_of;
use domain::ids::{ActionId, AgentId, ChatId, Owner, ProjectId};
use domain::memory::Source;
use domain::memory::recall::Recalled;
use domain::models::SystemBlock;
use domain::projects::turn::ThemeTurn;
use domain::prompts::{self, RunInView};
use domain::runs::Run;
use domain::tools::Setting;
use futures::future::try_join_all;
use jiff::tz::TimeZone;

use crate::blobs::BlobKey;
use crate::context::{AreaLead, Cx, Data};
use crate::error::{Error, Result};
use crate::flows::agents::assets;
use crate::flows::memory::forgotten::Forgotten;
use crate::flows::{actions, chats, existing};
use crate::store::table::{Condition, Order, Write};
use crate::store::{Store, Versioned, keys};

/// How many assets and how many actions the model gets to see.
const IN_VIEW: usize = 10;

/// How many of an action's runs the model gets to see.
const RUNS_IN_VIEW: usize = 5;

/// How much of the outputs of the newest run the model gets to see, in bytes.
const MAX_OUTPUT_IN_VIEW: usize = 16 * 1024;

/// What a person talks about.
#[derive(Clone, Debug)]
pub enum Topic {
    /// An agent that is being set up. Without a chat, a new one begins.
    Setup(Option<ChatId>),
    Agent(AgentId, Option<ChatId>),
    Action(ActionId),
    /// The theme of a project.
    Theme(Box<Planned>),
}

/// A turn of the theme agent, as it is planned when it begins.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The conversation to continue. Without it, a new one begins.
    pub chat: Option<ChatId>,
    pub turn: ThemeTurn,
    /// What the model is told with the message. It is stored after the message, and people do not see it there.
    pub briefing: String,
    /// What it is told of memory, in a message of its own after the briefing.
    pub recalled: Vec<Recalled>,
}

/// The conversation in its state at the beginning of the turn.
pub(super) enum Conversation {
    Chat(Chat),
    Action(Box<Action>),
}

impl Conversation {
    /// The agent (if it already exists), the conversation, and the writes that create the conversation or check that it exists.
    pub async fn find(
        cx: &Cx,
        owner: &Owner,
        topic: &Topic,
        message: &str,
    ) -> Result<(Option<Agent>, Self, Vec<Write>)> {
        match topic {
            Topic::Setup(chat) => {
                let chat = existing(cx, owner, *chat).await?;
                let (chat, writes) = or_new(cx, owner, With::Setup, chat, message)?;
                Ok((None, Self::Chat(chat), writes))
            }
            Topic::Theme(planned) => {
                let chat = existing(cx, owner, planned.chat).await?;
                let with = With::Theme(planned.turn.project_id);
                let (chat, writes) = or_new(cx, owner, with, chat, message)?;
                Ok((None, Self::Chat(chat), writes))
            }
            Topic::Agent(id, chat) => {
                let (agent, chat) = tokio::join!(existing::agent(cx, owner, *id), existing(cx, owner, *chat));
                let agent = listening(agent?.value)?;
                let (chat, writes) = or_new(cx, owner, With::Agent(*id), chat?, message)?;
                Ok((Some(agent), Self::Chat(chat), writes))
            }
            Topic::Action(id) => {
                let action = actions::load(cx, owner, *id).await?.value;
                let agent = listening(existing::agent(cx, owner, action.agent_id).await?.value)?;
                let there = Write::Exists { key: keys::action(owner, *id) };
                Ok((Some(agent), Self::Action(Box::new(action)), vec![there]))
            }
        }
    }

    pub fn thread(&self) -> Thread {
        match self {
            Self::Chat(chat) => chat.chat_id.into(),
            Self::Action(action) => action.id.into(),
        }
    }

    pub fn chat_id(&self) -> Option<ChatId> {
        match self {
            Self::Chat(chat) => Some(chat.chat_id),
            Self::Action(_) => None,
        }
    }

    pub fn action_id(&self) -> Option<ActionId> {
        match self {
            Self::Chat(_) => None,
            Self::Action(action) => Some(action.id),
        }
    }

    /// The condition that the conversation still exists, for the transaction that ends a turn. A turn that is about to begin sees that
    /// this one has ended.
    pub fn ends_turn(&self, owner: &Owner) -> Write {
        match self {
            Self::Chat(chat) => {
                let (key, only_if) = (keys::chat(owner, chat.chat_id), Condition::Exists);
                Write::Add { key, numbers: Vec::new(), only_if, expires: None }
            }
            Self::Action(_) => self.still_there(owner),
        }
    }

    /// The condition that the conversation still exists, for a transaction that writes to it.
    pub fn still_there(&self, owner: &Owner) -> Write {
        Write::Exists {
            key: match self {
                Self::Chat(chat) => keys::chat(owner, chat.chat_id),
                Self::Action(action) => keys::action(owner, action.id),
            },
        }
    }

    /// Deletes what was stored for a conversation that has been deleted.
    pub async fn sweep(&self, cx: &Cx, owner: &Owner) -> Result<()> {
        match self {
            Self::Chat(chat) => chats::sweep_if_gone(cx, owner, chat.chat_id).await,
            Self::Action(action) => match actions::load(cx, owner, action.id).await {
                Err(Error::NotFound(_)) => {
                    Ok(cx.blobs.delete_prefix(&BlobKey::messages(owner, action.id)).await?)
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            },
        }
    }

    /// The conversation of a turn that has already begun.
    pub async fn of(cx: &Cx, owner: &Owner, run: &Run) -> Result<(Option<Agent>, Self)> {
        let agent = match run.agent_id {
            Some(id) => Some(existing::agent(cx, owner, id).await?.value),
            None => None,
        };
        let place = match (run.chat_id, run.action_id) {
            (Some(id), _) => Self::Chat(chats::load(cx, owner, id).await?.value),
            (None, Some(id)) => Self::Action(Box::new(actions::load(cx, owner, id).await?.value)),
            (None, None) => return Err(Error::NotFound("conversation")),
        };
        Ok((agent, place))
    }

    pub fn setting(&self, agent: Option<&Agent>) -> Setting<'static> {
        match (agent, self) {
            (None, Self::Chat(chat)) if chat.project_id.is_some() => Setting::Theme,
            (None, _) => Setting::Setup,
            (Some(_), Self::Chat(_)) => Setting::Chat,
            (Some(_), Self::Action(_)) => Setting::AboutAction,
        }
    }

    /// The stable part of the prompt.
    pub fn system(&self, agent: Option<&Agent>, (run, leads): (&Run, Option<&AreaLead>)) -> Vec<SystemBlock> {
        if let (Some(turn), Some(leads)) = (&run.theme, leads) {
            return (leads.system)(turn);
        }
        match (agent, self) {
            (None, _) => prompts::setup(),
            (Some(agent), Self::Chat(_)) => prompts::chat(agent),
            (Some(agent), Self::Action(_)) => prompts::about_action(agent),
        }
    }

    /// What the model gets to see before the person's newest message.
    pub async fn in_view(
        &self,
        data: &Data,
        owner: &Owner,
        (agent, zone): (Option<&Agent>, &TimeZone),
        forgotten: &Forgotten,
    ) -> Result<Option<String>> {
        match (agent, self) {
            (None, _) => Ok(None),
            (Some(agent), Self::Chat(_)) => agent_in_view(data, owner, agent.agent_id, zone).await.map(Some),
            (Some(agent), Self::Action(action)) => {
                action_in_view(data, owner, action, (agent, zone), forgotten).await.map(Some)
            }
        }
    }
}

async fn existing(cx: &Cx, owner: &Owner, id: Option<ChatId>) -> Result<Option<Versioned<Chat>>> {
    match id {
        None => Ok(None),
        Some(id) => chats::load(cx, owner, id).await.map(Some),
    }
}

/// With whom a chat is.
#[derive(Clone, Copy)]
enum With {
    Setup,
    Agent(AgentId),
    Theme(ProjectId),
}

fn or_new(
    cx: &Cx,
    owner: &Owner,
    with: With,
    chat: Option<Versioned<Chat>>,
    message: &str,
) -> Result<(Chat, Vec<Write>)> {
    let (agent_id, project_id) = match with {
        With::Setup => (None, None),
        With::Agent(agent) => (Some(agent), None),
        With::Theme(project) => (None, Some(project)),
    };
    match chat {
        Some(Versioned { value: chat, version })
            if chat.agent_id == agent_id && chat.project_id == project_id =>
        {
            // If another turn ends before this one is stored, its reply would come after the message of this one. Then this one
            // begins again.
            let unchanged = Write::Unchanged { key: keys::chat(owner, chat.chat_id), version };
            Ok((chat, vec![unchanged]))
        }
        Some(_) => Err(Error::NotFound("chat")),
        None => {
            let title = title_of(message);
            let chat_id = ChatId::from_uuid(cx.clock.uuid());
            let created_at = cx.clock.now();
            let chat = Chat { chat_id, agent_id, project_id, title, created_at, reset_after: None };
            let writes = Store::chat_writes(owner, &chat)?;
            Ok((chat, writes))
        }
    }
}

fn listening(agent: Agent) -> Result<Agent> {
    if agent.status == AgentStatus::Archived {
        return Err(Error::conflict_with("agent_archived", "an archived agent takes no turns", &agent));
    }
    Ok(agent)
}

async fn agent_in_view(data: &Data, owner: &Owner, agent: AgentId, zone: &TimeZone) -> Result<String> {
    let (assets, actions) = tokio::try_join!(
        data.store.agent_assets(owner, agent, None, IN_VIEW),
        data.store.agent_actions(owner, agent, None, IN_VIEW),
    )?;
    let assets: Vec<_> = assets.items.into_iter().map(|(_, asset)| asset.value).collect();
    let actions: Vec<_> = actions.items.into_iter().map(|(_, action)| action.value).collect();
    Ok(prompts::in_view(&assets, &actions, zone))
}

async fn action_in_view(
    data: &Data,
    owner: &Owner,
    action: &Action,
    (agent, zone): (&Agent, &TimeZone),
    forgotten: &Forgotten,
) -> Result<String> {
    let found = data.store.occurrences(owner, action.id, None, RUNS_IN_VIEW, Order::Newest).await?;
    let run = async |occurrence: domain::actions::Occurrence| {
        let never_ran = matches!(
            occurrence.state,
            OccurrenceState::Missed | OccurrenceState::Skipped | OccurrenceState::Due
        );
        let mut saved =
            if never_ran { Vec::new() } else { data.store.run_outputs(owner, occurrence.run_id).await? };
        let source = Source::Run(occurrence.run_id);
        saved.retain(|output| !forgotten.hides(&source, &output.asset_id.to_string()));
        let outputs = saved.into_iter().map(|output| (output.asset_id, output.title, None)).collect();
        Ok::<_, Error>(RunInView { occurrence, outputs })
    };
    let occurrences = found.items.into_iter().map(|(_, occurrence)| occurrence.value);
    let mut runs = try_join_all(occurrences.map(run)).await?;
    let mut left = MAX_OUTPUT_IN_VIEW;
    let newest = runs.iter_mut().find(|run| !run.outputs.is_empty());
    for (id, _, content) in newest.into_iter().flat_map(|run| &mut run.outputs) {
        let mut text = match assets::content(data, owner, *id, None).await {
            Ok(content) => content.text,
            // The output was deleted since. The run still lists it.
            Err(Error::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        text.truncate(text.floor_char_boundary(left));
        left -= text.len();
        *content = Some(text);
        if left == 0 {
            break;
        }
    }
    let zone = action.zone_or(zone);
    Ok(prompts::action_in_view(action, action.is_approved_with(agent), &runs, zone))
}
