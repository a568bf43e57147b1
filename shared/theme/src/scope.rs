//! Requests that name no place of a theme: "make everything nicer", "delete all my customers".
//!
//! The lookup answers them, too, with the files that fit best, but it never calls the answer confident.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::plain_words::{WordClass, word_class};

/// Words that praise, blame or hurry. They fit every file.
#[rustfmt::skip]
const VAGUE_WORDS: &[&str] = &[
    "everything", "anything", "everywhere", "whole", "entire", "entirely", "overall", "stuff", "things", "bit", "lot",
    "little", "much", "many", "really", "totally", "completely", "nice", "nicer", "nicest", "pretty", "prettier",
    "beautiful", "beautifully", "lovely", "modern", "modernise", "modernize", "professional", "fancy", "fancier", "cool",
    "cooler", "awesome", "amazing", "good", "best", "great", "perfect", "fresh", "fresher", "elegant", "stylish",
    "luxury", "luxurious", "premium", "cleaner", "simple", "simpler", "easy", "easier", "fast", "faster", "quick",
    "quicker", "slow", "speed", "performance", "attractive", "appealing", "exciting", "boring", "ugly", "old",
    "outdated", "professionally", "magic", "wow", "surprise", "idea", "ideas", "redesign", "rework", "rewrite",
    "overhaul", "rebuild", "modernised", "modernized", "tidy", "code", "files", "file", "feel", "feels", "style",
    "sell", "sells", "sales", "sale", "conversion", "conversions", "revenue", "money", "profit", "profits", "traffic",
    "google", "rank", "ranking", "today", "yesterday", "tomorrow", "week", "month", "year", "soon", "again", "whatever",
    "possible", "usual", "go", "going", "back", "undo", "redo", "start", "stop", "continue", "keep", "try", "do", "publish",
    "translate", "english", "german", "french", "spanish", "italian", "dutch", "polish", "japanese", "chinese",
    "language", "languages", "nobody", "somebody", "competitor", "competitors", "apple", "amazon", "nike", "brand",
];

/// What is done to the records of a shop rather than to its theme.
#[rustfmt::skip]
const RECORD_VERBS: &[&str] = &[
    "delete", "deletes", "erase", "wipe", "refund", "refunds", "cancel", "cancels", "export", "exports", "import",
    "imports", "download", "email", "mail", "send", "notify", "text", "call", "ship", "ships", "fulfil", "fulfill",
    "charge", "archive", "unarchive", "restock", "order", "reorder", "ban", "block", "invoice", "pay", "deactivate",
    "activate", "merge", "count", "list", "many", "much", "raise", "lower", "increase", "decrease", "reduce", "double",
    "give", "offer", "grant", "credit", "buy", "hire", "fire", "invite", "reset", "renew", "close", "open", "transfer",
    "sync", "upload", "print", "find", "tag", "approve", "reject", "issue",
];

/// The records of a shop.
#[rustfmt::skip]
const RECORDS: &[&str] = &[
    "customer", "customers", "client", "clients", "buyer", "buyers", "order", "orders", "product", "products", "item",
    "items", "variant", "variants", "inventory", "stock", "warehouse", "discount", "discounts", "coupon", "coupons",
    "voucher", "vouchers", "refund", "refunds", "payment", "payments", "payout", "payouts", "invoice", "invoices",
    "subscriber", "subscribers", "subscription", "subscriptions", "account", "accounts", "staff", "password",
    "passwords", "email", "emails", "address", "addresses", "domain", "tax", "taxes", "shipment", "shipments",
    "parcel", "parcels", "delivery", "csv", "excel", "spreadsheet", "report", "data", "database",
    "record", "records", "plan", "price", "prices", "cost", "costs", "percent", "dollar", "dollars", "euro", "euros",
    "free", "last", "next", "latest", "newest", "oldest", "inactive", "unpaid", "paid", "open", "pending", "test",
    "spam", "fake", "since", "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december", "list", "code", "codes", "gift", "card", "cards", "number", "numbers",
    "everyone", "everybody", "people", "person", "supplier", "suppliers", "app", "apps", "returns",
];

static VAGUE: LazyLock<FxHashSet<&str>> = LazyLock::new(|| VAGUE_WORDS.iter().copied().collect());
static VERBS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| RECORD_VERBS.iter().copied().collect());
static ALL_RECORDS: LazyLock<FxHashSet<&str>> = LazyLock::new(|| RECORDS.iter().copied().collect());

/// Whether a request, in its words in lower case, could be about a place of a theme.
pub fn names_a_place(words: &[String]) -> bool {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let telling: Vec<(&str, WordClass)> = words
        .iter()
        .map(|word| (word.as_str(), word_class(word)))
        .filter(|&(word, class)| class != WordClass::Stop && !VAGUE.contains(word) && !is_number(word))
        .collect();
    // The customers have pages of their own. The other words of these classes are in many requests.
    if telling.iter().all(|&(word, class)| class != WordClass::Full && word != "customers") {
        return false;
    }
    let has = |any: &[&str]| words.iter().any(|word| any.contains(&word.as_str()));
    let first = telling.iter().find(|(_, class)| *class != WordClass::Weak);
    let is_for_records =
        first.is_some_and(|(word, _)| VERBS.contains(word)) || has(&["many", "much", "all", "every"]);
    let is_of_records =
        |&(word, class): &_| class == WordClass::Weak || VERBS.contains(word) || ALL_RECORDS.contains(word);
    !is_for_records || has(&["page", "pages", "section"]) || !telling.iter().all(is_of_records)
}
