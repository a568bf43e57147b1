//! When a new document begins, and how an update merges into a document.
//!
//! The start of a workflow resets the document. A prompt that begins with PLAN always starts a workflow. A prompt that
//! begins with AUTO starts one only in the first round of a task. A later round has the same prompt, no prompt, or a
//! word like "continue"; any other prompt is the first round of another task. Updates never reset. Each update merges
//! into the only section of its mode: exact duplicates are dropped, and items keep the order in which they were first
//! seen.

use std::collections::HashSet;

use jiff::Timestamp;

use super::document::{
    Confidence, Document, Mode, RecommendedAgent, Section, agent_name, line, whole_seconds,
};
use super::{MAX_ITEM, MAX_ITEMS, MAX_TITLE, ModeRequest};
use crate::validate::FieldErrors;

/// The additions of an assistant to the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    pub title: Option<String>,
    pub task: Option<String>,
    pub decisions: Vec<String>,
    pub progress: Vec<String>,
    pub findings: Vec<String>,
    pub recommendations: Vec<String>,
    pub notes: Vec<String>,
    pub recommended_act_agent: Option<String>,
    /// 0 to 1. With an agent, or for the agent that is already recommended.
    pub recommended_act_agent_confidence: Option<f64>,
    pub status: Option<String>,
}

/// The status that ends an automatic workflow.
pub const COMPLETED: &str = "completed";

/// Prompts that continue an automatic workflow, in lower case. Only a whole prompt counts.
const CONTINUATIONS: [&str; 24] = [
    "go on",
    "continue",
    "please continue",
    "continue please",
    "keep going",
    "carry on",
    "proceed",
    "resume",
    "next",
    "next round",
    "next iteration",
    "계속",
    "계속해",
    "계속해줘",
    "続けて",
    "続けてください",
    "続行",
    "继续",
    "请继续",
    "继续吧",
    "continúa",
    "continuar",
    "sigue",
    "adelante",
];

/// Whether a prompt begins a workflow, and therefore a new document.
#[must_use]
pub fn begins(request: &ModeRequest, document: Option<&Document>) -> bool {
    let Some(document) = document else { return matches!(request.mode, Mode::Plan | Mode::Auto) };
    match request.mode {
        Mode::Plan => request.is_explicit(),
        Mode::Act | Mode::Eval => false,
        Mode::Auto => !document
            .section(Mode::Auto)
            .is_some_and(|section| is_next_round(section, document, &request.prompt)),
    }
}

/// Whether an AUTO prompt continues the current workflow.
fn is_next_round(section: &Section, document: &Document, prompt: &str) -> bool {
    if section.status.as_deref() == Some(COMPLETED) {
        return false;
    }
    let words = prompt.trim().trim_end_matches(['.', '!', '…', '。', '！']).to_lowercase();
    let begun_with = section.begun_with.as_ref().or(document.task.as_ref());
    words.is_empty()
        || CONTINUATIONS.contains(&words.as_str())
        || begun_with.is_some_and(|begun| *begun == shortened(prompt.trim()).0)
}

/// The document at the beginning of a workflow, and whether the prompt was too long to be stored completely as the
/// task.
#[must_use]
pub fn begin(
    mode: Mode,
    prompt: &str,
    recommended: Option<RecommendedAgent>,
    now: Timestamp,
) -> (Document, bool) {
    let now = whole_seconds(now);
    let (task, cut) = shortened(prompt.trim());
    let task = Some(task).filter(|task| !task.is_empty());
    let begun_with = task.clone().filter(|_| mode == Mode::Auto);
    let section = Section { recommended_act_agent: recommended, begun_with, ..Section::new(mode, now) };
    (Document { title: None, task, created_at: now, updated_at: now, sections: vec![section] }, cut)
}

fn shortened(prompt: &str) -> (String, bool) {
    let characters = prompt.chars().count();
    if characters <= MAX_ITEM {
        return (prompt.to_owned(), false);
    }
    let kept = MAX_ITEM - 40;
    let head: String = prompt.chars().take(kept).collect();
    (format!("{head}… [{} more characters]", characters - kept), true)
}

impl Update {
    fn lists(&self) -> [(&'static str, &Vec<String>); 5] {
        [
            ("decisions", &self.decisions),
            ("progress", &self.progress),
            ("findings", &self.findings),
            ("recommendations", &self.recommendations),
            ("notes", &self.notes),
        ]
    }

    /// Checks the limits of one call.
    ///
    /// # Errors
    /// Every invalid field with its limit.
    pub fn check(&self) -> Result<(), FieldErrors> {
        let mut errors = FieldErrors::default();
        for (field, text, max) in [("title", &self.title, MAX_TITLE), ("task", &self.task, MAX_ITEM)] {
            if let Some(text) = text {
                errors.length(field, text, 1, max);
            }
        }
        let mut items = 0;
        for (name, list) in self.lists() {
            items += list.len();
            for (i, item) in list.iter().enumerate() {
                errors.length(&format!("{name}[{i}]"), item, 1, MAX_ITEM);
            }
        }
        if items > MAX_ITEMS {
            errors.add(
                "items",
                format!("one call may bring at most {MAX_ITEMS} items, this one brings {items}"),
            );
        }
        agent_name(&mut errors, "recommendedActAgent", self.recommended_act_agent.as_deref());
        if let Some(Err(invalid)) = self.recommended_act_agent_confidence.map(Confidence::try_from) {
            errors.add("recommendedActAgentConfidence", invalid.to_string());
        }
        line(&mut errors, "status", self.status.as_deref());
        errors.into_result(())
    }
}

impl Document {
    /// The document after merging an update of one mode. An update without new content changes nothing.
    ///
    /// # Errors
    /// Every invalid field with its limit, or the document if it would become too large.
    pub fn updated(&self, mode: Mode, update: &Update, now: Timestamp) -> Result<Self, FieldErrors> {
        update.check()?;
        let now = whole_seconds(now);
        let mut new = self.clone();
        if let Some(title) = &update.title {
            new.title = Some(title.clone());
        }
        // The task of a plan is the task of the document. The other modes may work on a part of it.
        let whole = matches!(mode, Mode::Plan | Mode::Auto);
        if let Some(task) = update.task.as_ref().filter(|_| whole) {
            new.task = Some(task.clone());
        }
        let other_task =
            update.task.as_ref().filter(|task| !whole && new.task.as_ref() != Some(task)).cloned();
        let section = new.section_mut(mode, now);
        if other_task.is_some() {
            section.task = other_task;
        }
        if let Some(status) = &update.status {
            section.status = Some(status.clone());
        }
        merge_agent(section, update)?;
        for (list, new) in [
            (&mut section.decisions, &update.decisions),
            (&mut section.progress, &update.progress),
            (&mut section.findings, &update.findings),
            (&mut section.recommendations, &update.recommendations),
            (&mut section.notes, &update.notes),
        ] {
            merge(list, new);
        }
        if new == *self {
            return Ok(new);
        }
        new.section_mut(mode, now).updated_at = now;
        new.updated_at = now;
        new.validated()
    }
}

fn merge_agent(section: &mut Section, update: &Update) -> Result<(), FieldErrors> {
    let field = "recommendedActAgentConfidence";
    let confidence = update
        .recommended_act_agent_confidence
        .map(Confidence::try_from)
        .transpose()
        .map_err(|invalid| FieldErrors::one(field, invalid.to_string()))?;
    if let Some(name) = &update.recommended_act_agent {
        section.recommended_act_agent = Some(RecommendedAgent { name: name.clone(), confidence });
    } else if confidence.is_some() {
        let agent = section.recommended_act_agent.as_mut();
        let agent = agent.ok_or_else(|| {
            FieldErrors::one(field, "needs recommendedActAgent: no agent is recommended yet")
        })?;
        agent.confidence = confidence;
    }
    Ok(())
}

/// Adds the items that are not in the list yet. A document of 256 KiB may have tens of thousands of items, so items are
/// not compared one by one.
pub(super) fn merge(list: &mut Vec<String>, new: &[String]) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    for item in new {
        if known.insert(item.clone()) {
            list.push(item.clone());
        }
    }
}
