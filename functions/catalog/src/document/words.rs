//! The meanings of common names, for properties and parameters without a description of their own.

use serde_json::{Value, json};

use super::{each_operation, each_schema};

pub(super) const INFO: &str = "AI agents that keep their appointments, in your own AWS account.\n\n\
    You set an agent up by talking to it. It delivers assets now, and performs actions later, on a schedule. What you \
    approve is what runs; `why` explains what happened at each due time.\n\n\
    Lists take `limit` and `cursor`, and return `data`, `next_cursor` and `has_more`. The search in the files of a theme \
    (`grep`) is different: it continues with `from` and `from_line`. Errors are problems \
    (RFC 9457) with a stable `code`. Times are RFC 3339 in UTC, and money is in micro-dollars. JSON bodies with \
    unknown fields are refused.\n\n\
    A turn of a model is a run. It streams as server-sent events; with `Accept: application/json` the \
    answer is the finished result.";

pub(super) fn tags() -> Value {
    json!([
        {"name": "account", "description": "The account: its settings, keys, limits, usage, export, import and deletion."},
        {"name": "actions", "description": "Work that an agent does later: defined, approved, scheduled, run, explained."},
        {"name": "agents", "description": "Agents: set up by talking, or written by hand."},
        {"name": "assets", "description": "The deliverables of agents, with every version of their contents."},
        {"name": "catalog", "description": "The service about itself."},
        {"name": "chats", "description": "Turns with an agent, and saved chats."},
        {"name": "console", "description": "The pages for people."},
        {"name": "memory", "description": "What is remembered of conversations and work: read, search, correct, forget."},
        {"name": "context", "description": "The memory of a coding assistant: context documents, and the logs of its agents."},
        {"name": "docs", "description": "Living documents: texts that describe a project and keep up with its commits."},
        {"name": "mcp", "description": "The same functions over the Model Context Protocol."},
        {"name": "models", "description": "The models that calls use, and the choice of an account."},
        {"name": "overview", "description": "Everything that an owner has, at a glance: what waits for a person, a day, all runs, a search."},
        {"name": "practices", "description": "Practices: habits that a person tracks, with a check-in a day and streaks."},
        {"name": "jobs", "description": "Background jobs: what the platform has done without a request."},
        {"name": "notices", "description": "What you are told, where, and what became of it."},
        {"name": "projects", "description": "Projects, which hold a theme, context documents and living documents."},
        {"name": "proposals", "description": "Proposals of models, which wait for a person's approval."},
        {"name": "runs", "description": "All runs, of chats and of actions."},
        {"name": "watchdog", "description": "What is wrong, and what was said about it."},
        {"name": "watched", "description": "Schedules that something else runs, and whether they ran."},
        {"name": "themes", "description": "A Shopify theme: its files, and which of them a request is about."},
    ])
}

/// A name of a property or parameter, and its general meaning.
const NAMES: &[(&str, &str)] = &[
    ("action", "The action."),
    ("action_id", "The action."),
    ("action_state", "The current state of the action."),
    ("action_title", "The title of the action."),
    ("actions_completed", "How many actions have been completed."),
    ("actions_failed", "How many actions have failed."),
    ("active_file", "The file that is open in the editor. It gets a small bonus."),
    ("agent", "The agent."),
    ("agent_id", "The agent."),
    ("agent_name", "The name of the agent."),
    ("agent_type", "The type of the agent."),
    ("approval", "The current approval, if there is one."),
    ("approved", "Whether it was approved."),
    ("approved_at", "When it was approved."),
    ("asset_id", "The asset."),
    ("asset_type", "The type of the deliverable."),
    ("assets", "How many assets have been saved."),
    ("attempts", "How often it was tried."),
    ("budget", "What it may cost."),
    ("bytes", "The size in bytes."),
    ("cache_read_tokens", "Input that was read from a cache."),
    ("card_id", "The card."),
    ("catch_up", "What happens to fire times that are found late, after an outage."),
    ("cause", "Why this version was written."),
    ("change", "What would change."),
    ("channel_id", "The channel."),
    ("chat_id", "The chat."),
    ("check", "The check."),
    ("code", "A stable code for programs."),
    ("confidence", "How sure it is."),
    ("confident", "Whether a file to edit is very likely among the first three."),
    ("content", "The content."),
    ("cost_micros", "Its cost, in micro-dollars."),
    ("count", "How many."),
    ("created_at", "When it was created."),
    ("cursor", "Where to continue: `next_cursor` of the previous page."),
    ("data", "The items, in order."),
    ("date", "The day."),
    ("decisions", "What was decided."),
    ("delivery_id", "The delivery."),
    ("description", "What it is about, in a few sentences."),
    ("detail", "What went wrong, for people."),
    ("due_at", "The due time."),
    ("edge", "How the files are related."),
    ("edit_order", "The files to edit, each after the files that it needs."),
    ("enriched", "What a model wrote about this content, if the project wants that."),
    ("error", "Why it failed, if it did."),
    ("event", "What happened."),
    ("expected_output", "What a good result is. The output is checked against it. Up to 5,000 characters."),
    ("expires_at", "When it expires."),
    ("fact_id", "The fact."),
    ("file_size_bytes", "The size of the log as a file, in bytes."),
    ("findings", "What was found."),
    ("finished_at", "When it ended."),
    ("from", "The file that refers to the other one."),
    ("functions", "The names of the functions."),
    ("generated_actions", "The actions that were defined from this chat."),
    ("generated_assets", "The assets that were saved from this chat."),
    ("goal", "What it is for."),
    ("grants", "The names of the tools that it may call unattended."),
    ("has_more", "Whether there is a next page."),
    ("hash", "The hash of the content that was approved."),
    ("hook_filter", "Which sub-agents' hooks are logged: `all`, or prefixes of their types."),
    ("id", "Its id."),
    ("import", "The newest import."),
    ("import_id", "The import."),
    ("indexed_at", "When the map was computed."),
    ("instructions", "How to do the work. Up to 20,000 characters."),
    ("item", "What is checked: a job, a queue, or the id of what a person owns."),
    ("key_files", "The files that matter most, best first."),
    ("key_id", "The API key, not its secret."),
    ("kind", "Its kind."),
    ("last_modified", "When it last changed."),
    ("line", "The line, from 1."),
    ("lines", "How many lines the file has."),
    ("live_run", "The run that is pending, running or waiting for a person."),
    ("matches", "The lines that match, by path and line."),
    ("max_tokens", "The requested maximum of tokens."),
    ("message_id", "The message."),
    ("messages", "The messages, oldest first."),
    ("metadata", "Data about the log as a whole."),
    ("method", "The method to upload with."),
    ("metrics", "What the agent has done, in numbers."),
    ("mode", "The mode that wrote this section."),
    ("model_tier", "How capable and expensive its model is."),
    ("monday", "The Monday that the week begins with."),
    ("name", "The name."),
    ("nature", "Whether the relation is certain."),
    ("next_cursor", "Send it as `cursor` to get the next page. It is absent on the last page."),
    ("next_due", "When it is due next."),
    ("note", "What the person noted."),
    ("notes", "What else was noted."),
    ("overlap", "What happens to a fire time while an earlier run is live."),
    ("path", "The path of the file in the theme."),
    ("practice_id", "The practice."),
    ("say", "Whether something is wrong (`alert`), or right again (`recovery`)."),
    ("watched_id", "The watched schedule."),
    ("report_id", "The report."),
    ("tidy_id", "The clean-up."),
    ("tool", "The name of the tool."),
    ("primary_agent", "The agent that did most of it."),
    ("priority", "How urgent it is."),
    ("progress", "What was done."),
    ("project_id", "The project. `default` is the project that every owner has."),
    ("proposal_id", "The proposal."),
    ("change_set_id", "The change set."),
    ("purpose", "What the file is for, in a sentence or two."),
    ("range", "The first and the last line, from 1."),
    ("ranges", "The lines to look at first, each as first and last line, from 1."),
    ("reason", "The reason as a sentence."),
    ("reason_code", "The reason as a stable code for programs."),
    ("reasons", "Which words of the request were found where."),
    ("export_id", "The export."),
    ("receipt_id", "The receipt of a deletion."),
    ("recommendations", "What should be done next."),
    ("recommended_act_agent", "The agent that should act on the plan."),
    ("refused_at", "When it was refused."),
    ("related", "Files that are connected to the targets."),
    ("relationships", "How the key files are related."),
    ("retryable", "Whether the same request may succeed later."),
    ("role", "Who wrote it: `user` or `assistant`."),
    ("run_id", "The run."),
    ("schedule", "When it is due."),
    ("score", "How good the output is in the judgement of the check, 0 to 100."),
    ("searched_files", "How many files were searched."),
    ("sections", "One section per mode, in the order in which they were created."),
    ("session_id", "The session of the coding assistant."),
    ("source", "Whether the stored map answered, or the files were read for it."),
    ("started_at", "When it began."),
    ("state", "Its state."),
    ("status", "Its state."),
    ("streak", "How many due days or weeks in a row it was done."),
    ("success_criteria", "How to recognise that the goal is reached."),
    ("target", "How often it should be done."),
    ("task", "What was asked for."),
    ("task_config", "The work, and the expected result."),
    ("timeline", "A date, a range or `Ongoing`."),
    ("timezone", "The IANA name of a time zone."),
    ("title", "The title."),
    ("today", "Today, in its time zone."),
    ("took_us", "How long the answer took, in microseconds."),
    ("total_entries", "How many entries the log has."),
    ("unit", "What is counted."),
    ("updated_at", "When it last changed."),
    ("upload", "Where to upload the archive, if the import was requested without one."),
    ("url", "The address to upload to."),
    ("usage", "The tokens that were used."),
    ("version", "The number of the version, from 1."),
    ("why", "Why an agent should see it."),
    ("workflow", "The workflow of the project. Default: `default`."),
    ("written_at", "When it was written."),
    ("year", "The year."),
];

fn meaning(name: &str) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Describes each property and parameter without a description by its name's general meaning.
pub(super) fn describe(document: &mut Value) {
    each_schema(document, &mut |schema| {
        for (name, property) in
            schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten()
        {
            if let (Some(text), Some(property)) = (meaning(name), property.as_object_mut()) {
                property.entry("description").or_insert(text.into());
            }
        }
    });
    each_operation(document, &mut |_, _, operation| {
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            if parameter["description"].as_str().is_none_or(str::is_empty)
                && let Some(text) = parameter["name"].as_str().and_then(meaning)
            {
                parameter["description"] = text.into();
            }
        }
    });
}
