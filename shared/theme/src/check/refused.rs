//! For what the platform refuses a file.
//!
//! A refused file can't be uploaded, whatever changed in it. Other errors break a page, but the file is taken. Where it is not known
//! that a file is refused, it counts as taken.

use super::Severity;

/// Codes whose errors are reasons to refuse a file: its Liquid or its JSON can't be read, its schema or its stored values break a rule, or a
/// limit is exceeded. A file with a path that no theme has is not among them: Shopify's tools leave it out and take the rest.
const REFUSED: [&str; 30] = [
    "BlockLimit",
    "DuplicateTemplate",
    "FileSize",
    "JSONMissingBlock",
    "JavascriptOncePerFile",
    "LiquidHTMLSyntaxError",
    "LiquidSyntaxError",
    "MissingContentForArguments",
    "MissingFile",
    "MissingSection",
    "RequiredLayoutThemeObject",
    "SectionLimit",
    "SectionNotAllowed",
    "SectionsOutsideLayout",
    "StaticStylesheetAndJavascriptTags",
    "StylesheetOncePerFile",
    "TooManyBlocks",
    "TooManyFiles",
    "TooManySections",
    "UniqueSettingId",
    "ValidBlockTarget",
    "ValidJSON",
    "ValidLocalBlocks",
    "ValidLocale",
    "ValidSchema",
    "ValidSchemaName",
    "ValidSettingValue",
    "ValidSettingsSchema",
    "ValidTemplate",
    "ValidVisibleIf",
];

/// Whether the platform refuses the file for a finding with this code and severity.
#[must_use]
pub fn is_refused(path: &str, code: &str, severity: Severity) -> bool {
    // A template names its sections, and all of them must be there. A missing snippet is an error on the page.
    // Settings may change after their values were stored, and shops have such values.
    if code == "ValidSettingValue" && path == "config/settings_data.json" {
        return false;
    }
    // A shop without a template for some pages is accepted.
    if code == "MissingFile" && path.starts_with("templates/") {
        return false;
    }
    let is_reason = REFUSED.contains(&code) || (code == "MissingTemplate" && path.ends_with(".json"));
    is_reason && severity == Severity::Error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::CheckedTheme;

    #[test]
    fn only_errors_of_known_codes_are_reasons() {
        assert!(is_refused("sections/a.liquid", "LiquidSyntaxError", Severity::Error));
        assert!(!is_refused("sections/a.liquid", "LiquidSyntaxError", Severity::Warning));
        assert!(!is_refused("sections/a.liquid", "UnclosedElement", Severity::Error));
        assert!(is_refused("templates/index.json", "MissingTemplate", Severity::Error));
        assert!(!is_refused("sections/a.liquid", "MissingTemplate", Severity::Error));
        assert!(is_refused("templates/index.json", "ValidSettingValue", Severity::Error));
        assert!(!is_refused("config/settings_data.json", "ValidSettingValue", Severity::Error));
    }

    #[test]
    fn codes_are_sorted_and_there_once() {
        assert!(REFUSED.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn findings_say_it() {
        let refused = |path: &str, text: &str| {
            let findings = CheckedTheme::read([(path, text)], None).findings();
            assert!(!findings.is_empty(), "{text}");
            findings.iter().any(|finding| finding.refused)
        };
        for (path, text) in [
            ("sections/a.liquid", "{% if true %}"),
            ("sections/a.liquid", "{% schema %}{\"name\" 1}{% endschema %}"),
            ("sections/a.liquid", "{% sections 'header' %}"),
            ("templates/index.json", "{\"sections\": {}"),
            ("templates/index.json", "{\"sections\": {\"a\": {\"type\": \"none\"}}, \"order\": [\"a\"]}"),
            ("locales/en.json", "[]"),
        ] {
            assert!(refused(path, text), "{path} {text}");
        }
        for (path, text) in [
            ("sections/a.liquid", "{% render 'none' %}"),
            ("sections/a.liquid", "<div>"),
            ("sections/a.liquid", "{ product.title }}"),
            ("sections/a.liquid", "{% schema %}{\"name\": \"A\",}{% endschema %}"),
            ("locales/en.json", "{\"a\": \"b\",}"),
        ] {
            assert!(!refused(path, text), "{path} {text}");
        }
    }
}
