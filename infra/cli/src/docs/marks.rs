//! The frontmatter of a document: lines between two lines `---` at its beginning.
//!
//! The platform adds three lines to what a reader gets. They say how far the document is behind, so they are out of date with the next
//! commit, and a file does not have them. The platform has the same rule, and a test compares both. It is repeated here because this
//! program has no crate of the platform (see `Cargo.toml`).

const MARKS: [&str; 3] = ["last_sync", "last_commit", "commits_since_sync"];

/// The lines of the frontmatter without the marks, and the rest. Without a second line `---`, the first one is a rule, and all is the rest.
fn parts(text: &str) -> (Vec<&str>, &str) {
    let is_fence = |line: &str| line.trim_end() == "---";
    let next = |rest: &'_ str| -> Option<(usize, usize)> {
        (!rest.is_empty()).then(|| rest.find('\n').map_or((rest.len(), rest.len()), |end| (end, end + 1)))
    };
    let mut kept = Vec::new();
    let (mut rest, mut is_first) = (text, true);
    while let Some((end, after)) = next(rest) {
        let line = &rest[..end];
        match (is_first, is_fence(line)) {
            (true, false) => break,
            (true, true) => {}
            (false, true) => return (kept, &rest[after..]),
            (false, false) => {
                if !line.split_once(':').is_some_and(|(key, _)| MARKS.contains(&key)) {
                    kept.push(line.trim_end_matches('\r'));
                }
            }
        }
        (is_first, rest) = (false, &rest[after..]);
    }
    (Vec::new(), text)
}

/// The text as the platform stores it: without the marks, and without a frontmatter that has nothing else.
#[must_use]
pub fn without_marks(text: &str) -> String {
    let mut text = text.to_owned();
    loop {
        let (lines, rest) = parts(&text);
        let next = if lines.is_empty() {
            rest.to_owned()
        } else {
            format!("---\n{}\n---\n{rest}", lines.join("\n"))
        };
        // What follows an empty frontmatter may be another one.
        if next == text {
            return text;
        }
        text = next;
    }
}
