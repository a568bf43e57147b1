//! Which answers are called confident.

use super::harbour;
use crate::history::{Change, EditedFile, History};

/// Requests that no file of a theme answers better than others.
const PLACELESS: [&str; 44] = [
    "make everything nicer",
    "delete all my customers",
    "make the shop look more professional",
    "improve the design",
    "make it pop",
    "make the whole site faster",
    "the store looks old, please make it modern",
    "fix all bugs",
    "fix it",
    "do something cool with the website",
    "redesign the entire theme",
    "make it look like Apple",
    "increase my sales",
    "improve the conversion",
    "translate everything into German",
    "undo the last change",
    "please continue",
    "publish the theme",
    "clean up the code",
    "surprise me",
    "refund the last order",
    "cancel order 1001",
    "export all orders to csv",
    "send an email to all customers",
    "raise all prices by 10 percent",
    "how many orders did we get yesterday",
    "give every customer a discount",
    "delete the products",
    "archive all old products",
    "restock the products",
    "import my products from a spreadsheet",
    "invite my staff",
    "reset my password",
    "cancel my subscription",
    "what is the weather in Berlin",
    "write a poem about the sea",
    "who won the football game",
    "hello",
    "thanks, that looks good",
    "why does nobody buy",
    "make me rich",
    "rank first on Google",
    "!!!",
    "",
];

/// Requests with the file to edit.
const PLACED: [(&str, &str); 24] = [
    ("make the cart drawer wider", "snippets/cart-drawer.liquid"),
    ("delete the close button of the cart drawer", "snippets/cart-drawer.liquid"),
    ("the cart drawer does not close on Escape", "assets/cart-drawer.js"),
    ("show the sale price in red", "snippets/price.liquid"),
    ("the compare price is too small", "snippets/price.liquid"),
    ("center the announcement text", "sections/announcement.liquid"),
    ("hide the announcement on mobile", "sections/announcement.liquid"),
    ("add a newsletter form to the footer", "sections/footer.liquid"),
    ("make the footer nicer", "sections/footer.liquid"),
    ("a setting for the color of the footer", "sections/footer.liquid"),
    ("make the header sticky", "sections/header.liquid"),
    ("the header menu overlaps the logo", "sections/header.liquid"),
    ("remove the icons from the header", "sections/header.liquid"),
    ("pointer cursor on collapsible rows", "assets/collapsible.css"),
    ("the collapsible section needs a heading", "sections/collapsible.liquid"),
    ("add youtube to the social icons", "snippets/social-icons.liquid"),
    ("the social icons are too close to each other", "snippets/social-icons.liquid"),
    ("swap the order of the product media", "snippets/product-media.liquid"),
    ("lazy load the product media images", "snippets/product-media.liquid"),
    ("change focus.js", "assets/focus.js"),
    ("trap the focus in dialogs", "assets/focus.js"),
    ("delete sections/broken.liquid", "sections/broken.liquid"),
    ("edit templates/product.json", "templates/product.json"),
    ("Change \"Nothing in here yet\" in the cart drawer", "snippets/cart-drawer.liquid"),
];

#[test]
fn an_answer_to_a_request_without_a_place_is_not_confident() {
    let index = harbour();
    let edited = |path: &str| EditedFile { path: path.into(), lines: Vec::new() };
    let change =
        |request: &str, path: &str| Change { request: request.into(), files: vec![edited(path)], hours: 0.1 };
    // The same file again and again, for the same words.
    let history =
        History::new(PLACELESS.iter().map(|request| change(request, "sections/header.liquid")).take(20));
    for request in PLACELESS {
        assert!(!index.lookup(request, None, 5).confident, "{request:?}");
        assert!(!index.lookup_with_history(request, None, 5, &history).confident, "{request:?}");
    }
}

#[test]
fn an_answer_to_a_request_with_a_place_may_be_confident() {
    let index = harbour();
    let (mut confident, mut missed) = (0, Vec::new());
    for (request, expected) in PLACED {
        let lookup = index.lookup(request, None, 3);
        assert!(
            lookup.targets.iter().any(|target| target.path == expected),
            "{request:?}: {:?}",
            lookup.targets.iter().map(|target| &target.path).collect::<Vec<_>>()
        );
        if lookup.confident { confident += 1 } else { missed.push(request) }
    }
    assert!(confident >= 20, "{missed:?}");
}
