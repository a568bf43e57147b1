use super::*;

#[test]
fn a_setting_is_read_and_its_value_chosen() {
    for (line, value, default) in [
        (
            "524: select sticky \"Sticky header\", default \"up\", options: none \"None\" | on-scroll-up \"Up\" | always \"Always\"",
            Some("\"always\""),
            Some("\"up\""),
        ),
        ("3: select sticky, options: off \"Off\" | on-scroll-up \"Up\"", Some("\"on-scroll-up\""), None),
        ("3: select sticky, options: off \"Off\" | scroll \"Up\" | sticky \"On\"", Some("\"sticky\""), None),
        ("3: select sticky, options: off \"Off\" | none \"No\"", None, None),
        ("3: checkbox sticky \"Stick\", default true", Some("true"), Some("true")),
    ] {
        let setting = setting(&format!("sections/header.liquid\n{line}\n  4: info \"x\""), "sticky").unwrap();
        assert_eq!((sticking(&setting).as_deref(), setting.default.as_deref()), (value, default), "{line}");
    }
    assert!(setting("The schema has no setting `sticky`. Its own settings: a, b", "sticky").is_none());
}

#[test]
fn tags_around_a_text_stay() {
    for (text, parts) in [
        ("Welcome", ("", "Welcome", "")),
        ("<p>Welcome</p>", ("<p>", "Welcome", "</p>")),
        ("<p><strong>Big</strong></p>", ("<p><strong>", "Big", "</strong></p>")),
        ("<p>A <a href=\"/b\">b</a></p>", ("<p>", "A <a href=\"/b\">b", "</a></p>")),
        ("a > b", ("", "a > b", "")),
        ("<p", ("", "<p", "")),
        ("", ("", "", "")),
    ] {
        assert_eq!(markup(text), parts, "{text}");
    }
}

#[test]
fn names_that_mean_the_colour_of_buttons() {
    let order = [
        "button",
        "primary_button_background",
        "button_background",
        "palette_primary_button_background",
        "color_button",
    ];
    let ranks: Vec<Option<usize>> = order.iter().map(|name| rank(name)).collect();
    assert_eq!(ranks, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    for other in [
        "button_label",
        "secondary_button_background",
        "button_border_width",
        "color_button_text",
        "background",
        "show_button",
    ] {
        assert_eq!(rank(other), None, "{other}");
    }
}

#[test]
fn a_custom_property_is_found_with_its_value() {
    let found = |line: &'static str| property(line).map(|(_, name, place)| (name, &line[place]));
    assert_eq!(found("  --button-bg: #FFF;"), Some(("--button-bg", "#FFF")));
    assert_eq!(found(":root { --gap: 1px; --color-button:red }"), Some(("--color-button", "red")));
    for other in
        ["--button-text: #fff;", "--button-bg: var(--x);", "--button-bg: 0, 0, 0;", "a--button-bg", ""]
    {
        assert_eq!(found(other), None, "{other}");
    }
}

#[test]
fn what_sticks_is_the_element_around_the_header() {
    let selected = |path: &str, text: &str| {
        let told = format!("{path} version 0123456789ab lines 1–1 of 1\n1\t{text}\n");
        let call = super::super::super::theme_turn::Call {
            name: "read_lines".to_owned(),
            input: json!({"reads": [{"path": path, "start": 1, "end": 1}]}),
            result: told,
            is_error: false,
        };
        let turn = Turn { calls: vec![call], ..Turn::default() };
        selector(&turn.lines(path, 1, 1).unwrap().unwrap())
    };
    let section = "sections/header.liquid";
    let html = "<div class=\"x\"></div><header id=\"h\" class=\"{{ c }} site-header wide\">";
    assert_eq!(selected(section, html).as_deref(), Some(".shopify-section:has(.site-header)"));
    assert_eq!(selected("snippets/header.liquid", html).as_deref(), Some(".site-header"));
    let schema =
        format!("{html}{{% schema %}}{{\"name\": \"H\", \"class\": \"section-header\", \"settings\": []}}");
    assert_eq!(selected(section, &schema).as_deref(), Some(".section-header"));
    assert_eq!(selected(section, "<nav class=\"menu\">"), None);
}

#[test]
fn the_main_stylesheet_is_chosen() {
    let list = "3 files: path, bytes, kind\nassets/aaa.css\t900\tstylesheet\nassets/theme.css\t10\tstylesheet\nassets/x.css.map\t9999\tasset\n";
    assert_eq!(stylesheet(list).as_deref(), Some("assets/theme.css"));
    assert_eq!(
        stylesheet("1 files: path, bytes, kind\nassets/b.css\t9\tstylesheet\n").as_deref(),
        Some("assets/b.css")
    );
    assert_eq!(stylesheet("0 files: path, bytes, kind\n"), None);
}
