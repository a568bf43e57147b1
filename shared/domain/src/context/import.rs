//! Reads a context document from Markdown: the form that [`super::markdown`] writes, the same edited by hand, and the
//! older one with `# Context: title`, `## PLAN (HH:MM)` and `**Status**: …`.
//!
//! Nothing is silently ignored: a line that does not fit into a document is an error that names the line. Only typical
//! traces of editors are accepted: other bullets, paragraphs instead of bullets (each becomes an item), empty bullets,
//! and Windows line ends.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use super::MAX_DOCUMENT;
use super::document::{Confidence, Document, Mode, RecommendedAgent, Section, whole_seconds};
use super::markdown::{HEADINGS, RECOMMENDED_HEADING};
use super::update::merge;
use crate::validate::FieldErrors;
use crate::validate::is_sane;

/// Why a text is not a context document. The message follows "failed to read the document: …".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("it may have at most {MAX_DOCUMENT} bytes (256 KiB), it has {0}")]
    TooLarge(usize),
    #[error("line {0}: it must begin with `# Context Document` or `# Context: title`")]
    NoHeading(usize),
    #[error("line {line}: `{text}` is not expected here")]
    Misplaced { line: usize, text: String },
    #[error("line {line}: `{text}` is not a time such as 2026-01-11T10:00:00Z")]
    NotATime { line: usize, text: String },
    #[error("line {line}: `{text}` is not an agent such as `backend-developer (confidence: 0.95)`")]
    NotAnAgent { line: usize, text: String },
    #[error("{0}")]
    Invalid(#[from] FieldErrors),
}

/// Reads a document. Times that it does not contain are set to `now`.
///
/// # Errors
/// [`ImportError`] names the line or the limit.
pub fn import(text: &str, now: Timestamp) -> Result<Document, ImportError> {
    if text.len() > MAX_DOCUMENT {
        return Err(ImportError::TooLarge(text.len()));
    }
    let mut lines = Lines::new(text);
    let mut header = Header { title: heading(&mut lines)?, ..Header::default() };
    header.labels(&mut lines)?;
    let mut document =
        Document { title: None, task: None, created_at: now, updated_at: now, sections: Vec::new() };
    let mut clocks = Vec::new();
    while let Some((line, text)) = lines.structure()? {
        if text.eq_ignore_ascii_case("## Metadata") && document.sections.is_empty() {
            header.items(&mut lines)?;
            continue;
        }
        let (mode, clock) = section_heading(&text).ok_or(ImportError::Misplaced { line, text })?;
        read_section(&mut lines, document.section_mut(mode, now))?;
        clocks.push((mode, clock));
    }
    document.title = header.title;
    document.task = header.task;
    document.created_at = whole_seconds(header.created.unwrap_or(now));
    document.updated_at = whole_seconds(header.updated.or(header.created).unwrap_or(now));
    let (created, updated) = (document.created_at, document.updated_at);
    for (mode, clock) in clocks {
        document.section_mut(mode, now).updated_at =
            clock.and_then(|clock| on_the_day_of(created, clock)).unwrap_or(updated);
    }
    Ok(document.validated()?)
}

fn on_the_day_of(created: Timestamp, clock: Time) -> Option<Timestamp> {
    let day = created.to_zoned_datetime(TimeZone::UTC).date();
    day.to_datetime(clock).to_zoned_datetime(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// The title, if the heading has one.
fn heading(lines: &mut Lines<'_>) -> Result<Option<String>, ImportError> {
    lines.skip_blank();
    let (line, text) = lines.next().ok_or(ImportError::NoHeading(1))?;
    let text = text.trim_end();
    if text.eq_ignore_ascii_case("# Context Document") {
        return Ok(None);
    }
    let title = text.strip_prefix("# Context:").ok_or(ImportError::NoHeading(line))?.trim();
    Ok(Some(title.to_owned()).filter(|title| !title.is_empty()))
}

/// `## PLAN` or `## PLAN (HH:MM)`.
fn section_heading(text: &str) -> Option<(Mode, Option<Time>)> {
    let text = text.strip_prefix("## ")?.trim();
    let (name, clock) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => (name.trim_end(), Some(rest.strip_suffix(')')?)),
    };
    let mode = name.to_uppercase().parse().ok()?;
    Some((mode, clock.and_then(read_clock)))
}

/// `14:05`. Some clocks write the first minutes of a day as 24:05.
fn read_clock(text: &str) -> Option<Time> {
    let (hour, minute) = text.trim().split_once(':')?;
    let hour: i8 = hour.parse().ok().filter(|hour| (0..=24).contains(hour))?;
    Time::new(hour % 24, minute.parse().ok()?, 0, 0).ok()
}

/// The metadata of a document.
#[derive(Default)]
struct Header {
    title: Option<String>,
    task: Option<String>,
    created: Option<Timestamp>,
    updated: Option<Timestamp>,
}

impl Header {
    /// Lines such as `**Created**: …`, up to the first `##`.
    fn labels(&mut self, lines: &mut Lines<'_>) -> Result<(), ImportError> {
        while let Some((line, text)) = lines.before_structure() {
            let (name, value) = label(text).ok_or_else(|| misplaced(line, text))?;
            self.set(line, name, value)?;
        }
        Ok(())
    }

    /// Items such as `- Created: …`, below `## Metadata`.
    fn items(&mut self, lines: &mut Lines<'_>) -> Result<(), ImportError> {
        for (line, text) in lines.items() {
            let (name, value) = text.split_once(':').ok_or_else(|| misplaced(line, &text))?;
            self.set(line, name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, line: usize, name: &str, value: &str) -> Result<(), ImportError> {
        let text = || {
            Some(value.strip_prefix(' ').unwrap_or(value).to_owned()).filter(|text| !text.trim().is_empty())
        };
        let instant = || {
            let text = value.trim();
            let time = text.parse().ok().filter(|time| is_sane(*time));
            time.map(Some).ok_or_else(|| ImportError::NotATime { line, text: text.to_owned() })
        };
        match name.trim().to_lowercase().as_str() {
            "created" => self.created = instant()?,
            "updated" | "last updated" => self.updated = instant()?,
            "title" => self.title = text(),
            "task" => self.task = text(),
            // Both can be computed from the sections.
            "current mode" | "status" => {}
            _ => return Err(misplaced(line, &format!("{name}:{value}"))),
        }
        Ok(())
    }
}

fn read_section(lines: &mut Lines<'_>, section: &mut Section) -> Result<(), ImportError> {
    let text = |value: &str| Some(value.trim().to_owned()).filter(|text| !text.is_empty());
    while let Some((line, found)) = lines.before_structure() {
        let (name, value) = label(found).ok_or_else(|| misplaced(line, found))?;
        match name.to_lowercase().as_str() {
            "status" => section.status = text(value),
            "primary agent" => section.primary_agent = text(value),
            "task" => section.task = text(value),
            "recommended act agent" => section.recommended_act_agent = Some(agent(line, value)?),
            _ => return Err(misplaced(line, found)),
        }
    }
    while let Some((line, heading)) = lines.part() {
        let items = lines.items();
        if heading.eq_ignore_ascii_case("Task") {
            let texts: Vec<String> = items.into_iter().map(|(_, text)| text).collect();
            section.task = Some(texts.join("\n")).filter(|task| !task.is_empty());
            continue;
        }
        if heading.eq_ignore_ascii_case(RECOMMENDED_HEADING) {
            for (line, text) in items {
                section.recommended_act_agent = Some(agent(line, &text)?);
            }
            continue;
        }
        let field = HEADINGS.iter().find(|(_, known)| known.eq_ignore_ascii_case(heading));
        let list = match field.map(|(field, _)| *field) {
            Some("decisions") => &mut section.decisions,
            Some("progress") => &mut section.progress,
            Some("findings") => &mut section.findings,
            Some("recommendations") => &mut section.recommendations,
            Some("notes") => &mut section.notes,
            _ => return Err(misplaced(line, &format!("### {heading}"))),
        };
        merge(list, &items.into_iter().map(|(_, text)| text).collect::<Vec<_>>());
    }
    Ok(())
}

/// `name` or `name (confidence: 0.95)`.
fn agent(line: usize, text: &str) -> Result<RecommendedAgent, ImportError> {
    let text = text.trim();
    let refused = || ImportError::NotAnAgent { line, text: text.to_owned() };
    let Some((name, rest)) = text.split_once('(') else {
        return Ok(RecommendedAgent { name: text.to_owned(), confidence: None });
    };
    let number =
        rest.strip_prefix("confidence:").and_then(|rest| rest.strip_suffix(')')).ok_or_else(refused)?;
    let number: f64 = number.trim().parse().map_err(|_| refused())?;
    let confidence = Confidence::try_from(number).map_err(|_| refused())?;
    Ok(RecommendedAgent { name: name.trim_end().to_owned(), confidence: Some(confidence) })
}

/// `**Name**: value`.
fn label(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("**")?.split_once("**:")
}

fn misplaced(line: usize, text: &str) -> ImportError {
    ImportError::Misplaced { line, text: text.chars().take(80).collect() }
}

/// The lines of a text, with their numbers.
struct Lines<'a> {
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines: Vec<&str> = text.split('\n').collect();
        // A carriage return at the end of the heading is not part of a text: then the whole file has them.
        if lines.iter().find(|line| !line.trim().is_empty()).is_some_and(|line| line.ends_with('\r')) {
            for line in &mut lines {
                *line = line.strip_suffix('\r').unwrap_or(line);
            }
        }
        Self { lines, at: 0 }
    }

    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let text = self.peek()?;
        self.at += 1;
        Some((self.at, text))
    }

    fn skip_blank(&mut self) {
        while self.peek().is_some_and(|line| line.trim().is_empty() || line.trim_end() == "---") {
            self.at += 1;
        }
    }

    /// The next line that is neither blank nor structure.
    fn before_structure(&mut self) -> Option<(usize, &'a str)> {
        self.skip_blank();
        self.peek().filter(|line| !is_structure(line))?;
        self.next()
    }

    /// The next `## …`.
    fn structure(&mut self) -> Result<Option<(usize, String)>, ImportError> {
        self.skip_blank();
        match self.next() {
            None => Ok(None),
            Some((line, text)) if text.starts_with("## ") => Ok(Some((line, text.trim_end().to_owned()))),
            Some((line, text)) => Err(misplaced(line, text)),
        }
    }

    /// The next `### …` of this section.
    fn part(&mut self) -> Option<(usize, &'a str)> {
        self.skip_blank();
        let heading = self.peek()?.strip_prefix("### ")?.trim();
        self.at += 1;
        Some((self.at, heading))
    }

    /// The items before the next structure, each with the number of its first line.
    fn items(&mut self) -> Vec<(usize, String)> {
        let mut items: Vec<(usize, String)> = Vec::new();
        let mut open = false;
        while let Some(text) = self.peek().filter(|line| !is_structure(line)) {
            self.at += 1;
            if let Some(first) = bullet(text) {
                items.push((self.at, first.to_owned()));
                open = true;
            } else if text.is_empty() {
                // An editor may have removed the indentation of empty lines in an item.
                let rest = &self.lines[self.at..];
                let next = rest.iter().find(|line| !line.is_empty());
                open = open && next.is_some_and(|next| next.starts_with("  "));
                if let (true, Some((_, item))) = (open, items.last_mut()) {
                    item.push('\n');
                }
            } else if let (true, Some((_, item))) = (open, items.last_mut()) {
                item.push('\n');
                item.push_str(text.strip_prefix("  ").unwrap_or(text));
            } else {
                items.push((self.at, text.to_owned()));
                open = true;
            }
        }
        items.retain(|(_, text)| !text.trim().is_empty());
        items
    }
}

fn is_structure(line: &str) -> bool {
    line.starts_with("# ") || line.starts_with("## ") || line.starts_with("### ") || line.trim_end() == "---"
}

fn bullet(line: &str) -> Option<&str> {
    match line {
        "-" | "*" | "+" => Some(""),
        _ => ["- ", "* ", "+ "].iter().find_map(|bullet| line.strip_prefix(bullet)),
    }
}
