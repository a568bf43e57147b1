//! How the demo keeps living documents, by a plain rule: it lists the newest commits at the end of the first document.

use domain::living::prompt;
use serde_json::json;

use super::reply::{DemoReply, text};

/// The heading of the list. It says that no language model has written it.
const HEADING: &str = "## Newest changes (demo model)";

/// How many changes the list keeps.
const MOST: usize = 30;

/// The part that is changed: the last one of the first document.
pub fn plan(question: &str) -> DemoReply {
    let numbers: Vec<u64> = commits(question).into_iter().map(|(number, _)| number).collect();
    let parts = question.split_once("<parts>\n").map_or("", |(_, parts)| parts);
    let mut names = parts.lines().filter_map(|line| line.strip_prefix("> ")?.split(' ').next());
    let of = |name: &str| name.split('#').next().unwrap_or_default().to_owned();
    let first = names.next().unwrap_or_default();
    let last = names.take_while(|name| of(name) == of(first)).last().unwrap_or(first);
    let arguments = json!({"parts": [{"part": last, "commits": numbers}]});
    DemoReply { text: String::new(), call: Some((prompt::TOOL.to_owned(), arguments)) }
}

/// The first text of the question with the list of the commits.
pub fn write(question: &str) -> DemoReply {
    let begins = question.split_once("<text name=\"").and_then(|(_, rest)| rest.split_once("\">\n"));
    let Some((name, rest)) = begins else { return text("===END===") };
    let quoted = rest.lines().map_while(|line| line.strip_prefix("> "));
    let document: Vec<&str> = quoted.collect();
    let (before, listed) = match document.iter().position(|line| *line == HEADING) {
        Some(at) => (&document[..at], &document[at + 1..]),
        None => (&document[..], &[][..]),
    };
    let known = listed.iter().filter(|line| line.starts_with("- ")).map(|line| (*line).to_owned());
    let new = commits(question).into_iter().map(|(_, first)| format!("- {first}"));
    let mut lines: Vec<String> = known.chain(new).collect();
    lines.drain(..lines.len().saturating_sub(MOST));
    let before = before.join("\n");
    text(format!("==={name}===\n{}\n\n{HEADING}\n\n{}\n===END===", before.trim_end(), lines.join("\n")))
}

/// The numbers of the commits, and the first lines of their messages.
fn commits(question: &str) -> Vec<(u64, String)> {
    let block = question.split_once("<commits>\n").and_then(|(_, rest)| rest.split_once("</commits>\n"));
    let mut lines = block.map_or("", |(block, _)| block).lines().filter_map(|line| line.strip_prefix("> "));
    let mut found: Vec<(u64, String)> = Vec::new();
    while let Some(line) = lines.next() {
        let number = line.strip_prefix("commit ").and_then(|rest| rest.split_once(',')?.0.parse().ok());
        // The numbers count up, so a message can't pretend to be a commit.
        if let Some(number) = number.filter(|number| found.last().is_none_or(|(last, _)| last < number)) {
            found.push((number, lines.next().unwrap_or_default().to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use domain::living::parts::split;
    use domain::living::prompt::{Plan, plan_question, write_question};
    use domain::living::sections::sections;
    use domain::living::{Commit, Doc, DocName};

    use super::*;

    fn commit(n: u64) -> Commit {
        Commit {
            id: format!("{n:040x}").parse().unwrap(),
            at: "2026-11-20T08:00:00Z".parse().unwrap(),
            author: Some("Ada".to_owned()),
            message: format!("Change {n}\n\nMore."),
            files: vec!["src/a.rs".to_owned()],
            more_files: 0,
        }
    }

    #[test]
    fn the_list_grows_and_forgets_the_oldest() {
        let name: DocName = "A.md".parse().unwrap();
        let mut content = "# A\n\nText.\n".to_owned();
        for round in 0..2 {
            let commits: Vec<Commit> = (1..=20).map(|n| commit(round * 20 + n)).collect();
            let parts = split(&Doc { name: &name, text: &content });
            let plan = Plan::of_all(&parts, commits.len());
            let answer = write(&write_question(&commits, &plan, &parts)).text;
            let names: Vec<_> = parts.iter().map(|part| part.name.clone()).collect();
            let new = sections(&answer, &names).unwrap();
            assert_eq!(new.len(), 1);
            content.clone_from(&new[0].1);
        }
        assert!(
            content.starts_with("# A\n\nText.\n\n## Newest changes (demo model)\n\n- Change 11\n"),
            "{content}"
        );
        assert!(content.ends_with("- Change 40\n"), "{content}");
        assert_eq!(content.matches(HEADING).count(), 1);
    }

    #[test]
    fn the_last_part_of_the_first_document_is_chosen() {
        let (first, second): (DocName, DocName) = ("A.md".parse().unwrap(), "B.md".parse().unwrap());
        let long = "## Part\n\nText.\n".repeat(4_000);
        let mut parts = split(&Doc { name: &first, text: &long });
        let last = parts.last().unwrap().name.clone();
        parts.extend(split(&Doc { name: &second, text: "# B\n" }));
        let reply = plan(&plan_question(&[commit(1), commit(2)], &parts));
        let plan = Plan::read(&reply.call.unwrap().1, 2, &parts).unwrap();
        assert_eq!(plan.parts, [(last, [1, 2].into())]);
    }
}
