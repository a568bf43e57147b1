//! Patterns of paths: `*` within a part, `**` over parts, `?` for one character, `{a,b}` for either.

use std::fmt::Write;

use domain::validate::FieldErrors;
use regex::{Regex, RegexBuilder};

/// Longest pattern, in bytes.
const MAX_PATTERN: usize = 512;

/// Translates a pattern. The expression runs in time linear in the path, whatever the pattern.
///
/// # Errors
/// When it is too long or its braces don't close.
pub fn compile(field: &str, pattern: &str) -> Result<Regex, FieldErrors> {
    let refused = |message: &str| FieldErrors::one(field, message);
    if pattern.len() > MAX_PATTERN {
        return Err(refused(&format!("must be at most {MAX_PATTERN} bytes, is {}", pattern.len())));
    }
    let (mut expression, mut depth) = ("^".to_owned(), 0);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also stands for no part at all.
                expression.push_str(if rest.next_if_eq(&'/').is_some() { "(?:.*/)?" } else { ".*" });
            }
            '*' => expression.push_str("[^/]*"),
            '?' => expression.push_str("[^/]"),
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                expression.push(')');
            }
            ',' if depth > 0 => expression.push('|'),
            other => {
                let _ = write!(expression, "{}", regex::escape(other.encode_utf8(&mut [0; 4])));
            }
        }
    }
    if depth > 0 {
        return Err(refused("has a `{` without its `}`"));
    }
    expression.push('$');
    RegexBuilder::new(&expression)
        .dot_matches_new_line(true)
        .size_limit(1 << 20)
        .build()
        .map_err(|_| refused("is too complex"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_what_it_says() {
        let check = |pattern: &str, taken: &[&str], left: &[&str]| {
            let glob = compile("glob", pattern).unwrap();
            assert!(taken.iter().all(|path| glob.is_match(path)), "{pattern} takes {taken:?}");
            assert!(!left.iter().any(|path| glob.is_match(path)), "{pattern} leaves {left:?}");
        };
        check("assets/*.css", &["assets/a.css"], &["assets/a.css.liquid", "assets/x/a.css", "xassets/a.css"]);
        check("**/*.json", &["a.json", "templates/a.json", "templates/x/a.json"], &["a.jsonx"]);
        check("templates/**", &["templates/a", "templates/a/b"], &["template/a"]);
        check("sections/header.{liquid,json}", &["sections/header.json"], &["sections/header.css"]);
        check("a?.css", &["ab.css"], &["a/.css", "a.css"]);
        check("a+(b)[c].css", &["a+(b)[c].css"], &["aab.css"]);
        check("a}b,c", &["a}b,c"], &["a"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        let check = |pattern: &str, expected: &str| {
            assert_eq!(compile("glob", pattern).unwrap_err().to_string(), expected);
        };
        check("{a", "glob: has a `{` without its `}`");
        check(&"*".repeat(513), "glob: must be at most 512 bytes, is 513");
    }
}
