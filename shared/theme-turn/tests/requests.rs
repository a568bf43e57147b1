//! Requests of merchants and developers, with what each asks for.
//!
//! `requests.tsv` has a row for each: the message, whether code was changed before, the mode, the tier, whether a
//! theme such as Dawn needs changes in several files, and where the request comes from, in other words than there.
//!
//! The rules were tuned on the first 80 rows. Rows 81 to 120, 121 to 142 and 143 to 160 were held out, one after
//! the other: their expectations stood before the rules saw them, and what they missed was mended after.

#![allow(clippy::disallowed_methods, reason = "tests measure how long hostile messages take")]

use domain::models::routing::TaskTier;
use domain::projects::turn::TurnMode;
use theme_turn::classify::{Asked, classify};

use table::{classified, rows};

mod table;

const TABLE: &str = include_str!("requests.tsv");

#[test]
fn the_table_is_classified() {
    let rows = rows(TABLE);
    assert!(rows.len() >= 120, "{} rows", rows.len());
    let (mut modes, mut tiers, mut too_small, mut sure_misses, mut unsure) = (0, 0, 0, 0, 0);
    for (at, row) in rows.iter().enumerate() {
        let found = classified(&row.message, row.has_changed);
        assert!(!found.why.is_empty());
        let is_mode = found.mode == row.mode;
        let is_tier = found.tier == row.tier;
        modes += usize::from(is_mode);
        tiers += usize::from(is_tier);
        unsure += usize::from(found.open.any());
        sure_misses += usize::from(!found.open.any() && (!is_mode || !is_tier));
        if found.open.any() {
            println!("row {} is open: {:?}: {} ({})", at + 1, found.open, row.message, found.why.join(" "));
        }
        too_small += usize::from(row.is_several && found.tier == TaskTier::Trivial);
        if !is_mode || !is_tier {
            println!(
                "row {}: {:?} {:?}, expected {:?} {:?}: {} ({}{})",
                at + 1,
                found.mode,
                found.tier,
                row.mode,
                row.tier,
                row.message,
                if found.open.any() { "not sure: " } else { "sure: " },
                found.why.join(" ")
            );
        }
    }
    let all = rows.len();
    println!(
        "of {all}: mode {modes}, tier {tiers}, too small {too_small}, not sure {unsure}, sure and wrong {sure_misses}"
    );
    assert_eq!(sure_misses, 0, "a model is asked about what is wrong");
    assert!(unsure * 100 <= all * 35, "{unsure} of {all} are open");
    assert!(modes * 100 >= all * 95, "mode: {modes} of {all}");
    assert!(tiers * 100 >= all * 90, "tier: {tiers} of {all}");
    assert_eq!(too_small, 0, "requests that need several files are trivial");
}

/// A message in all the ways that mean the same.
fn variants(message: &str) -> [String; 4] {
    let mut opens = false;
    let curly = message.chars().map(|letter| match letter {
        '\'' => '’',
        '"' => {
            opens = !opens;
            if opens { '“' } else { '”' }
        }
        letter => letter,
    });
    let curly = curly.collect();
    [
        message.to_uppercase(),
        message.to_lowercase(),
        curly,
        format!("  {}\r\n", message.replace(' ', "\u{a0}")),
    ]
}

#[test]
fn case_blanks_and_curly_quotes_make_no_difference() {
    for row in rows(TABLE) {
        let plain = classified(&row.message, row.has_changed);
        for variant in variants(&row.message) {
            assert_eq!(classified(&variant, row.has_changed), plain, "{variant}");
        }
    }
}

#[test]
fn accents_make_no_difference() {
    let pairs = [
        ("¿Dónde se cambia el texto?", "Donde se cambia el texto?"),
        ("Ändere die Schriftgröße im Menü", "A\u{308}ndere die Schriftgro\u{308}sse im Menu\u{308}"),
        ("Pourquoi le prix ne s’affiche pas ?", "pourquoi le prix ne s'affiche pas?"),
    ];
    for (one, other) in pairs {
        assert_eq!(classified(one, false), classified(other, false), "{one}");
    }
}

#[test]
fn what_has_no_words_is_never_sure() {
    for message in [
        "",
        " ",
        "\n\n\t",
        "\u{a0}\u{200b}",
        "!!!",
        "...",
        "🎨🎨🎨",
        "\u{0}",
        "\"\"",
        "``` ```",
        "??",
        "- - -",
        "#",
    ] {
        let found = classified(message, false);
        assert_eq!(found.tier, TaskTier::Simple, "{message:?}");
        assert!(found.open.any(), "{message:?}");
        assert!(!found.why.is_empty());
    }
}

#[test]
fn hostile_messages_are_read_in_time() {
    let size = 1 << 20;
    let repeated = [
        "a",
        " ",
        "a ",
        "'",
        " 'a",
        "\"",
        "\"a\" ",
        "`",
        "```",
        "[",
        "[a] ",
        "]",
        "🎨",
        "\u{308}",
        "ß",
        "İ",
        "1. ",
        "- a\n",
        "?",
        "a? ",
        "add ",
        "and ",
        "please ",
        "add a filter and ",
        "all ",
        ".liquid ",
        "a.css,",
        "#",
        "not ",
        "in the ",
        "make it ",
        "«",
        "\n",
    ];
    let started = std::time::Instant::now();
    for part in repeated {
        let message = part.repeat(size / part.len());
        let found = classified(&message, true);
        assert!(found.tier != TaskTier::Trivial, "{part:?} is trivial");
        assert!(found.open.any(), "{part:?} is sure");
    }
    let took = started.elapsed();
    assert!(took.as_secs() < 30, "{} messages of 1 MB took {took:?}", repeated.len());
}

#[test]
fn a_longer_message_costs_at_most_its_length() {
    let time = |size: usize| {
        let message = "add a filter, make it red and ".repeat(size);
        let started = std::time::Instant::now();
        for _ in 0..3 {
            assert!(classified(&message, false).open.any());
        }
        started.elapsed().as_secs_f64()
    };
    // Both are longer than what is read, so the longer one costs the same.
    let (short, long) = (time(1_000), time(100_000));
    assert!(long < short * 10.0 + 0.2, "{short} s, then {long} s");
}

#[test]
fn the_mode_that_is_chosen_stays() {
    for row in rows(TABLE) {
        for mode in TurnMode::ALL {
            let asked = Asked { message: &row.message, has_changed: row.has_changed, ..Asked::default() };
            let found = classify(&asked, Some(mode));
            assert_eq!(found.mode, mode);
            if mode != TurnMode::Code {
                assert_ne!(found.tier, TaskTier::Trivial, "{}", row.message);
            }
        }
    }
}

#[test]
fn quoted_text_says_nothing_about_the_size() {
    let plain = classified("Change the heading to \"Sale\"", false);
    assert_eq!(plain.tier, TaskTier::Trivial);
    for text in [
        "Redesign everything",
        "Add a wishlist",
        "How does it work?",
        "Migrate the entire theme. It is broken!",
    ] {
        let quoted = classified(&format!("Change the heading to “{text}”"), false);
        assert_eq!(quoted, plain, "{text}");
    }
}

#[test]
fn reports_of_the_page_decide_what_is_unclear() {
    let with = |message: &str, has_diagnostics: bool| {
        classify(&Asked { message, has_diagnostics, ..Asked::default() }, None).mode
    };
    assert_eq!(with("header on the product page", false), TurnMode::Code);
    assert_eq!(with("header on the product page", true), TurnMode::Debug);
    assert_eq!(with("Make the header green", true), TurnMode::Code);
    assert_eq!(with("How does the header work?", true), TurnMode::Ask);
}

/// None of these is done in one file of Dawn, though each has a word of a colour, a font, a size or a text.
#[test]
fn what_needs_several_files_is_never_trivial() {
    let messages = [
        "Let customers pick the text color of their engraving",
        "Make the background color change on scroll",
        "Use a different font for each language",
        "Make the header background transparent on the home page",
        "Change the font to our own font file",
        "Make the product page full width",
        "Change the text of the menu, the cart and the footer",
        "Change the button text in French and German",
        "Make the theme black and white",
        "Use our brand color for buttons, links, badges",
        "Add a dark background mode",
        "Change the label of the cart page and the account page",
        "Put a red border around sold out products",
        "Text size should be configurable",
        "Make prices bigger on product and collection pages",
        "Replace the font in base.css and theme.css",
        "Ändere die Schriftgröße auf allen Seiten",
        "Change la couleur du texte sur toutes les pages",
        "Cambia el texto en todos los idiomas",
        "Change the cart icon color, header too",
        "Make text bold and prices red, footer grey",
    ];
    for message in messages {
        let found = classified(message, false);
        assert_ne!(found.tier, TaskTier::Trivial, "{message}: {}", found.why.join(" "));
    }
}

/// What people say after a plan or an answer, and wishes with a question mark.
#[test]
fn agreements_and_polite_wishes_are_changes() {
    for (message, expected) in [
        ("Do it", TurnMode::Code),
        ("do it please", TurnMode::Code),
        ("Please do it", TurnMode::Code),
        ("Do the first two", TurnMode::Code),
        ("Yes", TurnMode::Code),
        ("What about making it blue?", TurnMode::Code),
        ("Kannst du den Header rot machen?", TurnMode::Code),
        ("Is it possible to make the header sticky?", TurnMode::Code),
        ("Yes, but how does it work?", TurnMode::Ask),
        ("Do the products have a price?", TurnMode::Ask),
    ] {
        let asked = Asked { message, ..Asked::default() };
        assert_eq!(classify(&asked, None).mode, expected, "{message}");
    }
}
