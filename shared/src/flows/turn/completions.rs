//! Turns for clients that keep the conversation themselves and send all of it each time, as the OpenAI API works.
//!
//! Each conversation is a chat, so its turns are stored, resumed and counted like any other. The next call finds the chat by the
//! conversation that the client sends: after a turn, a mark is stored for a month under a hash of the whole conversation. The next
//! call removes the mark, so that one chat never gets two continuations. A call without a mark begins a new chat with the messages
//! that it contains. This happens if the conversation is new, if it was edited, or if the client asks for a reply again.

use domain::actions::{ActionCommand, ActionPatch, DefineAction};
use domain::chats::conversation::{MAX_APPEND, MAX_MESSAGE, MAX_TITLE, NewMessage};
use domain::chats::{Proposal, ProposalBody};
use domain::ids::{AgentId, ChatId, Owner, ProposalId, RunId};
use domain::models::{ImageInput, Role, Sampling, SamplingParameter};
use domain::runs::form::ReplyForm;
use domain::validate::FieldErrors;
use sha2::{Digest, Sha256};

use super::{Answered, IfBusy, Said, Topic};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::actions::{self, AcceptProposal};
use crate::flows::agents::assets::{self, SaveAsset};
use crate::flows::chats::{self, NewChat};
use crate::flows::runs::Begun;
use crate::flows::{existing, turn};
use crate::model_choice;
use crate::request::ClientAddress;
use crate::request::Invocation;
use crate::request::caller::Actor;
use crate::store::Once;
use crate::store::chats::ClientConversation;

/// A conversation as its client sends it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The client's own instructions. They are put before the person's first message, because the agent has its own instructions.
    pub system: String,
    /// The earlier messages.
    pub history: Vec<NewMessage>,
    /// The person's new message.
    pub message: String,
    /// The images of the new message.
    pub images: Vec<ImageInput>,
}

/// Texts with which a person accepts the drafts of the last reply.
const YES: [&str; 2] = ["yes", "accept"];

/// Begins the answer to a yes that was sent again. What the first one has done follows.
const ALREADY: &str = "Already done: ";

/// Why a yes accepts nothing. The drafts follow.
const NOT_SEEN: &str = "Nothing was accepted yet. The last reply has HTML or other marks that can hide text in your client, so perhaps \
    you did not see all of what waits for your yes. This is it.";

/// What a turn needs to know about the client's request.
#[derive(Clone, Copy)]
pub struct OfClient<'a> {
    pub once: &'a Once,
    /// Who sends it.
    pub by: Actor,
    /// For links in the reply.
    pub address: &'a ClientAddress,
}

/// The drafts that a reply shows.
pub struct ShownDrafts {
    pub ids: Vec<ProposalId>,
    /// Whether every client shows them. If not, a yes does not count.
    pub is_visible: bool,
}

/// A turn that has begun, with what is needed to find its chat again.
pub struct Completion {
    pub begun: Begun,
    agent: AgentId,
    chat: ChatId,
    conversation: Conversation,
    /// The run that has accepted the last drafts, if nothing newer waits.
    accepted: Option<RunId>,
}

impl Conversation {
    /// A hash that identifies the conversation `said`.
    fn hash(&self, agent: AgentId, said: &[NewMessage]) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        add(&agent.to_string());
        add(self.system.trim());
        for NewMessage { role, content, images } in said {
            add(if *role == Role::User { "user" } else { "assistant" });
            // Clients may trim the texts that they show.
            add(content.trim());
            for image in images {
                add("image");
                add(&image.data);
            }
        }
        domain::hex(&hash.finalize())
    }

    /// The text with the client's instructions, if it is the first one.
    fn first(&self, text: &str) -> String {
        match self.system.trim() {
            "" => text.to_owned(),
            system => format!("{system}\n\n{text}"),
        }
    }

    /// The messages that a new chat begins with, and the person's message.
    fn unfold(&self) -> Result<(Vec<NewMessage>, String)> {
        let mut errors = FieldErrors::default();
        let mut messages: Vec<NewMessage> = Vec::new();
        for NewMessage { role, content: text, images } in
            self.history.iter().filter(|said| !said.content.trim().is_empty() || !said.images.is_empty())
        {
            let mut content = if messages.is_empty() { self.first(text) } else { text.clone() };
            // The client sends back what an agent wrote, and that may be longer than a person's message.
            if *role == Role::Assistant
                && let Some((end, _)) = content.char_indices().nth(MAX_MESSAGE)
            {
                content.truncate(end);
            }
            errors.length("messages[].content", &content, 1, MAX_MESSAGE);
            messages.push(NewMessage { role: *role, content, images: images.clone() });
        }
        let message = if messages.is_empty() { self.first(&self.message) } else { self.message.clone() };
        errors.length("messages[].content", &message, 1, MAX_MESSAGE);
        // A model gets only the newest part of a conversation, so older messages are not needed.
        let old = messages.len().saturating_sub(MAX_APPEND);
        messages.drain(..old);
        Ok(errors.into_result((messages, message))?)
    }

    /// Whether the person accepts what the last reply has shown.
    fn is_yes(&self) -> bool {
        // "Yes?" is a question, and "!yes" means no to a programmer.
        let word = self.message.trim_matches(|c: char| c.is_ascii_whitespace());
        let word = word.trim_end_matches(['.', ',', '!']);
        self.images.is_empty() && YES.iter().any(|yes| word.eq_ignore_ascii_case(yes))
    }

    fn title(&self) -> String {
        let first = self.history.first().map_or(&self.message, |said| &said.content);
        first.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_TITLE / 2).collect()
    }
}

/// Begins the turn that answers a conversation. If the last reply has shown drafts and the person says yes, the turn accepts them and
/// says so, without a call of a model. If the text of that reply may have hidden the drafts, the turn accepts nothing and shows them
/// again. A yes that is sent again is told what the first one has done.
///
/// # Errors
/// 404 if the agent does not exist; 400 if a message is empty or too long; 409 if the agent is archived.
pub async fn begin(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    conversation: Conversation,
    form: ReplyForm,
    client: OfClient<'_>,
    invocation: Invocation,
) -> Result<Completion> {
    let (messages, message) = conversation.unfold()?;
    let is_yes = conversation.is_yes() && form.json.is_none();
    let hash = conversation.hash(agent, &conversation.history);
    let known = match messages.is_empty() {
        true => None,
        false => cx.store.take_client_conversation(owner, &hash).await?,
    };
    let again = match is_yes && !messages.is_empty() {
        true => already_done(cx, owner, known.as_ref(), &hash).await?,
        false => None,
    };
    let said = |chat, message| {
        let (topic, images) = (Topic::Agent(agent, Some(chat)), conversation.images.clone());
        Said { topic, message, images, if_busy: IfBusy::Reject, form: form.clone() }
    };
    // No model writes these replies, so no limit of a reply holds for them.
    let plainly = |said: Said| Said { form: ReplyForm::default(), ..said };
    if let Some(ClientConversation { chat_id: chat, proposals, is_visible, .. }) = known {
        let drafts = match is_yes {
            true => waiting(cx, owner, agent, chat, &proposals).await?,
            false => Vec::new(),
        };
        let turn = said(chat, message.clone());
        let mut all_accepted = false;
        let begun = if drafts.is_empty() && again.is_none() {
            turn::start(cx, owner, client.once, turn, invocation).await
        } else {
            let reply = async {
                if let Some((_, told)) = &again {
                    return Answered::from(told.clone());
                }
                if is_visible {
                    let (told, all) = accept_all(cx, owner, agent, drafts, client).await;
                    all_accepted = all;
                    return Answered::from(told);
                }
                // The person has perhaps said yes to something else.
                let shows = drafts.iter().map(|draft| draft.proposal_id).collect();
                Answered { text: NOT_SEEN.to_owned(), shows }
            };
            Box::pin(turn::answer(cx, owner, client.once, plainly(turn), invocation, reply)).await
        };
        match begun {
            // The chat was deleted, or another client uses it. This client continues with its own copy.
            Err(Error::NotFound("chat")) | Err(Error::Conflict { code: "turn_in_progress", .. }) => {}
            begun => {
                let begun = begun?;
                let mut accepted = again.map(|(run, _)| run);
                if all_accepted {
                    accepted = Some(begun.run());
                    note_accepted(cx, owner, &hash, chat, begun.run()).await;
                }
                return Ok(Completion { begun, agent, chat, conversation, accepted });
            }
        }
    }
    let new = NewChat { title: conversation.title(), messages, ..NewChat::default() };
    // The turn marks the request as done, not the new chat. The chat may be created again: without the turn it has no
    // effect.
    let chat = chats::create(cx, owner, &Once::none(), agent, new).await?.chat.chat_id;
    let turn = said(chat, message);
    let Some((accepted, told)) = again else {
        let begun = turn::start(cx, owner, client.once, turn, invocation).await?;
        return Ok(Completion { begun, agent, chat, conversation, accepted: None });
    };
    let reply = async { Answered::from(told) };
    let begun = Box::pin(turn::answer(cx, owner, client.once, plainly(turn), invocation, reply)).await?;
    Ok(Completion { begun, agent, chat, conversation, accepted: Some(accepted) })
}

/// Where it is noted that the drafts at the end of a conversation were accepted, for a client that sends its yes again.
fn accepted_mark(hash: &str) -> String {
    format!("{hash}-accepted")
}

/// The run that has accepted the drafts of a conversation, if that is the last thing that happened in it, and what to tell the person.
async fn already_done(
    cx: &Cx,
    owner: &Owner,
    known: Option<&ClientConversation>,
    hash: &str,
) -> Result<Option<(RunId, String)>> {
    let accepted = match known {
        Some(mark) => mark.accepted,
        None => {
            cx.store.client_conversation(owner, &accepted_mark(hash)).await?.and_then(|mark| mark.accepted)
        }
    };
    let Some(run) = accepted else { return Ok(None) };
    match existing::run(cx, owner, run).await {
        Ok(found) if !found.value.message.is_empty() => {
            Ok(Some((run, format!("{ALREADY}{}", found.value.message))))
        }
        // Its chat was deleted.
        Ok(_) | Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Notes which run has accepted the drafts at the end of a conversation.
async fn note_accepted(cx: &Cx, owner: &Owner, hash: &str, chat_id: ChatId, run: RunId) {
    let mark = ClientConversation { chat_id, proposals: Vec::new(), is_visible: false, accepted: Some(run) };
    let marked = cx.store.mark_client_conversation(owner, &accepted_mark(hash), &mark, cx.clock.now()).await;
    if let Err(error) = marked {
        tracing::warn!(cause = %Error::from(error).causes(), "a yes that is sent again will go to the model");
    }
}

/// The names of the parameters that do not go to each of the models that the agent may use.
///
/// # Errors
/// If the table does not answer.
pub async fn not_sampled(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    sampling: &Sampling,
) -> Result<Vec<&'static str>> {
    if sampling.is_empty() {
        return Ok(Vec::new());
    }
    // If the agent does not exist, the turn says so.
    let Some(agent) = cx.store.agent(owner, agent).await? else { return Ok(Vec::new()) };
    let ask = turn::asks_of_chat(&agent.value);
    let route = Box::pin(model_choice::route(cx, owner, &ask, 0)).await?;
    let candidates = route.map(|route| route.candidates).unwrap_or_default();
    let takes = |parameter: &SamplingParameter| {
        !candidates.is_empty() && candidates.iter().all(|model| model.samples().contains(parameter))
    };
    Ok(sampling.keys().filter(|parameter| !takes(parameter)).map(|parameter| parameter.name()).collect())
}

/// The proposals of these that still wait in the chat.
async fn waiting(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    chat: ChatId,
    ids: &[ProposalId],
) -> Result<Vec<Proposal>> {
    let mut waiting = Vec::new();
    for id in ids {
        let found = cx.store.proposal(owner, *id, cx.clock.now()).await?;
        let is_here = |found: &Proposal| found.agent_id == agent && found.chat_id == Some(chat);
        waiting.extend(found.filter(|found| is_here(found) && found.superseded_by.is_none()));
    }
    Ok(waiting)
}

/// Accepts proposals as their own routes do. Returns what to tell the person about each, and whether all were accepted.
async fn accept_all(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    proposals: Vec<Proposal>,
    client: OfClient<'_>,
) -> (String, bool) {
    let mut told = Vec::with_capacity(proposals.len());
    let mut all = true;
    for proposal in proposals {
        let title = proposal.body.title().to_owned();
        let accepted = accept(cx, owner, agent, proposal, client).await;
        all &= accepted.is_ok();
        told.push(match accepted {
            Ok(done) => done,
            Err(Error::NotFound(_)) => {
                format!("\"{title}\" was not accepted: it was accepted or discarded meanwhile.")
            }
            Err(error) => {
                tracing::warn!(cause = %error.causes(), "a proposal was not accepted");
                format!("\"{title}\" was not accepted: {}.", error.detail().trim_end_matches('.'))
            }
        });
    }
    (told.join("\n\n"), all)
}

async fn accept(
    cx: &Cx,
    owner: &Owner,
    agent: AgentId,
    proposal: Proposal,
    OfClient { by, address, .. }: OfClient<'_>,
) -> Result<String> {
    let proposal_id = Some(proposal.proposal_id);
    // The turn that does this has already marked the request as done.
    let once = &Once::none();
    match proposal.body {
        ProposalBody::Asset { .. } => {
            let input = SaveAsset { proposal_id, ..SaveAsset::default() };
            let asset = Box::pin(assets::save(cx, owner, once, agent, input)).await?.asset;
            let at = address.at(&format!("/assets/{}", asset.asset_id));
            Ok(format!("\"{}\" is saved at {at}.", asset.title))
        }
        ProposalBody::Action(_) => {
            let input = DefineAction { proposal_id, ..DefineAction::default() };
            let action = Box::pin(actions::define(cx, owner, once, by, agent, input)).await?.action;
            let at = address.at(&format!("/actions/{}", action.id));
            Ok(format!(
                "\"{}\" is defined at {at}. It does not run on its own until you approve it with a POST to {at}/approve.",
                action.title
            ))
        }
        ProposalBody::Change { action_id, .. } => {
            let patch = ActionPatch { proposal_id, ..ActionPatch::default() };
            let action = Box::pin(actions::change(cx, owner, once, by, action_id, None, patch)).await?.action;
            let at = address.at(&format!("/actions/{}", action.id));
            let approval = match action.approval {
                Some(_) => String::new(),
                None => {
                    format!(" It does not run on its own until you approve it with a POST to {at}/approve.")
                }
            };
            Ok(format!("\"{}\" is changed at {at}.{approval}", action.title))
        }
        ProposalBody::Command { .. } => {
            let (id, input) = (proposal.proposal_id, AcceptProposal::default());
            let accepted = Box::pin(actions::accept(cx, owner, once, by, id, input)).await?;
            let action = accepted.action.action;
            let at = address.at(&format!("/actions/{}", action.id));
            Ok(match (accepted.command, accepted.run_id) {
                (Some(ActionCommand::Rehearse), Some(run)) => {
                    format!("\"{}\" is rehearsed. See {}.", action.title, address.at(&format!("/runs/{run}")))
                }
                (_, Some(run)) => {
                    format!("\"{}\" runs now. See {}.", action.title, address.at(&format!("/runs/{run}")))
                }
                (Some(ActionCommand::Pause), None) => format!("\"{}\" is paused: see {at}.", action.title),
                (Some(ActionCommand::Dismiss), None) => {
                    format!("\"{}\" is dismissed: see {at}.", action.title)
                }
                _ => format!("\"{}\" is resumed: see {at}.", action.title),
            })
        }
    }
}

impl Completion {
    /// Notes the reply as the client has received it, so that the next call continues the same chat.
    pub async fn replied(self, cx: &Cx, owner: &Owner, text: &str, drafts: ShownDrafts) {
        let Self { agent, chat, conversation, accepted, .. } = self;
        let mut said = conversation.history.clone();
        let (content, images) = (conversation.message.clone(), conversation.images.clone());
        said.push(NewMessage { role: Role::User, content, images });
        said.push(NewMessage { role: Role::Assistant, content: text.to_owned(), images: Vec::new() });
        let hash = conversation.hash(agent, &said);
        // Without the mark, the next call begins a new chat with the same messages.
        let ShownDrafts { ids: proposals, is_visible } = drafts;
        let is_visible = is_visible && !proposals.is_empty();
        let accepted = accepted.filter(|_| proposals.is_empty());
        let mark = ClientConversation { chat_id: chat, proposals, is_visible, accepted };
        if let Err(error) = cx.store.mark_client_conversation(owner, &hash, &mark, cx.clock.now()).await {
            tracing::warn!(cause = %Error::from(error).causes(), "the next call of a conversation will begin a new chat");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(system: &str, history: &[(Role, &str)], message: &str) -> Conversation {
        let said = |(role, text): &(Role, &str)| NewMessage {
            role: *role,
            content: (*text).to_owned(),
            images: Vec::new(),
        };
        let history = history.iter().map(said).collect();
        Conversation { system: system.into(), history, message: message.into(), images: Vec::new() }
    }

    #[test]
    fn a_new_chat_begins_with_the_messages_of_the_client() {
        use Role::{Assistant, User};
        let check = |conversation: &Conversation, messages: &[&str], message: &str| {
            let (brought, said) = conversation.unfold().unwrap();
            let brought: Vec<&str> = brought.iter().map(|message| message.content.as_str()).collect();
            assert_eq!((brought.as_slice(), said.as_str()), (messages, message));
        };
        check(&conversation("", &[], "a"), &[], "a");
        check(&conversation(" Be brief. ", &[], "a"), &[], "Be brief.\n\na");
        let longer = conversation("Be brief.", &[(User, "a"), (Assistant, " "), (Assistant, "b")], "c");
        check(&longer, &["Be brief.\n\na", "b"], "c");
        let many: Vec<(Role, &str)> = std::iter::repeat_n((User, "a"), 300).collect();
        assert_eq!(conversation("", &many, "b").unfold().unwrap().0.len(), MAX_APPEND);
        for text in ["", " \n", &"a".repeat(MAX_MESSAGE + 1)] {
            let refused = conversation("", &[], text).unfold().unwrap_err().to_string();
            assert!(refused.contains("messages[].content"), "{refused}");
        }
        assert_eq!(conversation("s", &[(User, "a \n b")], "c").title(), "a b");
    }

    #[test]
    fn only_a_plain_yes_accepts() {
        for yes in ["yes", "Yes!", " accept. ", "YES", "Accept!", "\nyes...", "yes,"] {
            assert!(conversation("", &[], yes).is_yes(), "{yes}");
        }
        for other in [
            "",
            "no",
            "!yes",
            ", yes",
            "yes?",
            "(yes)",
            "\"yes\"",
            "yes…",
            "yes\u{200b}",
            "yes?no",
            "yes, but shorter",
            "yes please",
            "Yes, accept.",
            "accept it",
            "Accept all",
            "please accept",
            "yes yes",
            "do not accept",
            "y",
            "accept the risk",
            "yesterday",
        ] {
            assert!(!conversation("", &[], other).is_yes(), "{other}");
        }
        let mut with_image = conversation("", &[], "yes");
        with_image.images.push(ImageInput { media_type: String::new(), data: "x".into() });
        assert!(!with_image.is_yes());
    }

    #[test]
    fn only_the_same_conversation_leads_to_a_chat() {
        use Role::{Assistant, User};
        let (agent, other) =
            (AgentId::from_uuid(uuid::Uuid::from_u128(1)), AgentId::from_uuid(uuid::Uuid::from_u128(2)));
        let hash = |agent, system: &str, said: &[(Role, &str)]| {
            let conversation = conversation(system, said, "");
            conversation.hash(agent, &conversation.history)
        };
        let base = hash(agent, "s", &[(User, "a"), (Assistant, "b")]);
        assert_eq!(hash(agent, " s", &[(User, "a\n"), (Assistant, " b")]), base);
        for different in [
            hash(other, "s", &[(User, "a"), (Assistant, "b")]),
            hash(agent, "t", &[(User, "a"), (Assistant, "b")]),
            hash(agent, "s", &[(User, "a"), (User, "b")]),
            hash(agent, "s", &[(User, "ab"), (Assistant, "")]),
            hash(agent, "s", &[(User, "a")]),
            hash(agent, "sa", &[(User, ""), (Assistant, "b")]),
        ] {
            assert_ne!(different, base);
        }
        let with = |data: &str| {
            let mut conversation = conversation("s", &[(User, "a"), (Assistant, "b")], "");
            conversation.history[0].images.push(ImageInput { media_type: String::new(), data: data.into() });
            conversation.hash(agent, &conversation.history)
        };
        assert_ne!(with("x"), base);
        assert_ne!(with("x"), with("y"));
    }
}
