//! The page behind the link of a message: what is asked, and the forms with which its reader answers, pauses or corrects.

use std::fmt::Write;

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use domain::actions::ApprovalContent;
use domain::actions::cost::dollars;
use domain::notices::render::escape_html as escaped;
use domain::text::quoting::is_invisible;
use domain::validate::FieldErrors;

use crate::error::{Error, Result};
use crate::flows::actions::ApprovalView;
use crate::flows::answers::answer_links::{
    Asked, Done, MAX_CORRECTION, Question, Said, Steers, in_plain_words,
};

/// The longest form, in bytes: a text of 20,000 characters, each as `%F0%9F%A6%80`.
const MAX_FORM: usize = 256 * 1024;

/// Nothing is loaded from elsewhere, no script runs, and no other page shows this one or learns its address.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The fields of a form.
///
/// # Errors
/// 400 with the field that is missing or wrong.
pub fn said(body: &[u8]) -> Result<Said> {
    if body.len() > MAX_FORM {
        return Err(FieldErrors::one("body", format!("must have at most {MAX_FORM} bytes")).into());
    }
    let fields = fields(body);
    let field = |name: &str| fields.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    let needed = |name: &str| field(name).ok_or_else(|| Error::from(FieldErrors::one(name, "is required")));
    let answer = needed("answer")?;
    Ok(match answer.as_str() {
        "approve" => Said::Approve { hash: needed("hash")? },
        "words" => Said::Words { text: needed("text")?, seen: needed("seen")? },
        "allow" | "refuse" => {
            let call = needed("call")?;
            let call = call.parse().map_err(|_| FieldErrors::one("call", "must be the call of a card"))?;
            Said::Call { call, hash: needed("hash")?, allows: answer == "allow" }
        }
        "pause" => Said::Pause,
        "resume" => Said::Resume,
        "correct" => {
            let number = needed("number")?;
            if number.len() != 32 || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(FieldErrors::one("number", "must be the one of the page").into());
            }
            Said::Correct { text: needed("text")?, number }
        }
        _ => {
            let told = "must be approve, words, allow, refuse, pause, resume or correct";
            return Err(FieldErrors::one("answer", told).into());
        }
    })
}

/// The fields of a form. Browsers send each line break as two characters.
fn fields(body: &[u8]) -> Vec<(String, String)> {
    let fields = url::form_urlencoded::parse(body);
    fields.map(|(name, value)| (name.into_owned(), value.replace("\r\n", "\n"))).collect()
}

/// The page of what is asked.
#[must_use]
pub fn asking(asked: &Asked) -> Response {
    let steers = asked.steers.as_ref().map(steers).unwrap_or_default();
    page(StatusCode::OK, &asked.title, &format!("{}{steers}", questions(asked)))
}

/// The page after an answer.
#[must_use]
pub fn answered(done: Done) -> Response {
    page(StatusCode::OK, "Done", &format!("<p>{} You can close this page.</p>", done.text()))
}

fn questions(asked: &Asked) -> String {
    if asked.questions.is_empty() {
        return "<p>Nothing is asked now. If something was, it was answered, or its time is over.</p>"
            .to_owned();
    }
    asked.questions.iter().map(question).collect()
}

/// What the reader can do beside answering.
fn steers(steers: &Steers) -> String {
    let button = |value: &str, text: &str| {
        format!("<form method=\"post\"><button name=\"answer\" value=\"{value}\">{text}</button></form>")
    };
    let mut html = String::new();
    if let Some(paused) = &steers.paused {
        let _ = write!(html, "<p>{}</p>{}", escaped(paused), button("resume", "Resume it"));
    } else if steers.can_pause {
        html.push_str(&button("pause", "Pause it"));
    }
    let _ = write!(
        html,
        "<form method=\"post\"><input type=\"hidden\" name=\"number\" value=\"{}\">\
         <label>What should be different?<textarea name=\"text\" rows=\"3\" required maxlength=\"{MAX_CORRECTION}\"></textarea></label>\
         <button name=\"answer\" value=\"correct\">Tell the agent</button></form>",
        escaped(&steers.number)
    );
    html
}

fn question(question: &Question) -> String {
    match question {
        Question::Approval { view, schedule } => approval(view, schedule.as_deref()),
        Question::Words { text, seen } => format!(
            "<form method=\"post\"><p class=\"q\">{}</p><input type=\"hidden\" name=\"seen\" value=\"{}\">\
             <label>Your answer<textarea name=\"text\" rows=\"4\" required maxlength=\"20000\"></textarea></label>\
             <button name=\"answer\" value=\"words\">Send the answer</button></form>",
            escaped(text),
            escaped(seen),
        ),
        Question::Call { card } => {
            let arguments =
                card.arguments.as_ref().map(|arguments| format!("{arguments:#}")).unwrap_or_default();
            let cost =
                card.card.cost_micros.map(|cost| format!("<p>It will cost about {}.</p>", dollars(cost)));
            format!(
                "<form method=\"post\"><p class=\"q\">{}</p><p>It wants to call <b>{}</b> with:</p><pre>{}</pre>{}\
                 <input type=\"hidden\" name=\"call\" value=\"{}\"><input type=\"hidden\" name=\"hash\" value=\"{}\">\
                 <button name=\"answer\" value=\"allow\">Allow it</button> \
                 <button class=\"no\" name=\"answer\" value=\"refuse\">Refuse it</button></form>",
                escaped(&card.card.why),
                escaped(&card.card.tool),
                escaped(&seen(&arguments)),
                cost.unwrap_or_default(),
                escaped(&card.card.call_id.to_string()),
                escaped(&card.card.hash),
            )
        }
        Question::Elsewhere { why } => {
            format!("<p class=\"q\">{}</p><p>Answer this in the console.</p>", escaped(why))
        }
    }
}

/// The ticket of an action that asks a model: what its runs are told, and what they may do.
fn approval(view: &ApprovalView, schedule: Option<&str>) -> String {
    let ApprovalContent { description, task_config, grants, tools, watches, agent, budget, .. } =
        &view.current;
    let mut rows = String::new();
    let mut row = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = write!(rows, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(text));
        }
    };
    row("Agent", &agent.name);
    row("Its goal", &agent.goal);
    row("How it works", &agent.instructions);
    row("About", description);
    row("When", schedule.unwrap_or("When you run it."));
    row("Will", &task_config.instructions);
    row("Expected", &task_config.expected_output);
    let uses: Vec<&str> =
        grants.iter().map(String::as_str).chain(tools.iter().map(|tool| tool.name.as_str())).collect();
    let uses = uses.join(", ");
    row("May use", if uses.is_empty() { "nothing beside its own notes and outputs" } else { &uses });
    row("May cost", &format!("{} a run", dollars(budget.per_run_micros)));
    watches.iter().filter_map(domain::watch::Watch::url).for_each(|url| row("Looks at", url));
    row("Told", &view.told.text);
    let limits: String =
        view.cannot.iter().chain(&view.warnings).map(|one| format!("<li>{}</li>", escaped(one))).collect();
    let changes: String = view
        .changes
        .iter()
        .map(|change| {
            format!(
                "<p>Changed since it was approved: <b>{}</b></p><pre>- {}\n+ {}</pre>",
                escaped(&change.field),
                escaped(&change.approved.to_string()),
                escaped(&change.current.to_string())
            )
        })
        .collect();
    format!(
        "<form method=\"post\"><p class=\"q\">It runs only after you have approved it.</p><dl>{rows}</dl><ul>{limits}</ul>{changes}\
         <input type=\"hidden\" name=\"hash\" value=\"{}\"><button name=\"answer\" value=\"approve\">Approve it</button></form>",
        escaped(&view.approval_hash)
    )
}

/// The page that says why nothing was done. It shows the words of the form again, so that they are not lost.
#[must_use]
pub fn failed(error: Error, form: &[u8]) -> Response {
    let (status, told) = match &error {
        Error::NotFound(_) => (
            StatusCode::NOT_FOUND,
            "This link does not work. It may be too old, or its channel was switched off.".to_owned(),
        ),
        Error::Invalid(_) => (StatusCode::BAD_REQUEST, in_plain_words(&error)),
        Error::Conflict { .. } => (StatusCode::CONFLICT, in_plain_words(&error)),
        // Its own answer says what to do, such as when to come again.
        _ => return error.into_response(),
    };
    let mut body = format!("<p>{}</p>", escaped(&told));
    let written = fields(form).into_iter().find(|(name, text)| name == "text" && !text.is_empty());
    if let Some((_, text)) = written {
        let _ = write!(body, "<p>You have written:</p><pre>{}</pre>", escaped(&text));
    }
    page(status, "Not done", &body)
}

/// A text in which every character is seen: what nobody sees is written as its number.
fn seen(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let is_plain = matches!(c, '\n' | ' ') || !(c.is_control() || c.is_whitespace() || is_invisible(c));
        if is_plain {
            shown.push(c);
        } else {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
    }
    shown
}

fn page(status: StatusCode, title: &str, body: &str) -> Response {
    let title = escaped(title);
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"robots\" content=\"noindex\"><title>{title}</title><style>\
         body{{font:16px/1.5 system-ui,sans-serif;max-width:640px;margin:32px auto;padding:0 16px;color:#14181f;background:#faf8f4;overflow-wrap:anywhere}}\
         .q{{font-size:18px}}pre{{white-space:pre-wrap;background:#fff;border:1px solid #ccc;padding:8px}}dt{{font-weight:600}}dd{{margin:0 0 8px;white-space:pre-wrap}}\
         textarea{{display:block;width:100%;font:inherit;margin:4px 0 12px}}button{{font:inherit;padding:8px 16px}}form{{border-top:1px solid #ccc;padding:12px 0}}\
         @media(prefers-color-scheme:dark){{body{{color:#e8eaf0;background:#0f1420}}pre{{background:#1a2030;border-color:#444}}}}\
         </style></head><body><h1>{title}</h1>{body}</body></html>"
    );
    (status, HEADERS, Html(html)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_and_their_fields_are_named() {
        assert_eq!(said(b"answer=approve&hash=a").unwrap(), Said::Approve { hash: "a".into() });
        assert_eq!(
            said(b"answer=words&text=Blue+%26+red&seen=3").unwrap(),
            Said::Words { text: "Blue & red".into(), seen: "3".into() }
        );
        let call = said(b"answer=refuse&call=3.0&hash=a").unwrap();
        assert!(matches!(call, Said::Call { allows: false, .. }), "{call:?}");
        for (form, field) in [
            ("", "answer"),
            ("answer=yes", "answer"),
            ("answer=approve", "hash"),
            ("answer=words&text=a", "seen"),
            ("answer=allow&hash=a", "call"),
            ("answer=allow&hash=a&call=x", "call"),
            ("answer=correct&number=0123456789abcdef0123456789abcdef", "text"),
            ("answer=correct&text=a", "number"),
            ("answer=correct&text=a&number=1", "number"),
        ] {
            let refused = said(form.as_bytes()).unwrap_err().to_string();
            assert!(refused.contains(&format!("{field}: ")), "{form}: {refused}");
        }
    }

    #[test]
    fn line_breaks_count_once_and_nothing_is_hidden() {
        let said = said(b"answer=words&text=a%0D%0Ab&seen=3").unwrap();
        assert_eq!(said, Said::Words { text: "a\nb".into(), seen: "3".into() });
        assert_eq!(seen("a\u{202e}b\u{200b} c\n"), "a\\u{202e}b\\u{200b} c\n");
    }

    #[test]
    fn nothing_leaves_its_place() {
        let text = "</textarea><script>alert(1)</script>\" onload='x' &";
        let html = question(&Question::Words { text: text.into(), seen: "\"><b>".into() });
        assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("onload='"), "{html}");
    }
}
