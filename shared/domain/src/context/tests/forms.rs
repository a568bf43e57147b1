//! The Markdown that is written, and all forms that are read.

use super::at;
use crate::context::import::{ImportError, import};
use crate::context::markdown::export;
use crate::context::{Confidence, Document, Mode, RecommendedAgent, Section};

fn now() -> jiff::Timestamp {
    at("2026-03-01T00:00:00Z")
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

const WRITTEN: &str = "\
# Context Document

## Metadata
- Created: 2026-01-11T10:00:00Z
- Last Updated: 2026-01-11T12:30:00Z
- Task: Implement user authentication

## PLAN

### Decisions
- Use JWT for session management
- Store refresh tokens in httpOnly cookies

### Notes
- Consider rate limiting for login endpoint

### Recommended ACT Agent
backend-developer (confidence: 0.95)

---

## ACT

### Progress
- Created auth middleware
- Implemented login endpoint

### Notes
- Need to add password hashing

---

## EVAL

### Findings
- Missing input validation on email field

### Recommendations
- Add Zod schema for request validation
";

fn authentication() -> Document {
    let updated = at("2026-01-11T12:30:00Z");
    let agent = RecommendedAgent {
        name: "backend-developer".into(),
        confidence: Some(Confidence::try_from(0.95).unwrap()),
    };
    Document {
        title: None,
        task: Some("Implement user authentication".into()),
        created_at: at("2026-01-11T10:00:00Z"),
        updated_at: updated,
        sections: vec![
            Section {
                decisions: texts(&[
                    "Use JWT for session management",
                    "Store refresh tokens in httpOnly cookies",
                ]),
                notes: texts(&["Consider rate limiting for login endpoint"]),
                recommended_act_agent: Some(agent),
                ..Section::new(Mode::Plan, updated)
            },
            Section {
                progress: texts(&["Created auth middleware", "Implemented login endpoint"]),
                notes: texts(&["Need to add password hashing"]),
                ..Section::new(Mode::Act, updated)
            },
            Section {
                findings: texts(&["Missing input validation on email field"]),
                recommendations: texts(&["Add Zod schema for request validation"]),
                ..Section::new(Mode::Eval, updated)
            },
        ],
    }
}

#[test]
fn a_document_is_written_in_one_form_and_read_back() {
    assert_eq!(export(&authentication()), WRITTEN);
    assert_eq!(import(WRITTEN, now()).unwrap(), authentication());
    assert_eq!(import(&WRITTEN.replace('\n', "\r\n"), now()).unwrap(), authentication());
    assert_eq!(import(&format!("\u{feff}\n{WRITTEN}\n\n"), now()).unwrap(), authentication());
}

#[test]
fn the_other_fields_of_a_section_are_written_too() {
    let section = Section {
        status: Some("blocked".into()),
        primary_agent: Some("act-mode".into()),
        task: Some("Hash\npasswords".into()),
        notes: texts(&["n"]),
        recommended_act_agent: Some(RecommendedAgent { name: "data-engineer".into(), confidence: None }),
        ..Section::new(Mode::Act, now())
    };
    let document = Document { title: Some("Login".into()), sections: vec![section], ..authentication() };
    let text = "\
# Context Document

## Metadata
- Created: 2026-01-11T10:00:00Z
- Last Updated: 2026-01-11T12:30:00Z
- Title: Login
- Task: Implement user authentication

## ACT

**Status**: blocked
**Primary Agent**: act-mode

### Task
- Hash
  passwords

### Notes
- n

### Recommended ACT Agent
data-engineer
";
    assert_eq!(export(&document), text);
    assert_eq!(export(&import(text, now()).unwrap()), text);
}

#[test]
fn every_text_of_an_item_survives() {
    for item in [
        "plain",
        "two\nlines",
        "two\n\nparagraphs",
        "- a dash",
        "-",
        "- a\n- b\n  - c",
        "**bold** and `code`",
        "**Status**: done",
        "  leading blanks",
        "\tleading tab",
        "trailing blanks  ",
        "\nfirst line empty",
        "last line empty\n",
        "## PLAN",
        "x\n## ACT\n\n### Notes\n- y",
        "---",
        "x\n---\ny",
        "```rust\nfn main() {\n    println!();\n}\n```",
        "carriage\r\nreturn\r",
        "계획 ✓ 😀",
        "* star\n+ plus",
        "a (confidence: 0.5)",
        "nul \0 and bell \u{7}",
        "\u{2028}line separator",
    ] {
        let mut document = authentication();
        document.sections[1].notes = texts(&["before", item, "after"]);
        document.sections[2].findings = texts(&[item]);
        document.sections[0].task = Some(item.to_owned());
        document.task = Some(item.to_owned());
        document.title = Some(item.to_owned());
        let read = import(&export(&document), now()).unwrap();
        assert_eq!(read, document, "{item:?}");
    }
}

#[test]
fn the_older_form_is_read() {
    let text = "\
# Context: Test Task

**Created**: 2024-01-01T00:00:00.000Z
**Updated**: 2024-01-01T02:00:00.000Z
**Current Mode**: ACT
**Status**: active

---

## PLAN (24:05)

**Primary Agent**: technical-planner
**Recommended ACT Agent**: frontend-developer (confidence: 0.9)
**Status**: completed

### Task

Plan the feature

### Decisions

- Decision 1
- **Decision** 2

---

## ACT (01:30)

### Progress
- One

---

## ACT (01:45)

**Status**: in_progress

### Progress
- One
- Two
";
    let agent = RecommendedAgent {
        name: "frontend-developer".into(),
        confidence: Some(Confidence::try_from(0.9).unwrap()),
    };
    let expected = Document {
        title: Some("Test Task".into()),
        task: None,
        created_at: at("2024-01-01T00:00:00Z"),
        updated_at: at("2024-01-01T02:00:00Z"),
        sections: vec![
            Section {
                status: Some("completed".into()),
                primary_agent: Some("technical-planner".into()),
                task: Some("Plan the feature".into()),
                decisions: texts(&["Decision 1", "**Decision** 2"]),
                recommended_act_agent: Some(agent),
                ..Section::new(Mode::Plan, at("2024-01-01T00:05:00Z"))
            },
            Section {
                status: Some("in_progress".into()),
                progress: texts(&["One", "Two"]),
                ..Section::new(Mode::Act, at("2024-01-01T01:45:00Z"))
            },
        ],
    };
    assert_eq!(import(text, now()).unwrap(), expected);
}

#[test]
fn what_a_hand_has_edited_is_read() {
    let check = |list: &str, expected: &[&str]| {
        let text = format!("# Context Document\n\n## PLAN\n\n### Notes\n{list}");
        let document = import(&text, now()).unwrap();
        assert_eq!(document.sections[0].notes, expected, "{list:?}");
        assert_eq!((document.created_at, document.updated_at), (now(), now()));
    };
    check("- a\n- b\n", &["a", "b"]);
    check("- a\n- b", &["a", "b"]);
    check("* a\n+ b\n", &["a", "b"]);
    check("- a\nstill a\n- b\n", &["a\nstill a", "b"]);
    check("- a\n\n  still a\n\n- b\n", &["a\n\nstill a", "b"]);
    check("- a\n  - nested\n", &["a\n- nested"]);
    check("A paragraph\nof two lines\n\nAnother\n", &["A paragraph\nof two lines", "Another"]);
    check("-\n- \n- a\n", &["a"]);
    check("- a\n- a\n", &["a"]);
    check("\n\n- a\n\n\n### Notes\n- b\n", &["a", "b"]);
    check("- a\n\n---\n\n## Plan\n\n### NOTES\n- b\n", &["a", "b"]);
    check("#### a\n", &["#### a"]);
    check("", &[]);
    let bare = import("# Context Document", now()).unwrap();
    assert_eq!((bare.sections.len(), bare.created_at), (0, now()));
}

#[test]
fn what_has_no_place_is_refused_with_its_line() {
    let check = |text: &str, expected: &str| {
        assert_eq!(import(text, now()).unwrap_err().to_string(), expected, "{text:?}");
    };
    let heading = "it must begin with `# Context Document` or `# Context: title`";
    check("", &format!("line 1: {heading}"));
    check("\n\nHello", &format!("line 3: {heading}"));
    check("## PLAN", &format!("line 1: {heading}"));
    check("# Context Document\nHello", "line 2: `Hello` is not expected here");
    check("# Context Document\n## REVIEW\n", "line 2: `## REVIEW` is not expected here");
    check("# Context Document\n## PLAN\n# Again\n", "line 3: `# Again` is not expected here");
    check("# Context Document\n## PLAN\n## Metadata\n", "line 3: `## Metadata` is not expected here");
    check("# Context Document\n## PLAN\nHello\n", "line 3: `Hello` is not expected here");
    check("# Context Document\n## PLAN\n**Mood**: good\n", "line 3: `**Mood**: good` is not expected here");
    check("# Context Document\n## PLAN\n### Ideas\n- x\n", "line 3: `### Ideas` is not expected here");
    check("# Context Document\n### Notes\n- x\n", "line 2: `### Notes` is not expected here");
    check("# Context Document\n## Metadata\n- Mood: good\n", "line 3: `Mood: good` is not expected here");
    check(
        "# Context Document\n## Metadata\n- Created: yesterday\n",
        "line 3: `yesterday` is not a time such as 2026-01-11T10:00:00Z",
    );
    check(
        "# Context Document\n## PLAN\n### Recommended ACT Agent\nx (confidence: 2)\n",
        "line 4: `x (confidence: 2)` is not an agent such as `backend-developer (confidence: 0.95)`",
    );
    check(
        &format!("# Context Document\n## PLAN\n### Notes\n- {}\n", "x".repeat(2_001)),
        "PLAN.notes[0]: must be 1 to 2000 characters, is 2001",
    );
    assert_eq!(import(&"x".repeat(262_145), now()), Err(ImportError::TooLarge(262_145)));
}
