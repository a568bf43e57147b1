//! The structure of a file's markup: its elements, and the branches and loops around them.

/// The structure of the markup.
#[derive(Clone, Debug)]
pub enum Item {
    Open {
        name: String,
        at: usize,
    },
    Close {
        name: String,
        at: usize,
    },
    /// Exactly one of the branches is printed. One of them may be empty.
    Branches {
        at: usize,
        branches: Vec<Vec<Item>>,
    },
    Loop {
        body: Vec<Item>,
    },
}

/// Elements whose end may be left out.
pub const OPTIONAL: [&str; 16] = [
    "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot", "colgroup",
    "html", "head", "body",
];

/// Elements that can be open around what a file prints: Shopify's wrapper of a section, and what layouts have around their content. The
/// end of another element closes nothing there, and browsers ignore it.
const AROUND: [&str; 9] =
    ["div", "section", "main", "header", "footer", "aside", "article", "body", "{% form %}"];

/// Whether an end without its beginning can end an element of another file.
pub fn may_end_another(name: &str) -> bool {
    AROUND.contains(&name)
}
