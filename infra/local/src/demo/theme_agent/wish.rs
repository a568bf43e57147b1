//! What a sentence wants of a theme. A sentence with a word that a rule does not know is not for that rule, because the word may change
//! what is wanted.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Sticky,
    Announcement(String),
    /// As `#rrggbb`.
    ButtonColour(String),
    Text {
        old: String,
        new: String,
    },
}

/// The longest text that is looked for or written, in characters.
const MAX_TEXT: usize = 300;

const POLITE: &[&str] =
    &["please", "can", "could", "would", "you", "i", "we", "want", "like", "to", "the", "my", "our", "a"];

const STICKY: &[&str] = &[
    "make",
    "keep",
    "set",
    "let",
    "turn",
    "header",
    "shop",
    "store",
    "site",
    "page",
    "screen",
    "window",
    "theme",
    "theme's",
    "shop's",
    "navigation",
    "menu",
    "bar",
    "sticky",
    "stick",
    "sticks",
    "fixed",
    "fix",
    "pin",
    "pinned",
    "stay",
    "stays",
    "always",
    "visible",
    "at",
    "on",
    "in",
    "of",
    "top",
    "while",
    "when",
    "scrolling",
    "scroll",
    "scrolls",
    "down",
    "people",
    "customers",
    "one",
    "be",
    "should",
    "so",
    "that",
    "it",
    "is",
    "remain",
    "remains",
];

const ANNOUNCEMENT: &[&str] = &[
    "change", "set", "update", "make", "let", "put", "write", "replace", "text", "words", "wording",
    "message", "content", "of", "in", "on", "bar", "banner", "should", "must", "top",
];

/// After the announcement is named, these words stand before its text.
const BEFORE_TEXT: &[&str] =
    &["to", "into", "with", "say", "says", "saying", "read", "reads", "show", "shows", "as"];

const BUTTON: &[&str] = &[
    "change",
    "set",
    "make",
    "turn",
    "update",
    "paint",
    "button",
    "buttons",
    "colour",
    "color",
    "colours",
    "colors",
    "background",
    "primary",
    "main",
    "all",
    "of",
    "in",
    "into",
    "be",
    "should",
    "it",
    "shop",
    "shop's",
    "theme",
    "theme's",
    "for",
];

const COLOURS: &[(&str, &str)] = &[
    ("aqua", "#00ffff"),
    ("beige", "#f5f5dc"),
    ("black", "#000000"),
    ("blue", "#0000ff"),
    ("brown", "#a52a2a"),
    ("coral", "#ff7f50"),
    ("crimson", "#dc143c"),
    ("cyan", "#00ffff"),
    ("fuchsia", "#ff00ff"),
    ("gold", "#ffd700"),
    ("gray", "#808080"),
    ("green", "#008000"),
    ("grey", "#808080"),
    ("indigo", "#4b0082"),
    ("khaki", "#f0e68c"),
    ("lime", "#00ff00"),
    ("magenta", "#ff00ff"),
    ("maroon", "#800000"),
    ("navy", "#000080"),
    ("olive", "#808000"),
    ("orange", "#ffa500"),
    ("pink", "#ffc0cb"),
    ("purple", "#800080"),
    ("red", "#ff0000"),
    ("salmon", "#fa8072"),
    ("silver", "#c0c0c0"),
    ("teal", "#008080"),
    ("tomato", "#ff6347"),
    ("turquoise", "#40e0d0"),
    ("violet", "#ee82ee"),
    ("white", "#ffffff"),
    ("yellow", "#ffff00"),
];

pub fn read(said: &str) -> Option<Wish> {
    let said = said.trim();
    if said.lines().count() > 1 {
        return None;
    }
    announcement(said)
        .map(Wish::Announcement)
        .or_else(|| button(said).map(Wish::ButtonColour))
        .or_else(|| sticky(said).then_some(Wish::Sticky))
        .or_else(|| words_to_words(said))
}

/// Each word without the signs around it, in lower case, with the place where it begins and where it ends.
fn words(said: &str) -> impl Iterator<Item = (usize, usize, String)> + '_ {
    said.split_whitespace().map(|word| {
        // Both are parts of the same text.
        let at = word.as_ptr() as usize - said.as_ptr() as usize;
        let plain = word.trim_matches(|c: char| {
            matches!(c, ',' | '.' | ';' | ':' | '!' | '?' | '(' | ')') || is_quote(c)
        });
        (at, at + word.len(), plain.to_lowercase().replace('’', "'"))
    })
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„' | '«' | '»' | '\'' | '‘' | '’' | '`')
}

fn knows(lists: &[&[&str]], word: &str) -> bool {
    word.is_empty() || lists.iter().any(|list| list.contains(&word))
}

fn sticky(said: &str) -> bool {
    let all: Vec<String> = words(said).map(|(_, _, word)| word).collect();
    let has = |some: &[&str]| all.iter().any(|word| some.contains(&word.as_str()));
    let sticks = has(&["sticky", "stick", "sticks", "fixed", "pin", "pinned"])
        || (has(&["top", "visible"])
            && has(&["keep", "stay", "stays", "always", "fix", "remain", "remains"]));
    has(&["header"]) && sticks && all.iter().all(|word| knows(&[POLITE, STICKY], word))
}

fn announcement(said: &str) -> Option<String> {
    let (mut is_named, mut leads) = (false, false);
    for (at, end, word) in words(said) {
        let begins_quote = is_named && said[at..].starts_with(is_quote);
        // "to say hello" has two words before the text.
        let goes_on =
            leads && BEFORE_TEXT.contains(&word.as_str()) && !said[at..].starts_with(char::is_uppercase);
        if begins_quote || (leads && !goes_on) {
            return plain_text(&said[at..]);
        }
        let ends_head = said[..end].ends_with(':');
        if word.starts_with("announcement") {
            is_named = true;
        } else if is_named && BEFORE_TEXT.contains(&word.as_str()) {
            leads = true;
        } else if !knows(&[POLITE, ANNOUNCEMENT], &word) {
            return None;
        }
        if is_named && ends_head {
            return plain_text(&said[end..]);
        }
    }
    None
}

fn button(said: &str) -> Option<String> {
    let mut colours = Vec::new();
    let mut names_button = false;
    for (_, _, word) in words(said) {
        names_button |= word.starts_with("button");
        if let Some(colour) = colour(&word) {
            colours.push(colour);
        } else if !knows(&[POLITE, BUTTON], &word) {
            return None;
        }
    }
    (names_button && colours.len() == 1).then(|| colours.remove(0))
}

/// A colour as `#rrggbb`, of a name or of `#rgb` or `#rrggbb`.
pub fn colour(word: &str) -> Option<String> {
    let word = word.to_lowercase();
    if let Some((_, hex)) = COLOURS.iter().find(|(name, _)| *name == word) {
        return Some((*hex).to_owned());
    }
    let digits = word.strip_prefix('#')?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    match digits.len() {
        3 => Some(digits.chars().fold(String::from("#"), |hex, digit| hex + &format!("{digit}{digit}"))),
        6 => Some(word),
        _ => None,
    }
}

/// "rename X to Y" and the like.
fn words_to_words(said: &str) -> Option<Wish> {
    let mut rest = said;
    for polite in ["please ", "can you ", "could you ", "please "] {
        rest = strip(rest, polite).unwrap_or(rest);
    }
    let (rest, between, is_change) = if let Some(rest) = strip(rest, "rename ") {
        (rest, [" to ", " into "], false)
    } else if let Some(rest) = strip(rest, "replace ") {
        (rest, [" with ", " by "], false)
    } else {
        (strip(rest, "change ")?, [" to ", " into "], true)
    };
    let kinds =
        ["text", "word", "words", "heading", "title", "label", "button", "link", "menu item", "sentence"];
    let named = strip(rest, "the ").unwrap_or(rest);
    let kind = kinds.iter().filter_map(|kind| strip(named, &format!("{kind} "))).next();
    let (old, new) = match quoted(kind.unwrap_or(rest)).or_else(|| quoted(rest)) {
        Some((old, rest)) => {
            let rest = format!(" {}", rest.trim_start());
            let new = between.iter().find_map(|between| strip(&rest, between))?;
            (old.to_owned(), new.to_owned())
        }
        None => {
            // Without quotes, only these words say where the text begins: "change the menu to a list" wants something else.
            let text =
                ["the text ", "text ", "the word ", "the words "].iter().find_map(|kind| strip(rest, kind));
            let text = if is_change && !rest.starts_with(is_quote) { text? } else { text.unwrap_or(rest) };
            let lower = text.to_ascii_lowercase();
            let mut found = between.iter().flat_map(|between| {
                lower.match_indices(between).map(|(at, between)| (at, at + between.len()))
            });
            let (end, begin) = found.next()?;
            if found.next().is_some() {
                return None;
            }
            (text[..end].trim().to_owned(), text[begin..].to_owned())
        }
    };
    let new = plain_text(&new)?;
    let is_path =
        |text: &str| [".liquid", ".json", ".css", ".js", ".svg"].iter().any(|end| text.ends_with(end));
    let is_fit = !old.is_empty() && old.chars().count() <= MAX_TEXT && old != new && !is_path(&old);
    is_fit.then_some(Wish::Text { old, new })
}

/// The rest after a beginning, whatever its case.
fn strip<'a>(text: &'a str, begin: &str) -> Option<&'a str> {
    let head = text.get(..begin.len())?;
    head.eq_ignore_ascii_case(begin).then(|| &text[begin.len()..])
}

/// A text in quotes at the beginning, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let open = text.chars().next().filter(|c| is_quote(*c))?;
    let close: &[char] = match open {
        '“' | '„' | '”' => &['”', '“'],
        '«' => &['»'],
        '»' => &['«'],
        '‘' | '’' => &['’'],
        '"' => &['"'],
        '`' => &['`'],
        _ => &['\''],
    };
    let inner = &text[open.len_utf8()..];
    // An apostrophe within a word closes nothing.
    let end = inner.char_indices().find_map(|(at, c)| {
        let after = inner[at + c.len_utf8()..].chars().next();
        (close.contains(&c) && !after.is_some_and(char::is_alphanumeric)).then_some(at)
    })?;
    let after = end + inner[end..].chars().next().map_or(0, char::len_utf8);
    Some((&inner[..end], &inner[after..]))
}

/// The text that a person wants to have: without the quotes around it, or without the full stop of the sentence.
fn plain_text(text: &str) -> Option<String> {
    let text = text.trim();
    let text = match quoted(text) {
        Some((inner, rest)) => {
            let rest = rest.trim().trim_end_matches(['.', '!']).trim().to_lowercase();
            if !matches!(rest.as_str(), "" | "please" | ", please") {
                return None;
            }
            inner
        }
        None => text.strip_suffix('.').filter(|text| !text.ends_with('.')).unwrap_or(text),
    };
    let text = text.trim();
    (!text.is_empty() && text.chars().count() <= MAX_TEXT).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_and_what_they_want() {
        let announcement = |text: &str| Some(Wish::Announcement(text.to_owned()));
        let colour = |hex: &str| Some(Wish::ButtonColour(hex.to_owned()));
        let text = |old: &str, new: &str| Some(Wish::Text { old: old.to_owned(), new: new.to_owned() });
        for (said, wanted) in [
            ("make the header sticky", Some(Wish::Sticky)),
            ("Please keep the header at the top.", Some(Wish::Sticky)),
            ("Can you make the header stick to the top when I scroll?", Some(Wish::Sticky)),
            ("The header should always stay at the top of the page", Some(Wish::Sticky)),
            ("make the header not sticky", None),
            ("make the header sticky on phones only", None),
            ("make the header sticky and blue", None),
            ("make the footer sticky", None),
            ("make the header blue", None),
            ("announcement bar: free shipping over 50", announcement("free shipping over 50")),
            ("Announcement: Sale!", announcement("Sale!")),
            ("change the announcement to Free shipping.", announcement("Free shipping")),
            (
                "Please set the text of the announcement bar to \"We ship to Mars.\"",
                announcement("We ship to Mars."),
            ),
            ("change the announcement bar to say hello to all", announcement("hello to all")),
            ("The announcement should read 'We're open', please", announcement("We're open")),
            ("change the announcement to “Read our news”", announcement("Read our news")),
            ("change the announcement to Read our news", announcement("Read our news")),
            ("make the announcement bar blue", None),
            ("change the colour of the announcement bar to red", None),
            ("remove the announcement", None),
            ("announcement bar", None),
            ("announcement bar:", None),
            ("change the button colour to #0a7", colour("#00aa77")),
            ("Change the button color to #00AA77.", colour("#00aa77")),
            ("make the buttons red", colour("#ff0000")),
            ("the buttons should be teal", colour("#008080")),
            ("button colour: navy", colour("#000080")),
            ("change the button text colour to red", None),
            ("change the button colour from red to blue", None),
            ("change the button colour to #0a7f", None),
            ("change the button colour to something warm", None),
            ("make the add to cart button red", None),
            ("make the text red", None),
            ("rename \"Add to cart\" to \"Buy now\"", text("Add to cart", "Buy now")),
            ("Rename Welcome to Hello", text("Welcome", "Hello")),
            ("change the text Our story to About us.", text("Our story", "About us")),
            ("change the heading \"Our story\" to \"About us\"", text("Our story", "About us")),
            ("replace 'Sold out' with 'Gone'", text("Sold out", "Gone")),
            ("please change “Add to cart” to “Add to bag”", text("Add to cart", "Add to bag")),
            ("Could you please rename Welcome to Hello", text("Welcome", "Hello")),
            ("rename Add to cart to Buy", None),
            ("rename sections/a.liquid to sections/b.liquid", None),
            ("change the menu to a list", None),
            ("rename X to X", None),
            ("change the text to Hello", None),
            ("add a countdown to the product page", None),
            ("rename A to B\nand C to D", None),
            ("", None),
        ] {
            assert_eq!(read(said), wanted, "{said}");
        }
    }

    #[test]
    fn colours_have_one_form() {
        for (word, hex) in [
            ("#0A7", Some("#00aa77")),
            ("Red", Some("#ff0000")),
            ("#12345", None),
            ("#ééé", None),
            ("", None),
        ] {
            assert_eq!(colour(word).as_deref(), hex, "{word}");
        }
    }
}
