//! Reads the links of Markdown, as a parser of CommonMark does.

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html as writer};

use super::names::{self, Place};
use super::target::judge_link;
use super::{Found, html, strings, wrong};

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
    }
}

fn read_as(text: &str, options: Options, depth: usize, found: &mut Found) {
    let hosts = found.hosts;
    let parser = Parser::new_ext(text, options);
    for (_, definition) in parser.reference_definitions().iter() {
        found.add_again(judge_link(&definition.dest, hosts));
    }
    let mut code: Option<String> = None;
    // What a browser would get, without the code, which has no links.
    let events = parser.map(|event| match event {
        Event::Start(Tag::Link { link_type: LinkType::Email, ref dest_url, .. }) => {
            found.add_again(wrong(dest_url, "is an e-mail address"));
            event
        }
        Event::Start(Tag::Link { ref dest_url, .. } | Tag::Image { ref dest_url, .. }) => {
            found.add_again(judge_link(dest_url, hosts));
            event
        }
        Event::Code(ref text) => {
            names::search(text, Place::Code, found);
            Event::Code(CowStr::Borrowed(""))
        }
        Event::Start(Tag::CodeBlock(_)) => {
            code = Some(String::new());
            event
        }
        Event::Text(ref text) if code.is_some() => {
            code.get_or_insert_default().push_str(text);
            Event::Text(CowStr::Borrowed(""))
        }
        Event::End(TagEnd::CodeBlock) => {
            let code = code.take().unwrap_or_default();
            names::search(&code, Place::Code, found);
            strings::read(&code, depth, found);
            event
        }
        event => event,
    });
    let mut page = String::with_capacity(text.len() * 3 / 2);
    writer::push_html(&mut page, events);
    html::read(&page, html::Reading { depth, is_page: true, has_texts: true }, found);
}
