//! Reads the links of Markdown, as a parser of CommonMark does.

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html as writer};

use super::names::{self, Place};
use super::target::judge_link;
use super::{Found, html, search, strings, wrong};

/// Adds the links of a text that are not permitted. It is read twice if GitHub's Markdown differs from CommonMark: there, `[^a]: link`
/// is a footnote, and a `|` may end a cell.
pub(super) fn read(text: &str, depth: usize, found: &mut Found) {
    read_as(text, Options::empty(), depth, found);
    if text.contains('|') || text.contains("[^") || text.contains("[!") || text.contains('~') {
        let github = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_GFM;
        read_as(text, github, depth, found);
    }
    // A program may show the text as HTML.
    if text.contains('<') {
        let is_page =
            text.trim_start_matches(|char: char| char.is_whitespace() || char == '\u{feff}').starts_with('<');
        html::read(text, html::Reading { depth, is_page, has_texts: false }, found);
        // What is a tag for a browser may be a text for CommonMark, such as `<svg/onload="…">`.
        if !is_page {
            html::read(&without_code(text), html::Reading { depth, is_page: true, has_texts: false }, found);
        }
    }
}

/// A text with blanks in place of its code. Code may show scripts.
fn without_code(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (event, range) in Parser::new_ext(text, Options::empty()).into_offset_iter() {
        if matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))) && range.start >= plain.len() {
            plain.push_str(&text[plain.len()..range.start]);
            plain.extend(std::iter::repeat_n(' ', range.len()));
        }
    }
    plain.push_str(&text[plain.len()..]);
    plain
}

fn read_as(text: &str, options: Options, depth: usize, found: &mut Found) {
    let hosts = found.hosts;
    let parser = Parser::new_ext(text, options);
    for (_, definition) in parser.reference_definitions().iter() {
        found.add_again(judge_link(&definition.dest, hosts));
    }
    // The search has seen the URLs of a text that has nothing to decode.
    let is_decoded = text.contains(['&', '\\']);
    let (mut has_html, mut words) = (false, String::new());
    let mut code: Option<String> = None;
    for event in parser {
        match event {
            Event::Text(text) => {
                code.as_mut().unwrap_or(&mut words).push_str(&text);
                continue;
            }
            Event::Code(text) => names::search(&text, Place::Code, found),
            Event::Html(_) | Event::InlineHtml(_) => has_html = true,
            Event::Start(Tag::Link { link_type: LinkType::Email, dest_url, .. }) => {
                found.add_again(wrong(&dest_url, "is an e-mail address"));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                found.add_again(judge_link(&dest_url, hosts));
            }
            Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
            Event::End(TagEnd::CodeBlock) => {
                let code = code.take().unwrap_or_default();
                names::search(&code, Place::Code, found);
                strings::read(&code, depth, found);
            }
            _ => {}
        }
        // Between two of these events stands one text, in as many pieces as the parser needed.
        if is_decoded {
            search::urls(&words, found);
        }
        names::search(&words, Place::Text, found);
        words.clear();
    }
    if has_html {
        // What a browser gets, without code, which has no links. A tag may begin in one piece of HTML and end in another.
        let mut is_code = false;
        let events = Parser::new_ext(text, options).map(|event| match event {
            Event::Code(_) => Event::Code(CowStr::Borrowed("")),
            Event::Text(_) if is_code => Event::Text(CowStr::Borrowed("")),
            event => {
                is_code = match event {
                    Event::Start(Tag::CodeBlock(_)) => true,
                    Event::End(TagEnd::CodeBlock) => false,
                    _ => is_code,
                };
                event
            }
        });
        let mut page = String::with_capacity(text.len() * 3 / 2);
        writer::push_html(&mut page, events);
        html::read(&page, html::Reading { depth, is_page: true, has_texts: true }, found);
    }
}
