//! What the work of an agent needs that no agent of the platform has: a ticket says it before anything is approved.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something outside of the platform that work may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// To read the web: pages, news, prices, the weather.
    Web,
    /// To read or change a calendar.
    Calendar,
    /// To read a mailbox.
    ReadEmail,
    /// To write e-mails to others. Results come to the person by the person's own channels.
    SendEmail,
    /// To write to others in chats or social networks.
    Messages,
    /// To call somebody, or to send text messages.
    Phone,
    /// To read or change a shop: orders, products, customers.
    Shop,
    /// To read or change files of the person.
    Files,
    /// To pay, book or buy.
    Payments,
    /// To switch devices.
    Devices,
}

impl Need {
    pub const ALL: [Self; 10] = [
        Self::Web,
        Self::Calendar,
        Self::ReadEmail,
        Self::SendEmail,
        Self::Messages,
        Self::Phone,
        Self::Shop,
        Self::Files,
        Self::Payments,
        Self::Devices,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Calendar => "calendar",
            Self::ReadEmail => "read_email",
            Self::SendEmail => "send_email",
            Self::Messages => "messages",
            Self::Phone => "phone",
            Self::Shop => "shop",
            Self::Files => "files",
            Self::Payments => "payments",
            Self::Devices => "devices",
        }
    }

    /// What an agent cannot do, as a sentence for a person.
    #[must_use]
    pub const fn cannot(self) -> &'static str {
        match self {
            Self::Web => {
                "It cannot read web pages, news or prices. It knows what its model knows, and what you tell it."
            }
            Self::Calendar => "It cannot read or change your calendar: no calendar is connected.",
            Self::ReadEmail => "It cannot read your e-mails: no mailbox is connected.",
            Self::SendEmail => "It cannot write e-mails to others. Its results come to you.",
            Self::Messages => {
                "It cannot write to others in chats or social networks. Its results come to you."
            }
            Self::Phone => "It cannot call anybody or send text messages.",
            Self::Shop => "It cannot read or change your shop: no shop is connected.",
            Self::Files => "It cannot read or change files on your devices or drives.",
            Self::Payments => "It cannot pay, book or buy anything.",
            Self::Devices => "It cannot switch devices.",
        }
    }

    /// What a text needs, by its words. A word that often means something else does not count, so it finds less than a reader would.
    #[must_use]
    pub fn of_words(text: &str) -> Vec<Self> {
        let words: Vec<String> = text
            .split(|c: char| !c.is_alphanumeric() && c != '-')
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let follows = |verbs: &[&str], things: &[&str]| {
            words.iter().enumerate().any(|(at, word)| {
                verbs.contains(&word.as_str())
                    && words[at + 1..].iter().take(REACH).any(|word| things.contains(&word.as_str()))
            })
        };
        Self::ALL
            .into_iter()
            .filter(|need| match need {
                Self::Web => {
                    has(WEB) || follows(&["search", "browse", "check", "watch"], &["page", "pages", "site"])
                }
                Self::Calendar => has(&["calendar", "calendars", "appointments", "kalender", "termine"]),
                Self::ReadEmail => {
                    has(&["inbox", "mailbox", "postfach"])
                        || follows(&["read", "check", "summarize", "summarise", "sort", "answer"], MAILS)
                        || follows(&["my", "unread", "new"], MAILS)
                }
                Self::SendEmail => {
                    follows(&["email", "e-mail", "mail"], OTHERS)
                        || follows(&["send", "write", "forward"], OTHERS) && has(MAILS)
                }
                Self::Messages => {
                    has(&[
                        "tweet",
                        "retweet",
                        "instagram",
                        "facebook",
                        "linkedin",
                        "tiktok",
                        "mastodon",
                        "bluesky",
                    ]) || follows(&["post", "message", "whatsapp"], OTHERS)
                        || follows(&["post"], &["slack", "discord", "telegram", "channel"])
                }
                Self::Phone => has(&["sms", "phone"]) || follows(&["call", "ring"], OTHERS),
                Self::Shop => has(&["orders", "inventory", "shopify", "bestellungen", "refunds"]),
                Self::Files => {
                    has(&["dropbox", "onedrive", "spreadsheet", "excel"])
                        || follows(
                            &["google", "my"],
                            &["drive", "folder", "folders", "files", "sheets", "docs"],
                        )
                }
                Self::Payments => {
                    has(&["buy", "purchase", "pay"])
                        || follows(
                            &["book", "reserve", "order"],
                            &["table", "flight", "flights", "hotel", "ticket", "tickets", "room"],
                        )
                }
                Self::Devices => {
                    has(&["thermostat", "heating", "lights", "vacuum"])
                        || follows(&["turn", "switch"], &["lamp", "light", "heater"])
                }
            })
            .collect()
    }
}

/// How many words after a verb its object may stand.
const REACH: usize = 6;

const MAILS: &[&str] = &["email", "emails", "e-mail", "e-mails", "mail", "mails", "newsletters"];

/// Words for people other than the person.
const OTHERS: &[&str] = &[
    "him",
    "her",
    "them",
    "team",
    "customers",
    "customer",
    "clients",
    "client",
    "everyone",
    "everybody",
    "boss",
    "colleagues",
    "subscribers",
    "members",
    "friends",
    "suppliers",
    "mom",
    "dad",
    "people",
    "staff",
];

/// Words for what changes outside, so that no model knows it.
const WEB: &[&str] = &[
    "web",
    "website",
    "websites",
    "internet",
    "online",
    "url",
    "news",
    "headlines",
    "weather",
    "forecast",
    "price",
    "prices",
    "competitor",
    "competitors",
    "stock",
    "stocks",
    "bitcoin",
    "exchange",
    "flights",
    "traffic",
    "scores",
    "reddit",
    "twitter",
    "github",
    "rss",
    "feed",
    "feeds",
    "blog",
    "blogs",
    "wetter",
    "nachrichten",
    "preise",
    "konkurrenz",
    "webseite",
    "webseiten",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_is_needed() {
        use Need::*;
        for (text, expected) in [
            ("Tell me what changed at my competitors", vec![Web]),
            ("Remind me to water the plants", vec![]),
            ("Send me the weather by e-mail", vec![Web]),
            ("Read my calendar and tell me what is due", vec![Calendar]),
            ("Summarise my unread e-mails", vec![ReadEmail]),
            ("Email the team a summary", vec![SendEmail]),
            ("Write an e-mail to all customers", vec![SendEmail]),
            ("Write me a poem", vec![]),
            ("Post the numbers to the Slack channel", vec![Messages]),
            ("Call the suppliers", vec![Phone]),
            ("List the new orders of my shop", vec![Shop]),
            ("Sort the files of my Google Drive", vec![Files]),
            ("Book a table and pay for it", vec![Payments]),
            ("Turn on the lamp", vec![Devices]),
            ("Sag mir das Wetter", vec![Web]),
            ("Write a report about lamp oil", vec![]),
            ("Plan a talk about phones", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(Need::of_words(text), expected, "{text}");
        }
    }

    #[test]
    fn each_has_a_name_and_a_sentence() {
        for need in Need::ALL {
            assert_eq!(serde_json::to_value(need).unwrap(), need.as_str());
            assert!(need.cannot().starts_with("It cannot ") && need.cannot().ends_with('.'));
        }
    }
}
