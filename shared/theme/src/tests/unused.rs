//! Files that are called unused, and files that only a computed name or a request of a script loads.

use crate::ThemeIndex;

/// The files of a theme with these files and one page that are probably unused.
fn unused(files: &[(&str, &str)]) -> Vec<String> {
    let page = [("layout/theme.liquid", "{{ content_for_header }}{{ content_for_layout }}")];
    let index = ThemeIndex::build(page.iter().chain(files).copied()).unwrap();
    // What was stored knows the same.
    let stored = ThemeIndex::from_blob(&index.to_blob()).unwrap();
    assert_eq!(stored.orphans(), index.orphans());
    index.orphans().into_iter().map(str::to_owned).collect()
}

const ICONS: [&str; 3] = ["assets/icon-cart.svg", "assets/icon-close.svg", "assets/photo.svg"];

/// Which of `paths` are called unused beside a file with `text`.
fn left(path: &str, text: &str, paths: &[&str]) -> Vec<String> {
    let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (*path, "<b></b>")).collect();
    files.push((path, text));
    unused(&files).into_iter().filter(|left| left != path).collect()
}

#[test]
fn what_nothing_names_is_unused() {
    let files = [
        ("assets/old.css", ".a{}"),
        ("assets/old.js", "a()"),
        ("assets/old.svg", ""),
        ("blocks/_old.liquid", "<b></b>"),
        ("sections/old-group.json", "{}"),
        ("sections/old.liquid", "<b></b>"),
        ("snippets/old-price.liquid", "<b></b>"),
    ];
    assert_eq!(unused(&files), files.map(|file| file.0));
    // A file does not load itself, and a comment loads nothing.
    assert_eq!(
        left("snippets/a.liquid", "{% comment %}{% render 'b' %}{% endcomment %}", &["snippets/b.liquid"]),
        ["snippets/b.liquid"]
    );
    assert_eq!(unused(&[("assets/a.js", "let name = 'a.js'")]), ["assets/a.js"]);
}

#[test]
fn a_name_with_a_known_part_loads_the_files_that_match() {
    let check = |text: &str| {
        assert_eq!(left("layout/a.liquid", text, &ICONS), ["assets/photo.svg"], "{text}");
    };
    check("{{ 'icon-' | append: x | append: '.svg' | inline_asset_content }}");
    check("{{ x | prepend: 'icon-' | append: '.svg' | inline_asset_content }}");
    check("{% assign icon = 'icon-' | append: x | append: '.svg' %}{{ icon | inline_asset_content }}");
    check("{% capture icon %}icon-{{ x }}.svg{% endcapture %}{{ icon | asset_url }}");
    check("{% liquid\n assign icon = 'icon-' | append: x\n echo icon | asset_url\n%}");
    check("<script>fetch(`${base}/icon-${name}.svg`)</script>");
    check("<script>fetch(base + 'icon-' + name + '.svg')</script>");
    check("{% assign a = 'icon-cart.svg' %}{% assign b = 'icon-close.svg' %}{{ c }}");
    let text = "{{ x | append: '-close.svg' | asset_url }}";
    assert_eq!(left("layout/a.liquid", text, &ICONS), ["assets/icon-cart.svg", "assets/photo.svg"]);
    assert_eq!(left("assets/a.css", "a{b:url(\"./photo.svg?x\")}", &ICONS), ICONS[..2]);
    assert_eq!(left("assets/a.css.liquid", "a{b:url( {{ 'photo.svg' | asset_url }} )}", &ICONS), ICONS[..2]);
    assert_eq!(left("layout/a.liquid", "<style>a{b:url(photo.svg)}</style>", &ICONS), ICONS[..2]);
    assert_eq!(
        left("config/settings_schema.json", r#"[{"settings":[{"default":"photo.svg"}]}]"#, &ICONS),
        ICONS[..2]
    );
    assert_eq!(left("config/settings_data.json", r#"{"current":{"a":"photo.svg"}}"#, &ICONS), ICONS[..2]);
    assert_eq!(left("locales/en.default.json", r#"{"a":"photo.svg"}"#, &ICONS), ICONS[..2]);
}

#[test]
fn a_name_without_a_known_part_loads_all_files_of_its_kind() {
    let files = ["assets/a.svg", "sections/b.liquid", "snippets/c.liquid"];
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(left(path, text, &files), expected, "{text}");
    };
    let (no_assets, no_sections, no_snippets) =
        ([files[1], files[2]], [files[0], files[2]], [files[0], files[1]]);
    check("layout/x.liquid", "{{ name }}", &files);
    check("layout/x.liquid", "{{ name | asset_url }}", &no_assets);
    check("layout/x.liquid", "{% assign n = block.settings.n %}{{ n | asset_url }}", &no_assets);
    check(
        "layout/x.liquid",
        "{% assign n = 'q' | append: m %}{% assign n = m %}{{ n | asset_url }}",
        &no_assets,
    );
    check("layout/x.liquid", "{{ 'q' | append: name | replace: 'q', '' | asset_url }}", &no_assets);
    check("layout/x.liquid", "{% render icon_name %}", &no_snippets);
    check("layout/x.liquid", "{% include name %}", &no_snippets);
    // This is the block of an app.
    check("layout/x.liquid", "{% for block in section.blocks %}{% render block %}{% endfor %}", &files);
    check("layout/x.liquid", "<a data-url='{{ url }}?section_id={{ id }}'></a>", &no_sections);
    check("assets/x.js", "fetch(`${routes.cart}?section_id=${this.id}`)", &no_sections);
    check("assets/x.js", "fetch(url + '&sections=' + ids)", &no_sections);
    check("assets/x.js", "url.searchParams.set('section_id', id)", &no_sections);
    check("assets/x.js", "send({ items, sections: ids })", &no_sections);
    check("assets/x.js", "load(`/assets/${name}`)", &no_assets);
}

#[test]
fn a_section_that_a_script_fetches_is_used() {
    let sections =
        ["sections/cart-drawer.liquid", "sections/leftover.liquid", "sections/predictive-search.liquid"];
    let check = |path: &str, text: &str| {
        assert_eq!(left(path, text, &sections), ["sections/leftover.liquid"], "{text}");
    };
    check(
        "assets/a.js",
        "fetch(`${routes.x}?q=${q}&section_id=predictive-search`); get('/?sections=cart-drawer,x')",
    );
    check("assets/a.js", "const parts = [{ id: 'cart-drawer' }, { id: \"predictive-search\" }]");
    check("layout/a.liquid", "<a data-a='cart-drawer' data-url='{{ r }}?section_id=predictive-search'></a>");
    check("layout/a.liquid", "<script>a('cart-drawer', `predictive-search`)</script>");
    check(
        "config/settings_data.json",
        r#"{"current":{"sections":{"a":{"type":"cart-drawer"},"b":{"type":"predictive-search"}}}}"#,
    );
    // A script that a program wrote is read, too.
    let minified =
        format!("var a=[{}];b('cart-drawer');c(`${{d}}?section_id=predictive-search`)", "1,".repeat(2_000));
    check("assets/a.js", &minified);
}

#[test]
fn nothing_is_known_about_what_a_file_loads_that_is_too_large() {
    let text = " ".repeat(super::super::record::MAX_FILE_BYTES + 1);
    assert_eq!(
        left("assets/a.js", &text, &["snippets/b.liquid", "sections/c.liquid", "assets/d.svg"]),
        [""; 0]
    );
}
