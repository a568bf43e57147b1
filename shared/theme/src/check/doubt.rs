//! An error must be proven by the theme alone: what rests on a guess is a warning.
//!
//! Shopify's parsers and its documented rules are proofs, and so is what browsers do with broken markup. Words, names that another script may
//! define, files that a tool or an app may make, and limits whose effect is not documented are none. A change is its own proof: what it
//! brings was not there before, so [`super::CheckedTheme::added_since`] keeps such errors.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CheckedTheme, Finding, Severity, is_filter, is_refused, json, names};
use crate::path::FileKind;
use crate::text::Span;

/// Errors of parsers: where they stand, the code is broken.
const PROOFS: [&str; 5] = ["CssSyntax", "HtmlSyntax", "JavaScriptSyntax", "LiquidSyntaxError", "ValidJSON"];

/// How many lines before a proof a guess may stand.
const NEAR: u32 = 2;

/// With fewer files, a folder without a layout may be the part of a theme that someone wants to know of.
const LEAST_FILES: usize = 20;

/// So many missing files of one kind, a quarter of all of that kind, are made elsewhere.
const MANY: usize = 4;

/// The most patterns that are read of a list of ignored files, and the longest one.
const MOST_PATTERNS: usize = 500;
const LONGEST_PATTERN: usize = 200;

/// What the folder around a theme says of files that are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether a tool builds files of the theme.
    has_tool: bool,
    /// Patterns of files that are made, and not kept.
    ignored: Vec<String>,
}

impl Surroundings {
    /// `names` are the paths of the folder, `package` is the text of `package.json`, and `ignored` the one of `.gitignore`.
    pub fn of<'a>(
        names: impl IntoIterator<Item = &'a str>,
        package: Option<&str>,
        ignored: Option<&str>,
    ) -> Self {
        let has_tool = names.into_iter().any(is_of_tool) || package.is_some_and(builds);
        let lines = ignored.unwrap_or_default().lines().map(str::trim);
        let patterns = lines.filter(|line| {
            !line.is_empty() && !line.starts_with(['#', '!']) && line.len() <= LONGEST_PATTERN
        });
        Self { has_tool, ignored: patterns.take(MOST_PATTERNS).map(str::to_owned).collect() }
    }

    fn ignores(&self, path: &str) -> bool {
        self.ignored.iter().any(|pattern| is_ignored(pattern, path))
    }
}

/// Whether a tool that builds files has its settings or its sources here.
fn is_of_tool(path: &str) -> bool {
    const STEMS: [&str; 9] = [
        "webpack.",
        "vite.config.",
        "rollup.config.",
        "gulpfile.",
        "gruntfile.",
        "esbuild.",
        "parcel.",
        "slate.config.",
        "tsup.config.",
    ];
    let small = path.to_ascii_lowercase();
    match small.split_once('/') {
        None => STEMS.iter().any(|stem| small.starts_with(stem)) || small == ".parcelrc",
        Some((folder, _)) => matches!(folder, "src" | "frontend"),
    }
}

/// Whether a script of a `package.json` builds something.
fn builds(package: &str) -> bool {
    const TOOLS: [&str; 12] = [
        "webpack", "vite", "rollup", "gulp", "grunt", "parcel", "esbuild", "slate", "sass", "postcss",
        "tailwind", "tsc",
    ];
    let Ok(parsed) = json::parse(package, Span::new(0, package.len()), false) else { return false };
    parsed.root.get("scripts").is_some_and(|scripts| {
        scripts.members().iter().any(|member| {
            let text = member.node.text().unwrap_or_default();
            member.key.starts_with("build") || TOOLS.iter().any(|tool| text.contains(tool))
        })
    })
}

/// Whether a pattern of `.gitignore` covers a path. `*` stands for any text.
fn is_ignored(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_end_matches('/').trim_end_matches("/**").trim_end_matches("/*");
    let is_rooted = pattern.contains('/');
    let pattern = pattern.trim_start_matches("**/").trim_start_matches('/');
    if pattern.is_empty() {
        return false;
    }
    let is_folder = |end: usize| is_like(pattern, &path[..end]);
    if is_rooted {
        return is_like(pattern, path) || path.match_indices('/').any(|(end, _)| is_folder(end));
    }
    path.split('/').any(|part| is_like(pattern, part))
}

/// Whether a text is like a pattern with `*`.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Makes warnings of the errors that the theme does not prove.
pub fn settle(theme: &CheckedTheme, found: &mut [Finding]) {
    let doubts = Doubts::of(theme, found);
    let doubtful: Vec<usize> = found
        .iter()
        .enumerate()
        .filter(|(_, finding)| finding.severity == Severity::Error && doubts.has(finding))
        .map(|(index, _)| index)
        .collect();
    for index in doubtful {
        let finding = &mut found[index];
        finding.severity = Severity::Warning;
        finding.refused = is_refused(&finding.path, finding.code, finding.severity);
    }
}

struct Doubts<'a> {
    theme: &'a CheckedTheme,
    /// The lines of errors of parsers, by path.
    proofs: FxHashMap<String, Vec<u32>>,
    /// What is missing so often that it is made elsewhere: the code, and the kind of file.
    dangling: FxHashSet<(&'static str, String)>,
    /// Whether the folder lacks files that each theme has.
    is_part: bool,
    /// Whether the theme is older than sections and templates of JSON.
    is_old: bool,
}

impl<'a> Doubts<'a> {
    fn of(theme: &'a CheckedTheme, found: &[Finding]) -> Self {
        let mut proofs: FxHashMap<String, Vec<u32>> = FxHashMap::default();
        let mut missing: FxHashMap<(&'static str, String), FxHashSet<&str>> = FxHashMap::default();
        for finding in found.iter().filter(|finding| finding.severity == Severity::Error) {
            if PROOFS.contains(&finding.code) {
                proofs.entry(finding.path.clone()).or_default().push(finding.line);
            }
            if let Some((kind, name)) = missing_file(finding) {
                missing.entry((finding.code, kind.to_owned())).or_default().insert(name);
            }
        }
        let mut there: FxHashMap<&str, usize> = FxHashMap::default();
        for (path, file) in &theme.files {
            if let Some(kind) = kind_of(path, file.kind) {
                *there.entry(kind).or_default() += 1;
            }
        }
        let dangling = missing
            .into_iter()
            .filter(|((_, kind), names)| {
                let there = there.get(kind.as_str()).copied().unwrap_or_default();
                names.len() >= MANY && names.len() * 4 >= there + names.len()
            })
            .map(|(key, _)| key)
            .collect();
        let has = |path: &str| theme.files.contains_key(path);
        let is_part = theme.files.len() >= LEAST_FILES
            && !(has("layout/theme.liquid") && has("config/settings_schema.json"));
        let is_old = !theme
            .files
            .values()
            .any(|file| matches!(file.kind, FileKind::Section | FileKind::JsonTemplate | FileKind::Block));
        Self { theme, proofs, dangling, is_part, is_old }
    }

    fn has(&self, finding: &Finding) -> bool {
        let Finding { path, line, code, message, .. } = finding;
        let around = &self.theme.surroundings;
        match *code {
            // Words. A marker of a merge is no word, and where a parser stops, the words are right.
            "EditingDamage" | "Placeholder" => {
                !message.starts_with("a marker of a merge") && !self.is_proven(path, *line)
            }
            // Apps add scripts to pages, and these define names and write inputs.
            "UndefinedName" | "MissingVariantId" => true,
            // It is not documented what Shopify does.
            "PaginationSize" => true,
            // Liquid has neither tag, and Shopify does not document how strictly it reads their arguments.
            "LiquidSyntaxError" => ["`form` does not expect", "`paginate` does not expect"]
                .iter()
                .any(|of| message.starts_with(of)),
            // The value passes as it is, and that may be what the page needs.
            "UnknownFilter" => true,
            // Browsers ignore the last `}`. Whether an earlier one is meant is seen from the indentation alone.
            "CssSyntax" => message.ends_with("here or at the end"),
            // Whether two different conditions can differ is not in the theme.
            "UnclosedElement" => message.ends_with("on one branch only"),
            "MissingAsset" | "MissingTemplate" | "MissingLayout" => {
                self.is_part
                    || around.has_tool
                    || missing_file(finding).is_some_and(|(kind, name)| {
                        self.dangling.contains(&(*code, kind.to_owned()))
                            || around.ignores(&format!("{}{name}", folder(kind)))
                            || kind == "snippet" && is_of_app(name)
                    })
            }
            "MissingFile" | "DefaultLocale" if *line <= 1 => {
                let is_there = self.theme.files.contains_key(path);
                !is_there && (around.has_tool || around.ignores(path))
            }
            // Shopify's tools leave out what is no file of a theme, and shops have templates with other names.
            "InvalidPath" => true,
            // Browsers read other encodings.
            "Encoding" => path.starts_with("assets/"),
            // A page without content is a page.
            "EmptyFile" => path.starts_with("templates/") && path.ends_with(".liquid"),
            // Settings may change after their values were stored.
            "ValidSettingValue" => path == "config/settings_data.json",
            // Shopify keeps sections with more blocks, and whether it reads a schema elsewhere is not documented. Old settings were taken when
            // the theme was made.
            "ValidSchema" | "ValidSettingsSchema" => {
                message.starts_with("`max_blocks` must be 1 to 50, is ")
                    || path.starts_with("snippets/")
                    || self.is_old && path == "config/settings_schema.json"
            }
            // Other languages of templates have braces, too.
            "LiquidInStaticAsset" if path.contains(".js") => !self.is_liquid(path, *line),
            // `// a: {{ b }};` is a declaration that browsers drop.
            "LiquidInStaticAsset" => self.line(path, *line).trim_start().starts_with("//"),
            _ => false,
        }
    }

    fn is_proven(&self, path: &str, line: u32) -> bool {
        let near = line.saturating_sub(NEAR)..=line.saturating_add(NEAR);
        self.proofs.get(path).is_some_and(|lines| lines.iter().any(|line| near.contains(line)))
    }

    fn line(&self, path: &str, line: u32) -> &str {
        self.theme.files.get(path).map_or("", |file| file.lines.span_of(line).of(&file.text))
    }

    /// Whether the first output of a line has a filter of Shopify's, or its first tag is one.
    fn is_liquid(&self, path: &str, line: u32) -> bool {
        let text = self.line(path, line);
        let first_word = |text: &str| -> String {
            let word = text.trim_start_matches([' ', '-']);
            word.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect()
        };
        let output = text.split_once("{{").and_then(|(_, rest)| rest.split_once("}}"));
        let tag = text.split_once("{%").map(|(_, rest)| first_word(rest));
        output.is_some_and(|(markup, _)| markup.split('|').skip(1).any(|part| is_filter(&first_word(part))))
            || tag.is_some_and(|name| names::NAMES.tags.contains(name.as_str()))
    }
}

/// The kind and the name of a file that a finding misses: `there is no snippet `card``. Of assets, the kind is the extension.
fn missing_file(finding: &Finding) -> Option<(&str, &str)> {
    if !matches!(finding.code, "MissingAsset" | "MissingTemplate" | "MissingLayout") {
        return None;
    }
    let (kind, name) = finding.message.strip_prefix("there is no ")?.split_once(" `")?;
    let name = name.strip_suffix('`')?;
    match kind {
        "asset" => Some((name.rsplit_once('.').map_or("", |(_, extension)| extension), name)),
        _ => Some((kind, name)),
    }
}

/// Whether an app that is installed in a shop makes a snippet with this name.
fn is_of_app(name: &str) -> bool {
    const APPS: [&str; 16] = [
        "bold",
        "gempages",
        "globo",
        "judgeme",
        "limespot",
        "loox",
        "loyaltylion",
        "okendo",
        "pagefly",
        "shogun",
        "spurit",
        "stamped",
        "swymsnippet",
        "vitals",
        "yotpo",
        "zipify",
    ];
    let name = name.to_ascii_lowercase();
    APPS.iter().any(|app| {
        name.strip_prefix(app).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

fn folder(kind: &str) -> &'static str {
    match kind {
        "snippet" => "snippets/",
        "section" | "section group" => "sections/",
        "theme block" => "blocks/",
        "layout" => "layout/",
        _ => "assets/",
    }
}

/// The kind of a file, as [`missing_file`] names it.
fn kind_of(path: &str, file: FileKind) -> Option<&str> {
    match file {
        FileKind::Snippet => Some("snippet"),
        FileKind::Section => Some("section"),
        FileKind::SectionGroup => Some("section group"),
        FileKind::Block => Some("theme block"),
        FileKind::Layout => Some("layout"),
        _ => {
            let name = path.strip_prefix("assets/")?;
            let name = name.strip_suffix(".liquid").unwrap_or(name);
            name.rsplit_once('.').map(|(_, extension)| extension)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{Surroundings, builds, is_ignored, is_of_tool};
    use crate::check::script::{ScriptFacts, ScriptReader};
    use crate::check::{CheckedTheme, Severity};

    struct Reader;

    impl ScriptReader for Reader {
        fn read(&self, _: &str, _: bool) -> ScriptFacts {
            ScriptFacts::default()
        }
    }

    const LAYOUT: (&str, &str) = (
        "layout/theme.liquid",
        "{{ content_for_header }}{{ content_for_layout }}<!-- zebra.css zebra.js -->",
    );
    const SETTINGS: (&str, &str) = ("config/settings_schema.json", "[]");

    fn severities(theme: &CheckedTheme, code: &str) -> Vec<Severity> {
        let found = theme.findings().into_iter().filter(|finding| finding.code == code);
        found.map(|finding| finding.severity).collect()
    }

    #[test]
    fn guesses_are_warnings_and_errors_of_a_change() {
        let pages = "{% paginate collection.products by 0 %}{% endpaginate %}";
        let branch = "{% if a %}<div>{% endif %}<p>x</p>";
        let cases = [
            ("sections/a.liquid", "<p>a</p>\n<!-- rest of the code remains unchanged -->\n", "Placeholder"),
            ("sections/a.liquid", "<p>a</p>\n```\n<p>b</p>\n", "EditingDamage"),
            ("sections/a.liquid", pages, "PaginationSize"),
            ("sections/a.liquid", branch, "UnclosedElement"),
            ("templates/page.liquid", " ", "EmptyFile"),
            ("templates/page.liquid", "{{ page.title | to_i }}", "UnknownFilter"),
            (
                "templates/page.liquid",
                "{% form 'contact', id: 'a' | append: 'b' %}{% endform %}",
                "LiquidSyntaxError",
            ),
            ("assets/zebra.css", "a {\n  // b: {{ settings.c }};\n  d: e;\n}", "LiquidInStaticAsset"),
            ("snippets/a.liquid", "{% schema %}{}{% endschema %}", "ValidSchema"),
            (
                "sections/a.liquid",
                "{% schema %}{\"name\": \"A\", \"max_blocks\": 80}{% endschema %}",
                "ValidSchema",
            ),
            (
                "templates/page.liquid",
                "<style>\n  .a {\n    b: c;\n}\n  .d {\n    e: f;\n  }}\n</style>",
                "CssSyntax",
            ),
            ("snippets/a.txt", "x", "InvalidPath"),
            ("templates/extra.liquid", "x", "InvalidPath"),
        ];
        for (path, text, code) in cases {
            let theme = CheckedTheme::read([LAYOUT, SETTINGS, (path, text)], None);
            assert_eq!(severities(&theme, code), [Severity::Warning], "{path} {text}");
            let before = CheckedTheme::read([LAYOUT, SETTINGS], None);
            let added = theme.added_since(&before);
            let is_error = added.iter().any(|f| f.code == code && f.severity == Severity::Error);
            assert!(is_error, "{path} {text}: {added:?}");
        }
    }

    #[test]
    fn a_lost_rule_stays_an_error() {
        let text = "<style>\n.a {\n  b: c;\n}\n}\n.d {\n  e: f;\n}\n</style>";
        let theme = CheckedTheme::read([LAYOUT, SETTINGS, ("templates/page.liquid", text)], None);
        assert_eq!(severities(&theme, "CssSyntax"), [Severity::Error]);
    }

    #[test]
    fn apps_make_snippets() {
        for (name, expected) in [
            ("judgeme_widgets", Severity::Warning),
            ("loox-rating", Severity::Warning),
            ("yotpo", Severity::Warning),
            ("boldness", Severity::Error),
            ("card", Severity::Error),
        ] {
            let text = format!("{{% render '{name}' %}}");
            let theme = CheckedTheme::read([LAYOUT, SETTINGS, ("sections/a.liquid", &text)], None);
            assert_eq!(severities(&theme, "MissingTemplate"), [expected], "{name}");
        }
    }

    #[test]
    fn a_proof_beside_it_makes_a_guess_an_error() {
        let markers = "<p>a</p>\n<<<<<<< HEAD\n<p>b</p>\n=======\n<p>c</p>\n>>>>>>> other\n";
        let fence = "<p>a</p>\n```\n{% if %}x{% endif %}\n";
        let far = "<p>a</p>\n```\n\n\n\n{% if %}x{% endif %}\n";
        for (text, expected) in
            [(markers, Severity::Error), (fence, Severity::Error), (far, Severity::Warning)]
        {
            let theme = CheckedTheme::read([LAYOUT, SETTINGS, ("sections/a.liquid", text)], None);
            let found = severities(&theme, "EditingDamage");
            assert!(!found.is_empty() && found.iter().all(|severity| *severity == expected), "{text}");
        }
    }

    #[test]
    fn braces_of_other_languages_are_no_liquid() {
        for (text, expected) in [
            ("var a = \"{{ product.title | escape }}\";", Severity::Error),
            ("var a = \"{% if x %}b{% endif %}\";", Severity::Error),
            ("var a = \"{{ product.title }}\";", Severity::Warning),
            ("var a = \"{{ product.title | uppercase }}\";", Severity::Warning),
        ] {
            let layout = (
                "layout/theme.liquid",
                "{{ content_for_header }}{{ content_for_layout }}{{ 'zebra.js' | asset_url }}",
            );
            let theme = CheckedTheme::read([layout, SETTINGS, ("assets/zebra.js", text)], Some(&Reader));
            assert_eq!(severities(&theme, "LiquidInStaticAsset"), [expected], "{text}");
        }
    }

    #[test]
    fn what_a_tool_builds_may_be_there() {
        let section = ("sections/a.liquid", "{% render 'gone' %}{{ 'gone.css' | asset_url }}");
        let style = ("assets/there.css", "a { color: red }");
        let mut theme = CheckedTheme::read([LAYOUT, SETTINGS, section, style], None);
        let all = |theme: &CheckedTheme| {
            [severities(theme, "MissingTemplate"), severities(theme, "MissingAsset")].concat()
        };
        use Severity::{Error, Warning};
        assert_eq!(all(&theme), [Error, Error]);
        for (names, package, ignored, expected) in [
            (vec!["webpack.config.js"], None, None, [Warning, Warning]),
            (vec!["src/a.ts"], None, None, [Warning, Warning]),
            (vec!["README.md"], Some("{\"scripts\": {\"build\": \"node x\"}}"), None, [Warning, Warning]),
            (vec![], Some("{\"scripts\": {\"lint\": \"prettier .\"}}"), None, [Error, Error]),
            (vec![], None, Some("# made\nassets/*.css\n"), [Error, Warning]),
            (vec![], None, Some("snippets/\n!assets/gone.css"), [Warning, Error]),
        ] {
            theme.set_surroundings(Surroundings::of(names.iter().copied(), package, ignored));
            assert_eq!(all(&theme), expected, "{names:?} {package:?} {ignored:?}");
        }
    }

    #[test]
    fn a_part_of_a_theme_and_many_missing_files_prove_nothing() {
        let snippets = |count: usize| -> Vec<(String, String)> {
            (0..count).map(|number| (format!("snippets/s{number}.liquid"), "x".to_owned())).collect()
        };
        let renders = |count: usize| {
            (0..count).fold(String::new(), |mut text, number| {
                let _ = write!(text, "{{% render 'gone{number}' %}}");
                text
            })
        };
        for (there, missing, with_layout, expected) in [
            (30, 3, true, Severity::Error),
            (30, 3, false, Severity::Warning),
            (9, 3, true, Severity::Error),
            (9, 4, true, Severity::Warning),
            (30, 4, true, Severity::Error),
        ] {
            let mut files = snippets(there);
            files.push(("sections/a.liquid".to_owned(), renders(missing)));
            files.push((SETTINGS.0.to_owned(), SETTINGS.1.to_owned()));
            if with_layout {
                files.push((LAYOUT.0.to_owned(), LAYOUT.1.to_owned()));
            }
            let theme = CheckedTheme::read(files, None);
            let found = severities(&theme, "MissingTemplate");
            assert_eq!(found, vec![expected; missing], "{there} {missing} {with_layout}");
        }
    }

    #[test]
    fn stored_values_and_old_settings_prove_nothing() {
        let schema = "[{\"name\": \"A\", \"settings\": [{\"type\": \"text\"}]}]";
        let settings = ("config/settings_schema.json", schema);
        let old = CheckedTheme::read([LAYOUT, settings], None);
        let today = CheckedTheme::read(
            [LAYOUT, settings, ("templates/index.json", "{\"sections\": {}, \"order\": []}")],
            None,
        );
        assert_eq!(severities(&old, "ValidSchema"), [Severity::Warning]);
        assert_eq!(severities(&today, "ValidSchema"), [Severity::Error]);
    }

    #[test]
    fn patterns_cover_paths() {
        for (pattern, path, expected) in [
            ("assets/", "assets/a.css", true),
            ("/assets/*.css", "assets/a.css", true),
            ("assets/*.css", "assets/a.js", false),
            ("*.min.js", "assets/a.min.js", true),
            ("a.css", "assets/a.css", true),
            ("dist", "assets/dist.css", false),
            ("assets/**", "assets/a.css", true),
            ("**/a*.css", "assets/abc.css", true),
            ("/", "assets/a.css", false),
        ] {
            assert_eq!(is_ignored(pattern, path), expected, "{pattern} {path}");
        }
        assert!(is_of_tool("vite.config.ts") && is_of_tool("src/a.js") && is_of_tool("Gulpfile.js"));
        assert!(
            !is_of_tool("assets/webpack.js")
                && !is_of_tool("package.json")
                && !is_of_tool("sections/a.liquid")
        );
        assert!(
            builds("{\"scripts\": {\"x\": \"sass a b\"}}") && !builds("{\"scripts\": {}}") && !builds("no")
        );
    }
}
