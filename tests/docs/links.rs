//! The relative links of the manuals resolve: the file exists, and so does the heading that a link names.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use crate::page::root;

/// The pages outside `docs/`.
const PAGES: [&str; 5] = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "infra/README.md"];

/// The links of a page, and the anchors of its headings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Page {
    fn parse(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut uses: HashMap<String, usize> = HashMap::new();
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {}
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(text) = heading.take() {
                        let anchor = anchor(&text);
                        let before = uses.entry(anchor.clone()).or_default();
                        // A repeated heading gets a number.
                        page.anchors.insert(match *before {
                            0 => anchor,
                            n => format!("{anchor}-{n}"),
                        });
                        *before += 1;
                    }
                }
                _ => {}
            }
        }
        page
    }
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Why a link of `page` does not resolve.
fn fault(root: &Path, page: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let file = match path {
        "" => root.join(page),
        path => root.join(page).parent()?.join(path),
    };
    if !file.exists() {
        return Some(format!("{page}: {link}: the file does not exist"));
    }
    let anchor = anchor?;
    let text = fs::read_to_string(&file).unwrap_or_default();
    let found = Page::parse(&text).anchors.contains(anchor);
    (!found).then(|| format!("{page}: {link}: the heading does not exist"))
}

/// All pages, relative to the root.
fn pages(root: &Path) -> Vec<String> {
    let mut pages: Vec<String> = PAGES.map(str::to_owned).to_vec();
    for entry in fs::read_dir(root.join("docs")).expect("there is a docs folder") {
        let path = entry.expect("the folder can be read").path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            pages.push(format!("docs/{name}"));
        }
    }
    pages
}

#[test]
fn relative_links_resolve() {
    let root = root();
    let mut faults = Vec::new();
    let mut links = 0;
    for page in pages(&root) {
        let markdown = fs::read_to_string(root.join(&page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        for link in Page::parse(&markdown).links {
            links += 1;
            faults.extend(fault(&root, &page, &link));
        }
    }
    assert!(links > 10, "only {links} links were found");
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn headings_have_the_anchors_of_github() {
    let page = Page::parse(
        "# Title\n\n## `confident`\n\n## What's new?\n\n## Files\n\n## Files\n\n[a](b.md#c) `[no](link)`\n",
    );
    let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
    assert_eq!(anchors, ["confident", "files", "files-1", "whats-new"]);
    assert_eq!(page.links, ["b.md#c"]);
}

#[test]
fn a_broken_link_is_found() {
    let root = root();
    for (link, is_broken) in [
        ("LICENSE", false),
        ("docs/themes.md#limits", false),
        ("https://example.com/nothing", false),
        ("docs/nothing.md", true),
        ("docs/themes.md#nothing", true),
        ("#nothing", true),
    ] {
        assert_eq!(fault(&root, "CONTRIBUTING.md", link).is_some(), is_broken, "{link}");
    }
}
