//! The platform's lines about drafts after a text of a model, for clients that render Markdown and HTML.
//!
//! A person's "yes" accepts what these lines show. The text before them comes from a model, and may open a comment, a code block
//! or an element that hides everything after it. [`after`] closes what can be closed, and says whether the lines are visible.
//! [`literal`] shows a draft as it is, without any markup of its own taking effect.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::text::quoting::{breaks_line, is_invisible};

/// The longest line of a draft, in characters. Clients cut longer lines of a code block off at the edge of their window.
const WIDTH: usize = 100;

/// What closes a block of HTML that CommonMark reads up to an end of its own.
const ENDS_OF_HTML: [&str; 5] = ["-->", "?>", "]]>", "</script></style></textarea></pre>", ">"];

/// Marks that some clients read as the begin and the end of a formula, a comment or a box, also over several paragraphs.
const PAIRS: [(&str, &str); 5] = [("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("%%", "%%"), (":::", ":::")];

/// What comes between a text and the lines after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Closes what the text opened. Usually empty.
    pub closing: String,
    /// Whether every client shows the lines. `false` if the text has HTML, or anything else that may hide what follows.
    pub is_visible: bool,
}

/// What must come between a `text` and `lines`, which begin with a blank line.
#[must_use]
pub fn after(text: &str, lines: &str) -> After {
    let fence = |mark: char| format!("\n{}", mark.to_string().repeat(longest_run(text, mark).max(3)));
    let ends_of_html = ENDS_OF_HTML.iter().map(|end| format!("\n{end}"));
    let closings = [String::new(), fence('`'), fence('~')].into_iter().chain(ends_of_html);
    for closing in closings {
        let whole = format!("{text}{closing}{lines}");
        if [Options::empty(), Options::all()].into_iter().all(|dialect| stand_alone(&whole, lines, dialect)) {
            return After { closing, is_visible: is_harmless(text) };
        }
    }
    After { closing: String::new(), is_visible: false }
}

/// Whether `whole` ends with the same blocks as `lines` alone, outside all other blocks.
fn stand_alone(whole: &str, lines: &str, dialect: Options) -> bool {
    let (all, own) = (events(whole, dialect), events(lines, dialect));
    let Some(before) = all.strip_suffix(own.as_slice()) else { return false };
    let depth = |depth: usize, event: &Event<'_>| match event {
        Event::Start(_) => depth + 1,
        Event::End(_) => depth.saturating_sub(1),
        _ => depth,
    };
    before.iter().fold(0, depth) == 0
}

fn events(text: &str, dialect: Options) -> Vec<Event<'_>> {
    Parser::new_ext(text, dialect).collect()
}

/// Whether a text has nothing that may change how a client shows what follows it, once its blocks are closed.
fn is_harmless(text: &str) -> bool {
    let is_open = |(begin, end): (&str, &str)| match begin == end {
        true => text.matches(begin).count() % 2 == 1,
        false => text.matches(begin).count() != text.matches(end).count(),
    };
    !PAIRS.into_iter().any(is_open)
        && [Options::empty(), Options::all()].into_iter().all(|dialect| has_no_tag(text, dialect))
}

/// Whether a dialect of Markdown finds no HTML in a text. `[^1]:<style>` has the address `style` in CommonMark. With footnotes, it is
/// a note that begins with an element.
fn has_no_tag(text: &str, dialect: Options) -> bool {
    let (mut words, mut in_code) = (String::new(), false);
    for event in events(text, dialect) {
        match event {
            Event::Html(_) | Event::InlineHtml(_) | Event::Start(Tag::HtmlBlock) => return false,
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(text) if !in_code => words.push_str(&text),
            // A word on each side of code is no tag.
            _ => words.push(' '),
        }
    }
    // Some clients look for tags, such as the begin of a model's thoughts, before they read Markdown.
    let is_tag = |(at, _): (usize, &str)| {
        words[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?'))
    };
    !words.match_indices('<').any(is_tag)
}

/// A text as a block of code: all of it is shown as it is written. Long lines are broken, and characters that nobody sees are named.
#[must_use]
pub fn literal(text: &str) -> String {
    let shown: Vec<String> = text.replace("\r\n", "\n").split(breaks_line).flat_map(broken).collect();
    let shown = shown.join("\n");
    let fence = "`".repeat((longest_run(&shown, '`') + 1).max(3));
    format!("{fence}text\n{shown}\n{fence}")
}

/// A line in pieces of at most [`WIDTH`] characters, if possible between words.
fn broken(line: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut rest: Vec<char> = line.chars().flat_map(visible).collect();
    while rest.len() > WIDTH {
        let space = rest[..WIDTH].iter().rposition(|c| *c == ' ').filter(|at| *at >= WIDTH / 2);
        let tail = rest.split_off(space.map_or(WIDTH, |at| at + 1));
        pieces.push(rest.iter().collect::<String>().trim_end().to_owned());
        rest = tail;
    }
    pieces.push(rest.into_iter().collect());
    pieces
}

/// A character, or the name of one that nobody sees.
fn visible(c: char) -> Vec<char> {
    match c {
        '\t' => vec![' '; 4],
        // They join emoji.
        '\u{200d}' | '\u{fe0f}' => vec![c],
        c if c.is_control() || is_invisible(c) => format!("‹U+{:04X}›", u32::from(c)).chars().collect(),
        c => vec![c],
    }
}

/// How often a character stands in a row, at most.
fn longest_run(text: &str, mark: char) -> usize {
    text.split(|c| c != mark).map(str::len).max().unwrap_or(0) / mark.len_utf8()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OURS: &str =
        "\n\n**Draft:**\n\n```text\nBuy `oil`\n\n1 < 2 & <b>\n```\n\n*Answer \"yes\" to accept it.*";

    fn shown(text: &str, lines: &str) -> (String, bool) {
        let After { closing, is_visible } = after(text, lines);
        (format!("{text}{closing}{lines}"), is_visible)
    }

    /// What a browser shows of a whole reply, judged without the code above: everything after the begin of a comment, an element
    /// or a style is taken for hidden.
    fn on_screen(reply: &str) -> String {
        let (mut seen, mut image) = (String::new(), 0);
        for event in Parser::new_ext(reply, Options::empty()) {
            match event {
                Event::Html(_) | Event::InlineHtml(_) => break,
                Event::Start(Tag::Image { .. }) => image += 1,
                Event::End(TagEnd::Image) => image -= 1,
                Event::Text(text) | Event::Code(text) if image == 0 => seen.push_str(&text),
                Event::End(_) | Event::SoftBreak | Event::HardBreak => seen.push('\n'),
                _ => {}
            }
        }
        seen
    }

    #[test]
    fn what_a_text_opens_is_closed() {
        for (text, closing) in [
            ("", ""),
            ("Here is a **draft** of it, 1 < 2 & `Vec<String>`.", ""),
            ("```\nlet x = 1;", "\n```"),
            ("```html\n<!-- x", "\n```"),
            ("~~~~~\n```\nx", "\n~~~~~"),
            ("`````\n```\nx", "\n`````"),
            ("- one\n\n  ```\n  two", ""),
            ("> ```\n> two", ""),
            ("    indented", ""),
            ("[Draft", ""),
            ("[Draft:]: <http://x> \"a title", ""),
            ("[yes]:", ""),
            ("| a | b |\n|---|---|\n| c", ""),
            ("`a", ""),
            ("*a **b", ""),
            ("---\ntitle: x", ""),
            ("[^1]: a note", ""),
        ] {
            let after = after(text, OURS);
            assert_eq!(after, After { closing: closing.to_owned(), is_visible: true }, "{text:?}");
            assert!(on_screen(&shown(text, OURS).0).contains("1 < 2 & <b>"), "{text:?}");
        }
    }

    #[test]
    fn a_text_that_may_hide_the_lines_is_found() {
        for text in [
            "<!--",
            "Hello <!-- there",
            "<!-- a -->",
            "<details>",
            "a <details><summary>b</summary>",
            "<div hidden>",
            "<style>pre{display:none}</style>",
            "<script>",
            "<textarea>",
            "<plaintext>",
            "<think>",
            "a <think",
            "<![CDATA[",
            "<?php",
            "<!DOCTYPE",
            "- <!--",
            "> <div\nstyle=x>",
            "&lt;think>",
            "$$\nx",
            "\\\\[ x",
            "%% x",
            ":::spoiler",
            "````\nx\n````\n<b>",
            "</p",
            "[^1]:<style>",
            "[^1]: a note\n    <details>",
        ] {
            assert!(!after(text, OURS).is_visible, "{text:?}");
        }
        // Code is shown as it is.
        for text in ["`<!--`", "```\n<details>\n```", "    <style>", "a < b, c <= d, <3"] {
            assert!(after(text, OURS).is_visible, "{text:?}");
        }
        // A definition changes what the lines are, if they have brackets.
        assert!(!after("![x]\n\n[x]: http://x", "\n\nDraft: ![x]").is_visible);
    }

    #[test]
    fn a_draft_is_shown_as_it_is() {
        let check = |text: &str, expected: &str| assert_eq!(literal(text), expected, "{text:?}");
        check("a\n````\nb", "`````text\na\n````\nb\n`````");
        check("<!-- a -->\r\n**b**", "```text\n<!-- a -->\n**b**\n```");
        check(
            "a\u{202e}b\u{200b}c\u{e0041}\u{7}\td",
            "```text\na‹U+202E›b‹U+200B›c‹U+E0041›‹U+0007›    d\n```",
        );
        check("👩\u{200d}🚒 ❤\u{fe0f}", "```text\n👩\u{200d}🚒 ❤\u{fe0f}\n```");
        let far = format!("a{}pay the thief", " ".repeat(300));
        assert!(literal(&far).lines().all(|line| line.chars().count() <= WIDTH), "{}", literal(&far));
        assert!(literal(&far).ends_with("pay the thief\n```"), "{}", literal(&far));
        let words = "word ".repeat(100);
        assert!(literal(&words).lines().all(|line| !line.ends_with("wor")), "{}", literal(&words));
    }

    fn opens() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec![
            "<!--",
            "-->",
            "```",
            "````",
            "~~~",
            "\n",
            "\n\n",
            "> ",
            "- ",
            "1. ",
            "    ",
            "\t",
            "[a]: ",
            "[a]",
            "![a]",
            "(b",
            "\"",
            "<details>",
            "<div hidden",
            ">",
            "<style>",
            "</style>",
            "<script>",
            "<?",
            "<![CDATA[",
            "<!X",
            "`",
            "``",
            "*",
            "__",
            "$$",
            "\\",
            "|",
            "|---|",
            ":::",
            "---",
            "===",
            "#",
            "[^1]:",
            "&lt;",
            "word",
            " ",
            "\r",
            "Draft",
            "yes",
            "+++",
            ": ",
            "%%",
        ]);
        prop::collection::vec(part, 0..14).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        /// Whatever the text opens: the lines are on the screen, or the yes does not count.
        #[test]
        fn lines_that_count_are_on_the_screen(text in opens(), draft in opens()) {
            let lines = format!("\n\n**Draft:**\n\n{}\n\n*Answer \"yes\" to accept it.*", literal(&draft));
            let (reply, is_visible) = shown(&text, &lines);
            let seen = on_screen(&reply);
            if is_visible {
                let own = on_screen(&lines);
                prop_assert!(seen.ends_with(&own), "{reply:?} shows {seen:?}");
                prop_assert!(own.contains("yes"));
            }
            // A reply of the platform alone always counts.
            let (alone, counts) = shown("Nothing was accepted.", &lines);
            prop_assert!(counts, "{alone:?}");
            for line in draft.split(breaks_line) {
                for piece in broken(line) {
                    prop_assert!(on_screen(&alone).contains(&piece), "{alone:?} lacks {piece:?}");
                }
            }
        }
    }
}
