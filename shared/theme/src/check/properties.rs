//! The names of CSS properties, and the values of those that have few. A new property is no fault, so a name counts only if it is nearly one
//! that exists.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

static NAMES: LazyLock<FxHashSet<&'static str>> = LazyLock::new(|| {
    let lines = include_str!("properties.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(str::split_whitespace).collect()
});

/// The property that a misspelt name means: one letter is missing, one too many, or two are swapped.
pub fn meant(name: &str) -> Option<&'static str> {
    if NAMES.contains(name) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if name.len() < 5
        || NAMES.contains(name.as_str())
        || !name.bytes().all(|b| b.is_ascii_lowercase() || b == b'-')
    {
        return None;
    }
    // Names with a sign before them, such as `*zoom` and `-webkit-box`, are of single browsers.
    if name.starts_with('-') {
        return None;
    }
    NAMES.iter().copied().filter(|known| known.len() > 4 && is_near(&name, known)).min()
}

/// Whether two names differ in one letter that is missing, or in two neighbours that are swapped.
fn is_near(a: &str, b: &str) -> bool {
    let (short, long) =
        if a.len() <= b.len() { (a.as_bytes(), b.as_bytes()) } else { (b.as_bytes(), a.as_bytes()) };
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        1 => short[same..] == long[same + 1..],
        0 => {
            same + 1 < short.len()
                && short[same] == long[same + 1]
                && short[same + 1] == long[same]
                && short[same + 2..] == long[same + 2..]
        }
        _ => false,
    }
}

/// Properties with a short list of words as values.
const WORDS: [(&str, &str); 9] = [
    ("position", "static relative absolute fixed sticky -webkit-sticky"),
    ("float", "left right none inline-start inline-end"),
    ("visibility", "visible hidden collapse"),
    ("box-sizing", "border-box content-box padding-box"),
    ("flex-direction", "row row-reverse column column-reverse"),
    ("flex-wrap", "nowrap wrap wrap-reverse"),
    ("object-fit", "fill contain cover none scale-down"),
    ("text-transform", "none capitalize uppercase lowercase full-width full-size-kana math-auto"),
    (
        "text-align",
        "start end left right center justify match-parent justify-all -webkit-center -webkit-left -webkit-right -webkit-auto -webkit-match-parent -moz-center",
    ),
];

/// Properties that take lengths, and no number without a unit.
const LENGTHS: [&str; 20] = [
    "width",
    "height",
    "min-width",
    "min-height",
    "max-width",
    "max-height",
    "margin",
    "margin-top",
    "margin-bottom",
    "margin-left",
    "margin-right",
    "padding",
    "padding-top",
    "padding-bottom",
    "padding-left",
    "padding-right",
    "font-size",
    "gap",
    "border-radius",
    "letter-spacing",
];

const UNITS: &str = "px em rem ex rex ch rch cap rcap ic ric lh rlh vw vh vi vb vmin vmax svw svh svi svb svmin svmax lvw lvh lvi lvb lvmin lvmax \
    dvw dvh dvi dvb dvmin dvmax cqw cqh cqi cqb cqmin cqmax cm mm q in pt pc deg grad rad turn s ms hz khz dpi dpcm dppx x fr";

/// What is wrong with the value of a property, if that is certain.
pub fn wrong_value(name: &str, value: &str) -> Option<String> {
    let words = WORDS.iter().find(|(known, _)| *known == name).map(|(_, words)| words);
    if words.is_none() && !LENGTHS.contains(&name) {
        return None;
    }
    let value = value.trim();
    let value = value.strip_suffix("!important").unwrap_or(value).trim();
    // What Liquid, a variable or a function gives is not known, and a backslash is a trick for old browsers.
    if value.contains(['(', '_', '\\', '$', '{', '/', '"', '\'', '#', '!']) || value.len() > 100 {
        return None;
    }
    let lower = value.to_ascii_lowercase();
    const WIDE: [&str; 5] = ["inherit", "initial", "unset", "revert", "revert-layer"];
    if WIDE.contains(&lower.as_str()) {
        return None;
    }
    if let Some(words) = words {
        let is_word = !lower.is_empty() && lower.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        let is_known = words.split_whitespace().any(|word| word == lower);
        return (is_word && !is_known).then(|| format!("`{name}` has no value `{lower}`"));
    }
    for word in lower.split_whitespace() {
        let digits = word.trim_start_matches(['+', '-']);
        let end = digits.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(digits.len());
        let (number, unit) = digits.split_at(end);
        let Ok(size) = number.parse::<f64>() else { continue };
        let is_letters = !unit.is_empty() && unit.bytes().all(|b| b.is_ascii_lowercase());
        if is_letters && !UNITS.split_whitespace().any(|known| known == unit) {
            return Some(format!("there is no unit `{unit}`"));
        }
        if unit.is_empty() && size != 0.0 {
            return Some(format!("`{name}` needs a unit behind `{word}`"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_those_of_which_one_is_near() {
        for (name, known) in [
            ("ackground-color", "background-color"),
            ("line-hight", "line-height"),
            ("margin-bototm", "margin-bottom"),
            ("opacityy", "opacity"),
        ] {
            assert_eq!(meant(name), Some(known), "{name}");
        }
        for name in [
            "color",
            "inset",
            "scale",
            "zoom",
            "-webkit-box-flex",
            "grid-gap",
            "new-property",
            "COLOR",
            "fill",
            "src",
            "orphans",
        ] {
            assert_eq!(meant(name), None, "{name}");
        }
    }

    #[test]
    fn values_are_wrong_only_where_that_is_certain() {
        for (name, value) in [
            ("position", "absolut"),
            ("text-align", "centre"),
            ("flex-direction", "colum"),
            ("width", "16"),
            ("padding", "4px 8"),
            ("margin", "0 10xp"),
            ("font-size", "1.5 !important"),
        ] {
            assert!(wrong_value(name, value).is_some(), "{name}: {value}");
        }
        for (name, value) in [
            ("position", "sticky !important"),
            ("position", "var(--x)"),
            ("position", "____"),
            ("width", "0"),
            ("width", "100%"),
            ("width", "min-content"),
            ("width", "calc(1px + 2)"),
            ("margin", "0 auto"),
            ("margin", "-1.5rem 0 .5e3px"),
            ("width", "10PX"),
            ("width", "100px\\9"),
            ("line-height", "1.5"),
            ("font-size", "10dvh"),
            ("text-align", "inherit"),
        ] {
            assert_eq!(wrong_value(name, value), None, "{name}: {value}");
        }
    }
}
