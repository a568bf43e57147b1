//! What a turn sends ahead is at most half of the same files as a whole, where the files are long.

use std::fmt::Write as _;

use theme::ThemeIndex;

mod measure;

/// A section with a part for each of some things, so that it is long and a request is about a few of its lines.
fn section(name: &str, parts: usize) -> (String, String) {
    let mut text =
        format!("{{{{ 'section-{name}.css' | asset_url | stylesheet_tag }}}}\n<div class=\"{name}\">\n");
    for part in 0..parts {
        let _ = write!(
            text,
            "  {{%- if section.settings.show_part_{part} -%}}\n    <div class=\"{name}__part-{part}\">\n      \
             <p>{{{{ section.settings.text_{part} | escape }}}}</p>\n      {{% render 'icon-{name}' %}}\n    </div>\n  {{%- endif -%}}\n"
        );
    }
    let _ = write!(
        text,
        "</div>\n{{% schema %}}\n{{\"name\": \"{name}\", \"settings\": [{{\"type\": \"text\", \"id\": \"text_0\", \"label\": \"Text\"}}]}}\n{{% endschema %}}\n"
    );
    (format!("sections/{name}.liquid"), text)
}

fn theme(parts: usize) -> (ThemeIndex, Vec<(String, String)>) {
    let names =
        ["header", "footer", "announcement-bar", "main-product", "main-cart", "newsletter", "slideshow"];
    let mut files: Vec<(String, String)> = names.into_iter().map(|name| section(name, parts)).collect();
    for name in names {
        let text = format!("<svg class=\"icon-{name}\"><path d=\"{}\"/></svg>\n", "M0 0L1 1".repeat(parts));
        files.push((format!("snippets/icon-{name}.liquid"), text));
        let rule = format!(".{name}__part {{\n  color: red;\n  padding: 1rem;\n}}\n");
        files.push((format!("assets/section-{name}.css"), rule.repeat(parts)));
    }
    let layout = "<html><head>{{ content_for_header }}</head><body>{% section 'header' %}{{ content_for_layout }}{% section 'footer' %}</body></html>\n";
    files.push(("layout/theme.liquid".to_owned(), layout.to_owned()));
    let index = ThemeIndex::build(files.iter().map(|(path, text)| (path, text))).expect("a theme");
    (index, files)
}

const REQUESTS: [&str; 5] = [
    "Make the slideshow text green",
    "Add a phone number to the footer",
    "Add a mega menu to the header",
    "The newsletter form is broken, fix it",
    "How does the announcement bar work?",
];

#[test]
fn long_files_are_sent_by_half_at_most() {
    let (index, files) = theme(600);
    for request in REQUESTS {
        let one = measure::measure(&index, &files, request);
        println!("{request}: {one:?}");
        assert!(one.shown >= 2, "{request}: {one:?}");
        assert!(one.briefing * 2 <= one.shown_whole, "{request}: {one:?}");
        assert!(one.shown <= one.gated && one.shown_whole <= one.gated_whole, "{request}: {one:?}");
        assert!(!one.classified.why.is_empty());
    }
}

/// Where files are short, the best ones are whole, and a briefing is never much longer than they are.
#[test]
fn short_files_cost_no_more_than_their_frame() {
    let (index, files) = theme(2);
    for request in REQUESTS {
        let one = measure::measure(&index, &files, request);
        println!("{request}: {one:?}");
        assert!(one.shown >= 1);
        assert!(one.briefing - one.frame <= 2 * one.shown_whole + 500 * one.shown, "{request}: {one:?}");
    }
}
