//! Patterns of paths: `*` matches within a part, `**` across parts, `?` one character, `{a,b}` either.

use domain::validate::FieldErrors;

use super::expression::{Expression, Matching};
use shared::process::compute::{Stop, Stopped};

/// The longest pattern, in bytes.
const MAX_PATTERN: usize = 512;

/// A compiled pattern.
pub struct Glob(Expression);

impl Glob {
    /// # Errors
    /// If the pattern is too long or too complex, or its braces don't close.
    pub fn new(field: &str, pattern: &str) -> Result<Self, FieldErrors> {
        let expression = translate(pattern).map_err(|problem| FieldErrors::one(field, problem))?;
        let matching = Matching { dot_matches_new_line: true, ..Matching::default() };
        let expression =
            Expression::new(&expression, matching).map_err(|_| FieldErrors::one(field, "is too complex"))?;
        Ok(Self(expression))
    }

    /// Whether the pattern matches a path.
    ///
    /// # Errors
    /// If the comparison was stopped.
    pub fn is_match(&mut self, path: &str, stop: &Stop) -> Result<bool, Stopped> {
        Ok(self.0.end(path.as_bytes(), stop)?.is_some())
    }
}

/// Translates a pattern to a regular expression.
fn translate(pattern: &str) -> Result<String, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("must be at most {MAX_PATTERN} bytes, is {}", pattern.len()));
    }
    let (mut expression, mut depth) = ("^".to_owned(), 0);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also matches no part at all.
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
            other => expression.push_str(&Expression::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    if depth > 0 {
        return Err("has a `{` without its `}`".to_owned());
    }
    expression.push('$');
    Ok(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_takes_what_it_says() {
        let check = |pattern: &str, taken: &[&str], left: &[&str]| {
            let mut glob = Glob::new("glob", pattern).unwrap();
            let stop = Stop::after(std::time::Duration::from_secs(60));
            let mut takes = |path: &&str| glob.is_match(path, &stop).unwrap();
            assert!(taken.iter().all(&mut takes), "{pattern} takes {taken:?}");
            assert!(!left.iter().any(takes), "{pattern} leaves {left:?}");
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
    fn an_invalid_pattern_is_reported() {
        let check = |pattern: &str, expected: &str| {
            assert_eq!(Glob::new("glob", pattern).err().unwrap().to_string(), expected);
        };
        check("{a", "glob: has a `{` without its `}`");
        check(&"*".repeat(513), "glob: must be at most 512 bytes, is 513");
        check(&("{".repeat(200) + &"}".repeat(200)), "glob: is too complex");
    }
}
