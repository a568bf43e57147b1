//! Agent templates get their section, and everything else in them is kept.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use crate::bed::{Bed, Output};

const TYPES: [(&str, &str); 13] = [
    ("the-architect", "`arch-{project-component}`, for example `arch-auth`, `arch-db` or `arch-api`"),
    ("the-developer", "`dev-{feature-area}`, for example `dev-auth`, `dev-frontend` or `dev-backend`"),
    ("the-tester", "`test-{test-type}`, for example `test-unit`, `test-integration` or `test-e2e`"),
    (
        "the-devops-engineer",
        "`devops-{infrastructure-component}`, for example `devops-ci`, `devops-deploy` or `devops-monitor`",
    ),
    ("the-security-engineer", "`sec-{security-domain}`, for example `sec-auth`, `sec-crypto` or `sec-audit`"),
    ("the-product-manager", "`pm-{product-area}`, for example `pm-roadmap`, `pm-features` or `pm-metrics`"),
    ("the-technical-writer", "`doc-{documentation-type}`, for example `doc-api`, `doc-user` or `doc-arch`"),
    (
        "the-data-engineer",
        "`data-{data-component}`, for example `data-pipeline`, `data-warehouse` or `data-analytics`",
    ),
    (
        "the-site-reliability-engineer",
        "`sre-{reliability-area}`, for example `sre-monitoring`, `sre-alerting` or `sre-incident`",
    ),
    (
        "the-business-analyst",
        "`ba-{business-domain}`, for example `ba-requirements`, `ba-process` or `ba-analysis`",
    ),
    (
        "the-project-manager",
        "`proj-{project-phase}`, for example `proj-planning`, `proj-execution` or `proj-delivery`",
    ),
    (
        "the-prompt-engineer",
        "`prompt-{prompt-domain}`, for example `prompt-validation`, `prompt-optimization` or `prompt-testing`",
    ),
    (
        "the-chief",
        "`chief-{decision-area}`, for example `chief-strategy`, `chief-architecture` or `chief-oversight`",
    ),
];

fn template(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Works\n---\n\nYou are {name}.\n\n## Rules\n\n- None\n")
}

#[test]
fn every_type_gets_its_pattern_and_a_second_run_changes_nothing() {
    let bed = Bed::bare();
    for (name, _) in TYPES {
        bed.write(&format!("project/agents/{name}.md"), template(name));
    }
    let Output { code, out, err } = bed.run(&["context", "init", "agents"]);
    assert_eq!((code, out.matches(": written\n").count(), err.as_str()), (0, 13, ""));
    let state = || {
        TYPES.map(|(name, _)| {
            let path = bed.path(&format!("project/agents/{name}.md"));
            let metadata = fs::metadata(&path).unwrap();
            (fs::read_to_string(path).unwrap(), metadata.ino(), metadata.modified().unwrap())
        })
    };
    let after = state();
    for ((name, pattern), (text, ..)) in TYPES.iter().zip(&after) {
        assert!(text.replace('\n', " ").contains(pattern), "{name}: {text}");
        assert!(text.contains(
            "lamplighter log --read --agent-id \"{AGENT_ID}\" --lines 20 --format text 2>/dev/null"
        ));
        let (begin, end) = ("\n<!-- lamplighter:context:begin -->", "<!-- lamplighter:context:end -->\n");
        let (head, rest) = text.split_once(begin).unwrap();
        let (_, tail) = rest.split_once(end).unwrap();
        assert_eq!(format!("{head}{tail}"), template(name));
    }
    let Output { code, out, .. } = bed.run(&["context", "init", "agents"]);
    assert_eq!((code, out.matches(": unchanged\n").count()), (0, 13));
    assert_eq!(state(), after);
}

#[test]
fn an_old_section_becomes_the_new_one_and_hand_written_text_stays() {
    let bed = Bed::bare();
    let windows = bed.write("project/agents/a.md", template("the-tester").replace('\n', "\r\n"));
    bed.run(&["context", "init", "agents"]).printed("agents/a.md: written\n");
    let fresh = fs::read_to_string(&windows).unwrap();
    assert_eq!(fresh.matches('\n').count(), fresh.matches("\r\n").count());
    let old = fresh.replace("## Context Discovery", "## Context (old)").replace("- None", "- One, by hand");
    fs::write(&windows, &old).unwrap();
    bed.run(&["context", "init", "agents"]).printed("agents/a.md: written\n");
    assert_eq!(fs::read_to_string(&windows).unwrap(), fresh.replace("- None", "- One, by hand"));
}

#[test]
fn files_that_are_not_templates_or_not_safe_to_change_are_kept() {
    let bed = Bed::bare();
    let readme = bed.write("project/agents/README.md", "# Agents\n");
    let damaged =
        bed.write("project/agents/damaged.md", "---\n---\n<!-- lamplighter:context:begin -->\nmine\n");
    let latin = bed.write("project/agents/latin.md", b"---\nname: x\n---\ngr\xfc\xdfe\n");
    let notes = bed.write("project/agents/notes.txt", template("x"));
    let hidden = bed.write("project/agents/.git/x.md", template("x"));
    let good = bed.write("project/agents/team/good.MD", template("the-chief"));
    fs::set_permissions(&good, fs::Permissions::from_mode(0o664)).unwrap();
    let outside = bed.write("outside.md", template("the-developer"));
    symlink(&outside, bed.path("project/agents/link.md")).unwrap();
    let left = [readme, damaged, latin, notes, hidden];
    let before = left.clone().map(|path| fs::read(path).unwrap());

    let Output { code, out, err } = bed.run(&["context", "init", "agents"]);
    assert_eq!(code, 1);
    assert_eq!(
        out,
        "agents/damaged.md: not changed: its lamplighter:context marks are not exactly one pair\n\
         agents/latin.md: not changed: stream did not contain valid UTF-8\n\
         agents/link.md: written\n\
         agents/team/good.MD: written\n"
    );
    assert!(err.contains("2 of 4 templates were not changed"), "{err}");
    assert!(err.contains("agents/README.md is skipped: it does not begin with front matter"), "{err}");
    assert_eq!(left.map(|path| fs::read(path).unwrap()), before);
    assert_eq!(fs::metadata(&good).unwrap().permissions().mode() & 0o777, 0o664);
    assert!(fs::symlink_metadata(bed.path("project/agents/link.md")).unwrap().is_symlink());
    assert!(fs::read_to_string(outside).unwrap().contains("`dev-{feature-area}`"));
}

#[test]
fn a_folder_without_templates_is_reported() {
    let bed = Bed::bare();
    bed.write("project/agents/README.md", "# Agents\n");
    bed.run(&["context", "init", "agents"]).failed("there is no agent template in agents");
    bed.run(&["context", "init", "missing"]).failed("failed to read missing: No such file or directory");
}

#[test]
fn a_template_is_changed_as_its_tools_allow() {
    let bed = Bed::bare();
    for (name, tools) in
        [("a", "tools: Read, Grep"), ("b", "tools: [Bash]"), ("c", "tools: mcp__lamplighter__read_agent_log")]
    {
        let text = format!("---\nname: the-tester\n{tools}\n---\n\nYou are.\n");
        bed.write(&format!("project/agents/{name}.md"), text);
    }
    bed.run(&["context", "init", "agents"]).printed(
        "agents/a.md: written (without Bash: a SubagentStart hook with `lamplighter log --recall` gives it its log)\n\
         agents/b.md: written\n\
         agents/c.md: written (without Bash: it reads its log with the tool read_agent_log)\n",
    );
    let read = |name: &str| fs::read_to_string(bed.path(&format!("project/agents/{name}.md"))).unwrap();
    assert!(!read("a").contains("```bash") && read("a").contains("You get your log when you start"));
    assert!(read("b").contains("```bash"));
    assert!(!read("c").contains("```bash") && read("c").contains("call the tool `read_agent_log`"));
    let out = bed.run(&["context", "init", "agents"]).out;
    assert_eq!(out.matches(": unchanged\n").count(), 3);
}
