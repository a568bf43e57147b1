//! The tools of a theme: what a model's call does, and what it is told.
//!
//! The definitions are [`domain::tools::theme_tools`]. An agent's run has a change set of its own, with the id of the run. A client of MCP
//! has the newest open one that it made. So nothing is in the theme before it is applied.

use domain::ids::ChangeSetId;
use domain::projects::Project;
use domain::tools::ToolDef;
use domain::tools::theme_tools as defs;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::context::{AreaAnswer, AreaCall, AreaTool};
use shared::error::{Error, Result};
use shared::flows::existing;
use shared::store::Once;
use shared::store::table::Write;
use theme::text::LineRange;
use theme_edit::{Call, Change, FileOutcome, Outcome, Problem};

use crate::answers::{self, Ask};
use crate::changes::{
    self, ChangeSetDetail, ChangeSetState, Edited, Looked, MadeBy, Place, Plan, Prepared, Reading, Target,
};
use crate::helpers;

/// The longest diff that a model is shown, in bytes.
const MAX_DIFF: usize = 60_000;

/// The most problems of a check that a model is shown.
const MAX_PROBLEMS: usize = 100;

/// The most files that a search shows.
const MAX_FOUND: usize = 10;

macro_rules! loop_tools {
    ($($def:ident)*; $($helper:ident)*) => {
        &[
            $(AreaTool { def: &defs::$def, perform: |call| in_run(&defs::$def, call) },)*
            $(AreaTool { def: &defs::$helper, perform: helpers::help },)*
        ]
    };
}

/// The tools, for agents that have a theme.
pub const OF_LOOP: &[AreaTool] = loop_tools!(
    LIST_FILES READ_FILE READ_LINES EXTRACT_REGION GREP_CONTENT SEARCH_FILES THEME_CHECK EDIT_LINES SEARCH_REPLACE WRITE_FILE
    EDIT_NODE CREATE_FILE DELETE_FILE RENAME_FILE UNDO_EDIT SHOW_CHANGES APPLY_CHANGES GET_DEPENDENCY_GRAPH FIND_REFERENCES
    TRACE_RENDERING_CHAIN GET_SCHEMA_SETTINGS CHECK_THEME_SETTING DIAGNOSE_VISIBILITY ANALYZE_VARIANTS CHECK_PERFORMANCE
    GENERATE_PLACEHOLDER RUN_COMMAND READ_PLAN UPDATE_PLAN;
    RUN_SPECIALIST RUN_REVIEW GET_SECOND_OPINION SPAWN_WORKERS
);

/// The text for the model, or why nothing was done.
pub type Told = std::result::Result<String, String>;

fn in_run(def: &'static ToolDef, call: AreaCall) -> BoxFuture<'static, Result<AreaAnswer>> {
    async move {
        let AreaCall { cx, owner, project, run, agent: agent_id, change_set, input, .. } = call;
        let place = Place { cx: &cx, owner: &owner, project };
        let by = MadeBy::Run { run_id: run, agent_id };
        let set = match change_set {
            Some(planned) => crate::turn::change_set_now(place, planned, run).await?,
            None => ChangeSetId::from_uuid(run.uuid()),
        };
        let target = Target::Own(set);
        let done = match Asked::read(def, input) {
            Ok(Asked::Edit(call)) => match changes::prepare(place, target, by, &[call]).await {
                Ok(Ok(Prepared { edited, write, objects })) => {
                    let told = Ok(edit_in_words(&edited));
                    let exists = shared::store::Store::project_exists(&owner, project);
                    let writes: Vec<Write> = write.into_iter().chain(exists).collect();
                    return Ok(AreaAnswer { writes, objects, ..AreaAnswer::only(told) });
                }
                Ok(Err(refused)) => Ok(Err(refused.to_string())),
                Err(error) => Err(error),
            },
            Ok(Asked::UpdatePlan(NewPlan { text, version })) => {
                let done = changes::prepare_plan(place, target, by, &text, version).await;
                if let Ok(Ok((write, plan))) = done {
                    let exists = shared::store::Store::project_exists(&owner, project);
                    let writes = [write].into_iter().chain(exists).collect();
                    let told = Ok(plan_was_written(&plan));
                    return Ok(AreaAnswer { writes, ..AreaAnswer::only(told) });
                }
                done.map(|refused| Err(refused.map_or_else(plan_has_version, |_| String::new())))
            }
            Ok(asked) => perform(place, &Once::none(), target, by, asked).await,
            Err(why) => Ok(Err(why)),
        };
        Ok(AreaAnswer::only(for_model(done)?))
    }
    .boxed()
}

/// What the caller did wrong is told to the model. Everything else is an error of the run.
fn for_model(done: Result<Told>) -> Result<Told> {
    match done {
        Err(error) if error.status().is_client_error() => Ok(Err(match error {
            Error::Invalid(errors) => errors.to_string(),
            other => other.detail(),
        })),
        done => done,
    }
}

/// Performs a call of a client that is no run. Edits are stored.
///
/// # Errors
/// If the table or the bucket does not answer, or the caller asks for what does not exist.
pub async fn call(
    place: Place<'_>,
    once: &Once,
    target: Target,
    by: MadeBy,
    def: &'static ToolDef,
    input: Value,
) -> Result<Told> {
    match Asked::read(def, input) {
        Ok(asked) => for_model(perform(place, once, target, by, asked).await),
        Err(why) => Ok(Err(why)),
    }
}

/// Whether assistants may apply change sets in this project.
#[must_use]
pub const fn may_apply(project: &Project) -> bool {
    project.assistants_apply
}

/// What a call asks for.
enum Asked {
    Read(Reading),
    Look(theme_tools::Call),
    Search(Search),
    Check(Check),
    Edit(Call),
    Show,
    Apply(Apply),
    ReadPlan,
    UpdatePlan(NewPlan),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPlan {
    text: String,
    version: u64,
}

/// No arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    request: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    new_only: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    hash: String,
}

impl Asked {
    /// # Errors
    /// Which argument is wrong, for the model.
    fn read(def: &'static ToolDef, input: Value) -> std::result::Result<Self, String> {
        let mut input = if input.is_null() { json!({}) } else { input };
        let Some(fields) = input.as_object_mut() else {
            return Err("the arguments must be an object".to_owned());
        };
        if fields.contains_key("tool") {
            return Err("unknown field `tool`".to_owned());
        }
        // An argument that is null was left out.
        fields.retain(|_, value| !value.is_null());
        let tagged = |mut input: Value| {
            input["tool"] = json!(def.name);
            input
        };
        match def.name {
            "search_files" => parsed(input).map(Self::Search),
            "theme_check" => parsed(input).map(Self::Check),
            "show_changes" => parsed::<Nothing>(input).map(|Nothing {}| Self::Show),
            "apply_changes" => parsed(input).map(Self::Apply),
            "read_plan" => parsed::<Nothing>(input).map(|Nothing {}| Self::ReadPlan),
            "update_plan" => parsed(input).map(Self::UpdatePlan),
            name if theme_tools::TOOLS.iter().any(|tool| tool.name == name) => {
                theme_tools::Call::parse(name, input).map(Self::Look).map_err(|error| error.to_string())
            }
            _ if def.granted_as == Some(defs::EDIT) => parsed(tagged(input)).map(Self::Edit),
            _ => parsed(tagged(input)).map(Self::Read),
        }
    }
}

fn parsed<T: DeserializeOwned>(input: Value) -> std::result::Result<T, String> {
    serde_json::from_value(input).map_err(|error| error.to_string())
}

async fn perform(place: Place<'_>, once: &Once, target: Target, by: MadeBy, asked: Asked) -> Result<Told> {
    match asked {
        Asked::Read(reading) => changes::read(place, target, by, reading).await,
        Asked::Look(call) => match changes::look(place, target, by, call).await? {
            Looked::Text(told) => Ok(told),
            Looked::Check(path) => check(place, target, by, path, true).await,
        },
        Asked::Edit(call) => {
            let edited = changes::edit(place, once, target, by, &[call]).await?;
            let told = edit_in_words(&edited);
            if edited.outcome.edit.is_none() {
                return Ok(Ok(told));
            }
            Ok(Ok(match applied_at_once(place, by, &edited).await? {
                None => told,
                Some(applied) => format!("{told}\n{applied}"),
            }))
        }
        Asked::Show => changes::show(place, target, by).await.map(|detail| Ok(changes_in_words(&detail))),
        Asked::Check(Check { path, new_only }) => check(place, target, by, path, !new_only).await,
        Asked::Search(Search { request }) => {
            changes::asked(place, by, &request);
            let ask = Ask { request, limit: Some(MAX_FOUND), ..Ask::default() };
            let index = changes::index(place, target, by).await?;
            let found = answers::lookup_in(place.cx, index, &ask).await?;
            Ok(serde_json::to_string(&found).map_err(|error| error.to_string()))
        }
        Asked::ReadPlan => Ok(Ok(match changes::plan(place, target, by).await? {
            None => "there is no plan (version 0)".to_owned(),
            Some(Plan { text, version }) => format!("plan version {version}\n{text}"),
        })),
        Asked::UpdatePlan(NewPlan { text, version }) => {
            let done = changes::update_plan(place, once, target, by, &text, version).await?;
            Ok(done.map(|plan| plan_was_written(&plan)).map_err(plan_has_version))
        }
        Asked::Apply(Apply { hash }) => {
            let project = existing::project(place.cx, place.owner, place.project).await?.value;
            if !may_apply(&project) {
                return Ok(Err("not applied: in this project, a person applies the changes. They are kept, and the person sees them."
                    .to_owned()));
            }
            let set = changes::apply(place, once, target, by, &hash).await?;
            Ok(Ok(format!("applied: {} files of the theme have changed", set.files.len())))
        }
    }
}

/// How often an edit that is applied at once meets another one of the same change set.
const MAX_MET: usize = 8;

/// Applies the change set of an edit, if the project says that edits are applied at once. Returns what became of it.
async fn applied_at_once(place: Place<'_>, by: MadeBy, edited: &Edited) -> Result<Option<String>> {
    let project = existing::project(place.cx, place.owner, place.project).await?.value;
    if !(may_apply(&project) && project.apply_at_once) {
        return Ok(None);
    }
    let id = edited.change_set.change_set_id;
    let not = |why: &str| Ok(Some(format!("Not applied: {why}")));
    if !edited.at_once {
        return not(&format!("{id} was begun as a draft. apply_changes applies it, or a person"));
    }
    let target = Target::Id(id);
    for _ in 0..MAX_MET {
        let detail = changes::show(place, target, by).await?;
        if detail.change_set.state == ChangeSetState::Applied {
            return Ok(Some(format!("It is applied. A person can take {id} back.")));
        }
        if let Some(problem) = detail.problems.iter().find(|problem| problem.refused) {
            return not(&format!(
                "Shopify would refuse {}. Mend it, and all is applied with the next edit",
                problem.path
            ));
        }
        if let Some(why) = &detail.not_checked {
            return not(&format!("it was not checked ({why}). A person applies it"));
        }
        match changes::apply(place, &Once::none(), target, by, &detail.change_set.hash).await {
            Ok(_) => return Ok(Some(format!("It is applied. A person can take {id} back."))),
            // Another edit has come, or has applied it.
            Err(Error::Conflict { code: "changes_differ" | "change_set_applied", .. }) => {}
            Err(error) if error.status().is_client_error() => {
                return not(&format!("{}. undo_edit takes your edits of a file back", error.detail()));
            }
            Err(error) => return Err(error),
        }
    }
    not("other edits came meanwhile; all are applied with the next edit")
}

/// What is wrong in the theme as a change set has it, or with `whole` not set, only what its edits have added.
async fn check(
    place: Place<'_>,
    target: Target,
    by: MadeBy,
    path: Option<String>,
    whole: bool,
) -> Result<Told> {
    let problems = changes::problems(place, target, by, whole).await?;
    let of_path = |problem: &Problem| path.as_ref().is_none_or(|path| problem.path == *path);
    Ok(Ok(check_in_words(problems.into_iter().filter(of_path).collect())))
}

fn plan_was_written(plan: &Plan) -> String {
    format!("the plan has version {}", plan.version)
}

fn plan_has_version(version: u64) -> String {
    format!("not written: the plan has version {version}; read it with read_plan, and write all of it")
}

/// "line 3" or "lines 3–5".
fn lines_in_words(lines: &[LineRange]) -> String {
    let one = |LineRange { start, end }: &LineRange| match start == end {
        true => format!("line {start}"),
        false => format!("lines {start}–{end}"),
    };
    lines.iter().take(20).map(one).collect::<Vec<_>>().join(", ")
}

fn file_in_words(file: &FileOutcome) -> String {
    let version = file.version.map_or_else(String::new, |version| format!(", version {}", version.short()));
    let lines = match lines_in_words(&file.lines) {
        lines if lines.is_empty() => String::new(),
        lines => format!(": {lines} of {}", file.total_lines),
    };
    let what = match &file.change {
        Change::Created => "made".to_owned(),
        Change::Edited => "edited".to_owned(),
        Change::Deleted => "deleted".to_owned(),
        Change::MovedFrom { from } => format!("renamed from {from}"),
        Change::MovedTo { to } => format!("renamed to {to}"),
        Change::Undone { .. } => "taken back".to_owned(),
        Change::Outside | Change::Rebased => "as the theme has it".to_owned(),
    };
    format!("{} {what}{version}{lines}", file.path)
}

fn problem_in_words(problem: &Problem) -> String {
    let Problem { path, line, code, message, refused, excerpt, .. } = problem;
    let refused = if *refused { " Shopify would refuse the file." } else { "" };
    let excerpt = if excerpt.is_empty() { String::new() } else { format!("\n    {excerpt}") };
    format!("{path}:{line} {code}: {message}.{refused}{excerpt}")
}

fn edit_in_words(edited: &Edited) -> String {
    let Outcome { edit, files, calls, mentions } = &edited.outcome;
    let Some(edit) = edit else {
        let there = calls.iter().find_map(|call| call.there);
        let place = there.map_or_else(String::new, |lines| format!(" ({})", lines_in_words(&[lines])));
        return format!("nothing to do: the files are already like this{place}");
    };
    let mut parts = vec![format!("{}{edit} of {}", defs::EDITED, edited.change_set.change_set_id)];
    parts.extend(files.iter().map(file_in_words));
    let there: Vec<LineRange> = calls.iter().filter_map(|call| call.there).collect();
    if !there.is_empty() {
        parts
            .push(format!("not made, because the new text stands there already: {}", lines_in_words(&there)));
    }
    if !mentions.is_empty() {
        let places: Vec<String> = mentions
            .iter()
            .take(20)
            .map(|mention| format!("{} {}", mention.path, lines_in_words(&[mention.lines])))
            .collect();
        parts.push(format!("still named in: {}", places.join("; ")));
    }
    parts.extend(edited.not_checked.iter().map(|why| format!("It was not checked: {why}")));
    if !edited.lint.problems.is_empty() {
        parts.push("This edit has made wrong:".to_owned());
        parts.extend(edited.lint.problems.iter().map(problem_in_words));
    }
    parts.join("\n")
}

fn check_in_words(problems: Vec<Problem>) -> String {
    if problems.is_empty() {
        return "nothing is wrong".to_owned();
    }
    let refused = problems.iter().filter(|problem| problem.refused).count();
    let more = problems.len().saturating_sub(MAX_PROBLEMS);
    let mut parts =
        vec![format!("{} problems; Shopify would refuse files for {refused} of them", problems.len())];
    parts.extend(problems.iter().take(MAX_PROBLEMS).map(problem_in_words));
    if more > 0 {
        parts.push(format!("({more} more: ask for one `path`)"));
    }
    parts.join("\n")
}

fn changes_in_words(detail: &ChangeSetDetail) -> String {
    let set = &detail.change_set;
    if set.files.is_empty() {
        return "there are no edits".to_owned();
    }
    let state = match set.state {
        ChangeSetState::Open => "not applied",
        ChangeSetState::Applied => "applied",
    };
    let mut parts =
        vec![format!("{}, {state}, {} files, hash {}", set.change_set_id, set.files.len(), set.hash)];
    if !detail.conflicts.is_empty() {
        let paths: Vec<&str> = detail.conflicts.iter().map(|file| file.path.as_str()).collect();
        parts.push(format!(
            "Somebody else has changed these files, too: {}. A person decides.",
            paths.join(", ")
        ));
    }
    parts.extend(detail.not_checked.iter().map(|why| format!("They were not checked: {why}")));
    if !detail.problems.is_empty() {
        parts.push("These edits would make wrong:".to_owned());
        parts.extend(detail.problems.iter().map(problem_in_words));
    }
    let end = detail.diff.floor_char_boundary(MAX_DIFF.min(detail.diff.len()));
    parts.push(detail.diff[..end].to_owned());
    if end < detail.diff.len() {
        parts.push(format!("(the diff has {} bytes; this is the beginning)", detail.diff.len()));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use domain::tools::{HELPERS, THEME};

    use super::*;

    #[test]
    fn every_argument_of_a_definition_is_read() {
        let all: Vec<_> = THEME.iter().chain(HELPERS).copied().collect();
        assert_eq!(all, OF_LOOP.iter().map(|tool| tool.def).collect::<Vec<_>>(), "each has a performer");
        for def in THEME {
            let schema = (def.input)();
            for name in schema["properties"].as_object().unwrap().keys() {
                // No argument is an array of arrays, so the type is wrong, and the name is not.
                let told = Asked::read(def, json!({ name: [[[]]] })).err().unwrap_or_default();
                assert!(!told.contains("unknown field"), "{} {name}: {told}", def.name);
            }
            let unknown = Asked::read(def, json!({ "nonsense": 1 })).err();
            let is_told = unknown.as_deref().is_some_and(|told| told.contains("nonsense"));
            assert!(is_told, "{}: {unknown:?}", def.name);
        }
    }

    #[test]
    fn the_tag_of_calls_is_no_argument() {
        let told = Asked::read(&defs::READ_FILE, json!({"tool": "list_files", "path": "a"})).err();
        assert_eq!(told.as_deref(), Some("unknown field `tool`"));
        assert!(matches!(Asked::read(&defs::SHOW_CHANGES, Value::Null), Ok(Asked::Show)));
        assert!(Asked::read(&defs::SHOW_CHANGES, json!([])).is_err());
    }
}
