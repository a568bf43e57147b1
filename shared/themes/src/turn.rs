//! A turn of the theme agent: a person says what should change, and the agent changes it in a change set.
//!
//! When a turn begins, the message is classified, the files that it is about are found, and the model's briefing is written. All of it is
//! stored with the message, before a model is called. How the turn goes on is decided by [`theme_turn::lead`] from what is stored.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::agent_loop::{Call, Step};
use domain::chats::conversation::{Author, MAX_MESSAGE};
use domain::ids::{ChangeSetId, ChatId, Owner, RunId};
use domain::models::prices::ModelPrice;
use domain::models::routing::{AgentRole, Ask as AskModel, TaskTier};
use domain::models::{CacheTtl, Message, ModelRequest, ModelTier, SystemBlock, Vendor};
use domain::projects::turn::{ThemeChange, ThemeChanges, ThemeTurn, TurnMode, TurnStrategy};
use domain::runs::form::ReplyForm;
use domain::validate::FieldErrors;
use futures::FutureExt;
use models::{ModelLimits, Retry};
use serde::Deserialize;
use serde_json::json;
use shared::context::{AreaLead, Changed, ChangedBy, Cx, Lead};
use shared::error::{Error, Result};
use shared::flows::ask::{self, Answered, Failure, ModelAnswer, WorkBudget};
use shared::flows::memory::recall;
use shared::flows::runs::Begun;
use shared::flows::turn::{self, IfBusy, Planned, Said, Topic};
use shared::flows::{chats, messages, schedules};
use shared::model_choice;
use shared::request::Invocation;
use shared::store::Once;
use theme_turn::classify::{Asked, classify, strategy_of};
use theme_turn::data::quoted;
use theme_turn::limits::{limits_of, tokens_of};
use theme_turn::prompts::shown::{Candidate, Given, Row, given};
use theme_turn::prompts::{self, Parts, Shown};
use theme_turn::{helpers, lead, small};
use utoipa::ToSchema;

use crate::answers::{self, Ask, FeatureView, GatedView};
use crate::changes::{self, ChangeSetState, MadeBy, Place, Target};

/// The longest description of a page, and the longest list of diagnostics, in characters.
const MAX_GIVEN: usize = 20_000;

/// The longest path of the open file, in characters.
const MAX_PATH: usize = 512;

/// How long a small model may take to sort a message, how many tokens it may answer, and what that may cost in micro-dollars.
const SORTS_WITHIN: Duration = Duration::from_secs(4);
const SORT_TOKENS: u32 = 300;
const SORT_MICROS: i64 = 20_000;

/// The most tokens of a reply of a helper.
const REPORT_TOKENS: u32 = 4_096;

/// The most messages of the conversation that are read to see what the model was told before.
const MESSAGES: usize = domain::chats::summary::MAX_HISTORY;

/// A message to the theme agent.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"message": "Make the header sticky on phones"}))]
pub struct NewTurn {
    /// The conversation to continue. Without it, a new one begins.
    #[serde(default)]
    pub chat_id: Option<ChatId>,
    /// 1 to 32,000 characters.
    #[serde(default)]
    #[schema(required = true, min_length = 1, max_length = 32_000)]
    pub message: String,
    /// What is wanted. Without it, the message decides.
    #[serde(default)]
    pub mode: Option<TurnMode>,
    /// The path of the file that the person has open.
    #[serde(default)]
    #[schema(max_length = 512)]
    pub active_file: Option<String>,
    /// The part of the page that the person looks at, as HTML or as an outline. At most 20,000 characters.
    #[serde(default)]
    #[schema(max_length = 20_000)]
    pub dom: Option<String>,
    /// Errors of the page or of a check. At most 20,000 characters.
    #[serde(default)]
    #[schema(max_length = 20_000)]
    pub diagnostics: Option<String>,
    /// What to do if a turn of this conversation is under way.
    #[serde(default)]
    pub if_busy: IfBusy,
}

impl NewTurn {
    fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        errors.length("message", &self.message, 1, MAX_MESSAGE);
        let most = [
            ("active_file", &self.active_file, MAX_PATH),
            ("dom", &self.dom, MAX_GIVEN),
            ("diagnostics", &self.diagnostics, MAX_GIVEN),
        ];
        for (field, given, most) in most {
            if let Some(given) = given {
                errors.length(field, given, 0, most);
            }
        }
        errors.into_result(())
    }
}

/// Begins a turn of the theme agent. This process drives the turn until its invocation is nearly over.
///
/// # Errors
/// 404 if the project or the chat does not exist; 400 with every invalid field; 409 if the account is stopped, or if a turn of the
/// conversation is under way.
pub async fn start(place: Place<'_>, once: &Once, input: NewTurn, invocation: Invocation) -> Result<Begun> {
    input.check()?;
    let planned = Box::pin(plan(place, &input)).await?;
    let NewTurn { message, if_busy, .. } = input;
    let topic = Topic::Theme(Box::new(planned));
    let said = Said { topic, message, images: Vec::new(), if_busy, form: ReplyForm::default() };
    Box::pin(turn::start(place.cx, place.owner, once, said, invocation)).await
}

/// What the conversation holds already.
#[derive(Default)]
struct Before {
    /// The briefings that the model still sees.
    briefings: Vec<String>,
    /// The bytes of all that was said.
    bytes: usize,
    /// Where the edits of the last turn are, unless they were applied; and whether it had any.
    change_set: Option<ChangeSetId>,
    has_changed: bool,
}

async fn before(place: Place<'_>, chat: ChatId) -> Result<Before> {
    let Place { cx, owner, project } = place;
    let found = chats::load(cx, owner, chat).await?.value;
    if found.project_id != Some(project) {
        return Err(Error::NotFound("chat"));
    }
    let summary = cx.store.summary(owner, chat.into()).await?.map(|stored| stored.value);
    let summary = summary.filter(|summary| summary.is_after(found.reset_after));
    let floor = summary.map(|summary| summary.up_to).max(found.reset_after);
    let newest = messages::newest(cx, owner, chat, MESSAGES, |stored| {
        floor.is_none_or(|floor| stored.message.message_id > floor)
    });
    let newest = newest.await?;
    let mut before = Before::default();
    for message in &newest {
        let words = message.content.iter().filter_map(domain::models::Block::as_text);
        for text in words {
            before.bytes += text.len();
            if message.author == Some(Author::Platform) && !prompts::headings(text).is_empty() {
                before.briefings.push(text.to_owned());
            }
        }
    }
    let Some(run) = newest.iter().rev().find_map(|message| message.run_id) else { return Ok(before) };
    let Some(last) = cx.store.run(owner, run).await?.and_then(|run| run.value.theme) else {
        return Ok(before);
    };
    let last = change_set_now(place, last.change_set_id, run).await?;
    let set = changes::known(place, last).await?;
    before.has_changed = set.is_some();
    // What was applied is in the theme; the next edits are others. The last turn may still be under way, and have no edit yet.
    let is_applied = set.is_some_and(|set| set.state == ChangeSetState::Applied);
    before.change_set = (!is_applied).then_some(last);
    Ok(before)
}

async fn plan(place: Place<'_>, input: &NewTurn) -> Result<Planned> {
    let Place { cx, owner, project } = place;
    let before = match input.chat_id {
        Some(chat) => before(place, chat).await?,
        None => Before::default(),
    };
    let asked = Asked {
        message: &input.message,
        active_file: input.active_file.as_deref(),
        has_changed: before.has_changed,
        has_diagnostics: input.diagnostics.is_some(),
    };
    // It may take a while, and nothing below depends on it.
    let recalled = {
        let (cx, owner, message) = (cx.clone(), owner.clone(), input.message.clone());
        tokio::spawn(async move { recall::about_theme(&cx, &owner, &message).await })
    };
    let mut classified = classify(&asked, input.mode);
    if classified.open.any()
        && let Some(answer) = sorted(cx, owner, &asked).await
    {
        classified = small::decide(classified, answer, input.mode);
    }
    let (mode, tier) = (classified.mode, classified.tier);
    let strategy = strategy_of(tier);
    let limits = limits_of(mode, tier, strategy);
    let change_set = before.change_set.unwrap_or_else(|| ChangeSetId::from_uuid(cx.clock.uuid()));
    let target = Target::Own(change_set);
    let warm = changes::index(place, target, MadeBy::Person).await?;
    let ask = Ask {
        request: input.message.chars().take(theme::answers::MAX_REQUEST).collect(),
        active_file: input.active_file.clone(),
        limit: Some(limits.files),
        ..Ask::default()
    };
    let gate = answers::gate_in(cx, warm, None, &ask).await?;
    let paths: Vec<String> = gate.files.iter().map(|file| file.path.clone()).collect();
    let texts = changes::texts(place, target, MadeBy::Person, &paths).await?;
    let candidates = gate.files.iter().filter_map(|file| candidate(file, &texts));
    let given = given(candidates, limits.briefing_characters);
    let model = first_model(cx, owner, tier).await?;
    let family = model.as_ref().map(|(name, _)| name.as_str());
    let modules =
        prompts::modules_for(&input.message, mode, &paths.iter().map(String::as_str).collect::<Vec<_>>());
    let told: Vec<&str> = before.briefings.iter().map(String::as_str).collect();
    let shown: Vec<Shown<'_>> = given.iter().map(Given::shown).collect();
    let briefing =
        prompts::briefing(&Parts { mode, strategy, family, modules: &modules, files: &shown, told: &told });
    let zone = schedules::zone_of(cx, owner, None).await?;
    let briefing = format!("{briefing}{}\n", domain::prompts::now(cx.clock.now(), &zone));
    let data = [("Page", &input.dom), ("Diagnostics", &input.diagnostics)];
    let data = data.into_iter().filter_map(|(title, text)| Some(quoted(title, text.as_deref()?)));
    let briefing = data.fold(briefing, |briefing, text| briefing + &text);
    let bytes = before.bytes + input.message.len() + briefing.len();
    let estimate_micros = model.map_or(0, |(_, price)| price.cost_micros(&tokens_of(mode, tier, bytes)));
    let files = given.iter().map(|given| given.path.to_owned()).collect();
    let recalled = recalled.await.map_err(|error| Error::internal(error.to_string()))?;
    let turn = ThemeTurn {
        project_id: project,
        mode,
        tier,
        strategy,
        why: classified.why,
        files,
        change_set_id: change_set,
        estimate_micros,
        escalations: Vec::new(),
        helper: None,
    };
    Ok(Planned { chat: input.chat_id, turn, briefing, recalled })
}

/// A file of the gate as the briefing may show it. `None` if its text was not found.
fn candidate<'a>(
    file: &'a GatedView,
    texts: &'a BTreeMap<String, (String, String)>,
) -> Option<Candidate<'a>> {
    let (version, text) = texts.get(&file.path)?;
    let row = |feature: &'a FeatureView| {
        let [first, last] = feature.range;
        Row { first, last, name: &feature.name }
    };
    let why = match file.why {
        theme::gating::Passed::Target => "the request is about it",
        theme::gating::Passed::Active => "the person has it open",
        theme::gating::Passed::Related => "files above use it, or it uses them",
    };
    Some(Candidate {
        path: &file.path,
        version,
        text,
        why,
        ranges: &file.ranges,
        outline: file.outline.iter().flatten().map(row).collect(),
    })
}

/// What a small model says of a message that the rules are not sure about. `None` if it does not answer in time, or its answer can't be read: then
/// the rules decide alone.
async fn sorted(cx: &Cx, owner: &Owner, asked: &Asked<'_>) -> Option<small::Answer> {
    let limits = ModelLimits {
        first_byte: SORTS_WITHIN,
        idle: SORTS_WITHIN,
        deadline: SORTS_WITHIN,
        retry: Retry { tries: 1, ..Retry::default() },
        ..ModelLimits::default()
    };
    let models = cx.models.with_limits(limits).ok()?;
    let classifier = AskModel { role: AgentRole::Classifier, ..AskModel::default() };
    let route = model_choice::route_of(&models, cx, owner, &classifier, 0).await.ok()?.ok()?;
    // The demo follows plain rules itself.
    if route.candidates[0].model.vendor == Vendor::Demo {
        return None;
    }
    let (system, question) = small::question(asked);
    let request = ModelRequest {
        system: vec![SystemBlock::cached(system, CacheTtl::OneHour)],
        messages: vec![Message::user(question)],
        max_output_tokens: SORT_TOKENS,
        output_schema: Some(small::schema()),
        ..ModelRequest::default()
    };
    let mut budget = WorkBudget { name: "the ceiling of sorting a message", spent: 0, ceiling: SORT_MICROS };
    match ask::ask_once(cx, owner, &route.candidates, &request, &mut budget).await {
        Ok(ModelAnswer { answered: Answered::Text(text), .. }) => small::read(&text),
        Ok(_) => None,
        Err(Failure::Failed(error)) => {
            tracing::warn!(cause = %error.causes(), "a message was sorted by rules alone");
            None
        }
        Err(Failure::Unusable(reason)) => {
            tracing::warn!(reason, "a message was sorted by rules alone");
            None
        }
        Err(Failure::Stop(stop) | Failure::TooDear(stop)) => {
            tracing::warn!(reason = stop.reason, "a message was sorted by rules alone");
            None
        }
    }
}

/// The name of the model that a task of this size gets, and its price. `None` if no provider can be called; the turn itself will say so.
async fn first_model(cx: &Cx, owner: &Owner, tier: TaskTier) -> Result<Option<(String, ModelPrice)>> {
    let Ok(route) = model_choice::route(cx, owner, &ask_of(tier), 0).await? else { return Ok(None) };
    let first = &route.candidates[0];
    Ok(Some((first.model.model.as_str().to_owned(), first.price)))
}

fn ask_of(tier: TaskTier) -> AskModel {
    AskModel { role: AgentRole::Lead, task: Some(tier), ..AskModel::default() }
}

/// How themes lead their turns.
pub static LEADS: AreaLead = AreaLead {
    system,
    task: helpers::message,
    lead: led,
    refusal,
    has_edited,
    begins,
    edited: helpers::edited,
    changed,
};

fn system(turn: &ThemeTurn) -> Vec<SystemBlock> {
    let texts = if turn.helper.is_some() { prompts::system_of_helpers() } else { prompts::system() };
    texts.into_iter().map(|text| SystemBlock::cached(text, CacheTtl::OneHour)).collect()
}

fn led(turn: &ThemeTurn, steps: &[Step]) -> Lead {
    if let Some(helper) = &turn.helper {
        let steps = helpers::steps_of(helper.role, turn.tier);
        let (ask, tier) = (helpers::ask_of(helper, turn.tier), ModelTier::Standard);
        return Lead { escalations: Vec::new(), steps, reply_tokens: REPORT_TOKENS, ask, tier, nudge: None };
    }
    let escalations = lead::escalations(turn, steps);
    let tier = escalations.last().map_or(turn.tier, |last| last.tier);
    let strategy = escalations.last().map_or(turn.strategy, |last| last.strategy);
    let limits = limits_of(turn.mode, tier, strategy);
    Lead {
        escalations,
        steps: limits.steps,
        reply_tokens: limits.reply_tokens,
        ask: ask_of(tier),
        tier: if strategy == TurnStrategy::GodMode { ModelTier::Deep } else { ModelTier::Standard },
        nudge: lead::nudge(turn, steps),
    }
}

fn begins(steps: &[Step], at: usize) -> (usize, bool) {
    let helpers::Begins { count, is_first } = helpers::begins(steps, at);
    (count, is_first)
}

fn refusal(turn: &ThemeTurn, steps: &[Step], call: &Call) -> Option<String> {
    lead::refusal(turn, steps, call)
}

fn has_edited(steps: &[Step]) -> bool {
    lead::has_edited(steps)
}

/// Where the edits of a turn are now. The set of its conversation may have been applied since the turn was planned; then the turn has one of
/// its own.
pub(crate) async fn change_set_now(
    place: Place<'_>,
    planned: ChangeSetId,
    run: RunId,
) -> Result<ChangeSetId> {
    let is_applied =
        changes::known(place, planned).await?.is_some_and(|set| set.state == ChangeSetState::Applied);
    Ok(if is_applied { ChangeSetId::from_uuid(run.uuid()) } else { planned })
}

/// The most files, and the most bytes of a diff, that the record of a run has.
const MAX_RECORDED: usize = 50;
const MAX_RECORDED_DIFF: usize = 12_000;

/// What a run has changed: its change set, and the files in it.
fn changed(cx: Cx, owner: Owner, ChangedBy { run, project, planned }: ChangedBy) -> Changed {
    async move {
        let place = Place { cx: &cx, owner: &owner, project };
        let own = ChangeSetId::from_uuid(run.uuid());
        let set = match (changes::known(place, own).await?, planned) {
            (None, Some(planned)) => changes::known(place, planned).await?,
            (set, _) => set,
        };
        let Some(set) = set.filter(|set| !set.files.is_empty()) else { return Ok(None) };
        let diff = changes::diff(place, set.change_set_id).await?;
        let mut diff = String::from_utf8_lossy(&diff).into_owned();
        let end = diff.floor_char_boundary(MAX_RECORDED_DIFF);
        let is_cut = end < diff.len();
        diff.truncate(end);
        let files = set.files.iter().take(MAX_RECORDED);
        let changes = ThemeChanges {
            project_id: project,
            change_set_id: set.change_set_id,
            is_applied: set.state == ChangeSetState::Applied,
            files: files
                .map(|file| ThemeChange { path: file.path.clone(), added: file.added, removed: file.removed })
                .collect(),
            more: set.files.len().saturating_sub(MAX_RECORDED),
            diff,
            is_cut,
        };
        let event = json!({
            "project_id": project, "change_set_id": set.change_set_id, "state": set.state, "hash": set.hash,
            "files": set.files,
        });
        Ok(Some((event, changes)))
    }
    .boxed()
}
