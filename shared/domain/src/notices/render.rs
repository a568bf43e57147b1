//! The text of a notice for each channel.
//!
//! Titles and reasons come from outside: from models, from programs, from error messages. A text cannot
//! - change a header, or begin a line of its own: it has one line, without control characters;
//! - hide or reverse a part of itself: characters that nobody sees are left out;
//! - become a link or mention anybody: addresses and `@` are broken up so that no client recognises them;
//! - format anything: what has a meaning in the format of a channel is escaped.
//!
//! The only link is the one that the platform builds from its own address and an id. Results ([`super::result`]) have the addresses that
//! their run has written, unless it may have read what strangers have written.

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Value, json};
use url::Url;

use super::answer_link::asks;
use super::codes::Code;
use super::digest::{Digest, DigestItem};
use super::inert::{cut, inert, visible};
use super::of_run::MISSED;
use super::plan::Notice;
use super::result::{Output, Part, Results, RunResult, excerpt, parts, sources};
use super::{About, LeadsTo, NoticeKey, NoticeKind};
use crate::actions::cost::dollars;
use crate::ids::RunId;
use crate::text::quoting::is_invisible;

/// The longest subject of an e-mail, in characters.
pub const MAX_SUBJECT: usize = 150;

/// The longest message that Discord takes, in characters.
pub const DISCORD_MAX: usize = 2_000;

/// The longest message that Telegram takes, in UTF-16 code units.
pub const TELEGRAM_MAX: usize = 4_096;

/// The longest message for Slack, in characters. Slack takes 40,000, and folds long ones.
pub const SLACK_MAX: usize = 10_000;

/// The longest message that ntfy shows as a message, in bytes. It makes a file of a longer one, or refuses it.
pub const NTFY_MAX: usize = 4_096;

/// The longest message for Gotify, in characters. Gotify has no limit, and a notification of a phone shows the beginning.
pub const GOTIFY_MAX: usize = 10_000;

/// What a text says that is longer than its channel takes.
const GOES_ON: &str = "… It goes on behind the link.";

/// The cause of a message that tries a channel out.
pub const TEST: &str = "test";

/// How many characters of a title and of a reason are shown, after they were made harmless. With every character escaped, both and the
/// link fit into each channel, so no text can push the link out.
const SHOWN_TITLE: usize = 150;
const SHOWN_REASON: usize = 600;
const SHOWN_ASKED: usize = 800;

/// The address of the platform, for links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site(Url);

/// The text is not an address of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an http or https address without a user name, a query and a fragment")]
pub struct InvalidSite;

impl Site {
    /// # Errors
    /// [`InvalidSite`].
    pub fn new(base: &str) -> Result<Self, InvalidSite> {
        let url = Url::parse(base).map_err(|_| InvalidSite)?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_plain {
            return Err(InvalidSite);
        }
        Ok(Self(url))
    }

    /// The address of `cargo run`.
    ///
    /// # Panics
    /// Never: the address is valid.
    #[must_use]
    pub fn local() -> Self {
        Self::new("http://127.0.0.1:9000").expect("the address is valid")
    }

    fn base(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// The address of a path of the API.
    #[must_use]
    pub fn api(&self, path: &str) -> String {
        format!("{}{path}", self.base())
    }

    /// Whether Telegram may reach it: it has a name, speaks TLS, and has one of the ports that Telegram calls.
    #[must_use]
    pub fn is_public(&self) -> bool {
        let name = self.0.domain().unwrap_or_default();
        let has_port = matches!(self.0.port_or_known_default(), Some(80 | 88 | 443 | 8443));
        self.0.scheme() == "https" && name.contains('.') && !name.ends_with(".localhost") && has_port
    }

    /// The page of a thing in the console.
    #[must_use]
    pub fn link(&self, leads_to: LeadsTo) -> String {
        let page = match leads_to {
            LeadsTo::Run { run_id } => format!("runs/{run_id}"),
            LeadsTo::Action { action_id } => format!("actions/{action_id}"),
            LeadsTo::Agent { agent_id } => format!("agents/{agent_id}"),
            LeadsTo::Watched { watched_id } => format!("watch/schedules/{watched_id}"),
            LeadsTo::Docs { project_id } => format!("context/docs/{project_id}"),
            LeadsTo::Watch => "watch".to_owned(),
            LeadsTo::Usage => "account/usage".to_owned(),
            LeadsTo::Notices => "notices".to_owned(),
        };
        format!("{}/#/{page}", self.base())
    }

    /// The page where a person says what to be told.
    #[must_use]
    pub fn settings(&self) -> String {
        self.link(LeadsTo::Notices)
    }
}

/// What is said.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    Notice(&'a Notice),
    /// `at`: when it is sent.
    Digest {
        date: Date,
        at: Timestamp,
        digest: &'a Digest,
    },
    /// The code that confirms an e-mail address. It has no text that a person can choose.
    Code {
        code: Option<&'a Code>,
    },
}

/// Addresses in a message that only its reader may have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links<'a> {
    /// Ends these e-mails with a single POST.
    pub unsubscribe: Option<&'a Url>,
    pub answer: Option<ToAnswer<'a>>,
}

/// How the reader of a notice answers it.
#[derive(Clone, Copy, Debug)]
pub struct ToAnswer<'a> {
    /// The page on which its reader can answer, pause or correct.
    pub page: &'a str,
    /// What is asked beyond the reason, such as a call with its arguments. The text comes from outside.
    pub asked: &'a str,
    /// What a reply to the message does, in a sentence.
    pub reply: &'a str,
}

/// Whether [`ToAnswer::asked`] is shown whole: nothing of it is cut, hidden, or another character.
#[must_use]
pub fn is_shown_whole(asked: &str) -> bool {
    let shown = inert(asked);
    visible(asked) == asked && cut(&shown, SHOWN_ASKED) == shown
}

/// An e-mail without its sender and its recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    pub subject: String,
    pub text: String,
    pub html: String,
    /// Names and values. No value has a line break.
    pub headers: Vec<(&'static str, String)>,
}

/// What happened, in a sentence without a full stop.
fn headline(key: &NoticeKey, about: &About, count: u32, is_over: bool) -> String {
    let title = match cut(&inert(&about.title), SHOWN_TITLE) {
        title if title.is_empty() => "(without a name)".to_owned(),
        title => title,
    };
    let times = |once: &str| match count {
        0 | 1 => format!("{title} {once}"),
        n => format!("{title} {once} {n} times"),
    };
    match (key.kind, is_over) {
        (NoticeKind::NeedsAnswer, _) => match count {
            0 | 1 => format!("{title} needs an answer"),
            n => format!("{title} needs {n} answers"),
        },
        (NoticeKind::Watchdog, false) => format!("Watchdog: {title}"),
        (NoticeKind::Watchdog, true) => format!("{title} is right again"),
        (NoticeKind::Failed, false) if key.cause.as_str() == MISSED => times("has missed its due time"),
        (NoticeKind::Failed, false) => times("has failed"),
        (NoticeKind::Failed, true) => format!("{title} works again"),
        (NoticeKind::Held, false) => times("was held back"),
        (NoticeKind::Held, true) => format!("{title} is not held back any more"),
        (NoticeKind::Budget, false) => format!("Costs: {title}"),
        (NoticeKind::Budget, true) => format!("Costs: right again: {title}"),
        // Whether it arrives is not known yet.
        (NoticeKind::Succeeded, _) if key.cause.as_str() == TEST => title,
        (NoticeKind::Succeeded, _) => times("has succeeded"),
        (NoticeKind::NothingNew, _) => times("found nothing new"),
    }
}

/// The name of a group of a digest.
const fn group_name(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::NeedsAnswer => "Needs an answer",
        NoticeKind::Watchdog => "Watchdog",
        NoticeKind::Failed => "Failed",
        NoticeKind::Held => "Held back",
        NoticeKind::Budget => "Costs",
        NoticeKind::Succeeded => "Succeeded",
        NoticeKind::NothingNew => "Nothing new",
    }
}

/// How soon a person should see a message, for channels that know it.
enum Urgency {
    Alarm,
    Question,
    News,
}

/// A line, without the format of any channel.
enum Line {
    Heading(String),
    Text(String),
    /// Lines whose columns are aligned.
    Fixed(Vec<String>),
    /// A text, and a link of ours.
    Link(String, String),
}

/// The lines of a message. The first and the last ones always fit into a channel.
struct Lines {
    first: Vec<Line>,
    /// What is left out first if a channel has no room.
    middle: Vec<Line>,
    last: Vec<Line>,
}

/// What a channel does with texts.
struct Style {
    /// Makes a text harmless.
    escape: fn(&str) -> String,
    /// The same for lines with aligned columns.
    fixed: fn(&[String]) -> String,
    /// Measures what the channel counts.
    size: fn(&str) -> usize,
    max: usize,
}

/// A text that fits into its channel.
struct Fitted {
    text: String,
    /// Where lines with aligned columns stand in it, in bytes.
    fixed: Vec<std::ops::Range<usize>>,
}

impl Style {
    fn shown(&self, line: &Line) -> String {
        match line {
            Line::Heading(text) | Line::Text(text) => (self.escape)(text),
            Line::Fixed(lines) => (self.fixed)(lines),
            Line::Link(text, link) => format!("{}: {link}", (self.escape)(text)),
        }
    }

    /// The largest beginning of a line whose size is at most `room`. None if a part of it says nothing.
    fn begin(&self, line: &Line, room: usize) -> Option<String> {
        let (all, begin): (usize, &dyn Fn(usize) -> String) = match line {
            Line::Heading(text) | Line::Text(text) => {
                (text.chars().count(), &|chars| (self.escape)(&cut(text, chars)))
            }
            Line::Fixed(lines) => (lines.len(), &|count| (self.fixed)(&lines[..count])),
            Line::Link(..) => return None,
        };
        let (mut fits, mut over) = (0, all + 1);
        while over - fits > 1 {
            let half = fits.midpoint(over);
            if (self.size)(&begin(half)) <= room { fits = half } else { over = half }
        }
        (fits > 0).then(|| begin(fits))
    }

    fn fit(&self, lines: &Lines, rest: impl Fn(usize) -> String) -> Fitted {
        // "\nand 51 more", or that the rest is behind the link.
        const REST: usize = 40;
        let mut fitted = Fitted { text: String::new(), fixed: Vec::new() };
        for line in &lines.first {
            fitted.push(&self.shown(line), false);
        }
        let last = lines.last.iter().map(|line| (self.size)(&self.shown(line)) + 1).sum::<usize>();
        let room = self.max.saturating_sub(last + REST);
        for (at, line) in lines.middle.iter().enumerate() {
            let shown = self.shown(line);
            let is_fixed = matches!(line, Line::Fixed(_));
            let used = (self.size)(&fitted.text) + 1;
            if used + (self.size)(&shown) <= room {
                fitted.push(&shown, is_fixed);
                continue;
            }
            if let Some(begin) = self.begin(line, room.saturating_sub(used)) {
                fitted.push(&begin, is_fixed);
            }
            let left_out = lines.middle[at..].iter().filter(|line| matches!(line, Line::Link(..))).count();
            fitted.push(&(self.escape)(&rest(left_out)), false);
            break;
        }
        for line in &lines.last {
            fitted.push(&self.shown(line), false);
        }
        fitted
    }
}

impl Fitted {
    fn push(&mut self, shown: &str, is_fixed: bool) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let begin = self.text.len();
        self.text.push_str(shown);
        if is_fixed {
            self.fixed.push(begin..self.text.len());
        }
    }
}

/// The lines of a result.
fn result_lines(result: &RunResult, lines: &mut Vec<Line>) {
    for output in &result.outputs {
        let title = cut(&inert(&output.title), SHOWN_TITLE);
        let parts = parts(output);
        let repeats =
            matches!(parts.first(), Some(Part::Heading(text)) if visible(text) == visible(&output.title));
        if !repeats && !title.is_empty() {
            lines.push(Line::Heading(title));
        }
        lines.extend(parts.into_iter().map(|part| match part {
            Part::Heading(text) => Line::Heading(text),
            Part::Line(text) => Line::Text(text),
            Part::Fixed(lines) => Line::Fixed(lines),
        }));
        if output.is_cut {
            lines.push(Line::Text(GOES_ON.to_owned()));
        }
    }
    match result.more {
        0 => {}
        1 => lines.push(Line::Text("One more output is behind the link.".to_owned())),
        more => lines.push(Line::Text(format!("{more} more outputs are behind the link."))),
    }
    let sources = sources(result);
    if !sources.is_empty() {
        lines.push(Line::Heading("Sources".to_owned()));
        lines.extend(sources.into_iter().map(Line::Text));
    }
}

impl Message<'_> {
    /// The first line of the message: what happened to what.
    #[must_use]
    pub fn subject(&self) -> String {
        match self {
            Self::Notice(notice) => headline(&notice.key, &notice.about, notice.count, notice.is_over),
            Self::Digest { date, digest, .. } => {
                let count = digest.lines() + digest.more;
                format!("{date}: {count} {}", if count == 1 { "thing" } else { "things" })
            }
            Self::Code { .. } => "Confirm this e-mail address".to_owned(),
        }
    }

    fn lines(&self, site: &Site, results: &Results, answer: Option<ToAnswer<'_>>) -> Lines {
        let (mut first, mut middle, mut last) = (vec![Line::Heading(self.subject())], Vec::new(), Vec::new());
        match self {
            Self::Notice(notice @ Notice { about, count, since, is_over, .. }) => {
                if !about.reason.is_empty() {
                    first.push(Line::Text(cut(&inert(&about.reason), SHOWN_REASON)));
                }
                if let Some(ToAnswer { asked, .. }) = answer.filter(|answer| !answer.asked.is_empty()) {
                    first.push(Line::Text(cut(&inert(asked), SHOWN_ASKED)));
                }
                for result in results.values() {
                    result_lines(result, &mut middle);
                }
                let cost: i64 = results.values().map(|result| result.cost_micros).sum();
                if cost > 0 {
                    last.push(Line::Text(format!("It cost {}.", dollars(cost))));
                }
                let since = since.strftime("%Y-%m-%d %H:%M UTC");
                if *is_over {
                    let times = if *count == 1 { "once".to_owned() } else { format!("{count} times") };
                    last.push(Line::Text(format!("It began at {since} and happened {times}.")));
                } else if *count > 1 {
                    last.push(Line::Text(format!("It began at {since}.")));
                }
                if let Some(ToAnswer { page, reply, .. }) = answer {
                    let label = if asks(notice) { "Answer it" } else { "Pause or correct it" };
                    if !reply.is_empty() {
                        last.push(Line::Text(reply.to_owned()));
                    }
                    last.push(Line::Link(label.to_owned(), page.to_owned()));
                }
                last.push(Line::Link("See it".to_owned(), site.link(about.leads_to)));
            }
            Self::Digest { digest, .. } => {
                for group in &digest.groups {
                    middle.push(Line::Heading(group_name(group.kind).to_owned()));
                    middle.extend(group.lines.iter().map(|item| digest_line(item, site, results)));
                }
                if digest.more > 0 {
                    middle.push(Line::Text(format!("and {} more", digest.more)));
                }
            }
            Self::Code { code } => {
                first.push(Line::Text("Somebody wants notices of Lamplighter to be sent here.".to_owned()));
                if let Some(code) = code {
                    first.push(Line::Text(format!("If it is you, type this code within one hour: {code}")));
                }
                let otherwise = "If it is not you, do nothing. Nothing else will be sent here.";
                last.push(Line::Text(otherwise.to_owned()));
            }
        }
        Lines { first, middle, last }
    }

    /// The text that fits into a channel. What is left out of a result is behind the link, and of a digest it is counted.
    fn fitted(&self, site: &Site, results: &Results, style: &Style) -> Fitted {
        self.fit(&self.lines(site, results, None), style)
    }

    fn fit(&self, lines: &Lines, style: &Style) -> Fitted {
        style.fit(lines, |left_out| match self {
            Self::Digest { digest, .. } => format!("and {} more", left_out + digest.more),
            Self::Notice(_) | Self::Code { .. } => GOES_ON.to_owned(),
        })
    }

    /// An e-mail.
    #[must_use]
    pub fn email(&self, site: &Site, results: &Results, Links { unsubscribe, answer }: Links<'_>) -> Email {
        let mut text = String::new();
        let mut html = String::from("<!doctype html><html><body>");
        let Lines { first, middle, last } = self.lines(site, results, answer);
        for line in first.iter().chain(&middle).chain(&last) {
            match line {
                Line::Link(shown, link) => {
                    text.push_str(&format!("{shown}: {link}\n"));
                    let (shown, link) = (escape_html(shown), escape_html(link));
                    html.push_str(&format!("<p><a href=\"{link}\">{shown}</a></p>"));
                }
                Line::Heading(shown) => {
                    text.push_str(&format!("\n{shown}\n"));
                    html.push_str(&format!("<h3>{}</h3>", escape_html(shown)));
                }
                Line::Text(shown) => {
                    text.push_str(&format!("{shown}\n"));
                    // Blanks at the beginning say how deep an item of a list stands.
                    let deep = shown.len() - shown.trim_start_matches(' ').len();
                    let shown = escape_html(&shown[deep..]);
                    html.push_str(&format!("<p>{}{shown}</p>", "&nbsp;".repeat(deep)));
                }
                Line::Fixed(lines) => {
                    let lines = lines.join("\n");
                    text.push_str(&format!("{lines}\n"));
                    html.push_str(&format!("<pre>{}</pre>", escape_html(&lines)));
                }
            }
        }
        // Whoever gets a code may have no account.
        if !matches!(self, Self::Code { .. }) {
            let settings = site.settings();
            text.push_str(&format!("\nWhat you are told: {settings}\n"));
            html.push_str(&format!("<p><a href=\"{}\">What you are told</a></p>", escape_html(&settings)));
        }
        html.push_str("</body></html>");
        // The URL was parsed, so it has no line break and no bracket.
        let headers = unsubscribe.map_or_else(Vec::new, |url| {
            vec![
                ("List-Unsubscribe", format!("<{}>", url.as_str().replace('>', "%3E"))),
                ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
            ]
        });
        Email {
            subject: cut(&self.subject(), MAX_SUBJECT),
            text: text.trim_start().to_owned(),
            html,
            headers,
        }
    }

    /// The body for an incoming webhook of Slack.
    #[must_use]
    pub fn slack(&self, site: &Site, results: &Results) -> Value {
        let style = Style {
            escape: escape_slack,
            fixed: |lines| fenced(&escape_slack(&lines.join("\n"))),
            size: |text| text.chars().count(),
            max: SLACK_MAX,
        };
        json!({"text": self.fitted(site, results, &style).text})
    }

    /// The body for a webhook of Discord.
    #[must_use]
    pub fn discord(&self, site: &Site, results: &Results) -> Value {
        let style = Style {
            escape: escape_markdown,
            fixed: |lines| fenced(&lines.join("\n")),
            size: |text| text.chars().count(),
            max: DISCORD_MAX,
        };
        json!({"content": self.fitted(site, results, &style).text, "allowed_mentions": {"parse": []}})
    }

    /// The body for `sendMessage` of Telegram. It names no `parse_mode`, so Telegram takes the text as it is. What has aligned columns is
    /// an entity of the type `pre`.
    #[must_use]
    pub fn telegram(
        &self,
        site: &Site,
        results: &Results,
        (chat_id, answer): (&str, Option<ToAnswer<'_>>),
    ) -> Value {
        let units = |text: &str| text.encode_utf16().count();
        let style =
            Style { escape: str::to_owned, fixed: |lines| lines.join("\n"), size: units, max: TELEGRAM_MAX };
        let Fitted { text, fixed } = self.fit(&self.lines(site, results, answer), &style);
        let entity = |place: &std::ops::Range<usize>| {
            let (offset, length) = (units(&text[..place.start]), units(&text[place.clone()]));
            json!({"type": "pre", "offset": offset, "length": length})
        };
        let entities: Vec<Value> = fixed.iter().map(entity).collect();
        let mut body =
            json!({"chat_id": chat_id, "text": text, "link_preview_options": {"is_disabled": true}});
        if !entities.is_empty() {
            body["entities"] = json!(entities);
        }
        body
    }

    /// The body for the root of a server of ntfy. It asks for no Markdown, so ntfy takes the text as it is.
    #[must_use]
    pub fn ntfy(&self, site: &Site, results: &Results, topic: &str) -> Value {
        let style = Style {
            escape: str::to_owned,
            fixed: |lines| lines.join("\n"),
            // ntfy reads at most twice its limit as JSON. Two thirds of it are for the message, with its escapes.
            size: |text| text.len().max((json!(text).to_string().len() * 2).div_ceil(3)),
            max: NTFY_MAX,
        };
        let (title, message) = self.titled(site, results, &style);
        // ntfy makes a header of the title, and decodes the encoded words of e-mails in it.
        let title = cut(&title.replace("=?", "= ?"), MAX_SUBJECT);
        let (priority, tag) = match self.urgency() {
            Urgency::Alarm => (4, "warning"),
            Urgency::Question => (4, "question"),
            Urgency::News => (3, "white_check_mark"),
        };
        let mut body =
            json!({"topic": topic, "title": title, "message": message, "priority": priority, "tags": [tag]});
        if let Some(link) = self.leads_to(site) {
            body["click"] = json!(link);
        }
        body
    }

    /// The body for `POST /message` of Gotify.
    #[must_use]
    pub fn gotify(&self, site: &Site, results: &Results) -> Value {
        let style = Style {
            escape: str::to_owned,
            fixed: |lines| lines.join("\n"),
            size: |text| text.chars().count(),
            max: GOTIFY_MAX,
        };
        let (title, message) = self.titled(site, results, &style);
        // Android shows 8 and more at once on the screen, and gives 4 to 7 a sound.
        let priority = match self.urgency() {
            Urgency::Alarm | Urgency::Question => 8,
            Urgency::News => 5,
        };
        let mut extras = json!({"client::display": {"contentType": "text/plain"}});
        if let Some(link) = self.leads_to(site) {
            extras["client::notification"] = json!({"click": {"url": link}});
        }
        json!({"title": title, "message": message, "priority": priority, "extras": extras})
    }

    /// The subject, and the lines below it that fit into a channel.
    fn titled(&self, site: &Site, results: &Results, style: &Style) -> (String, String) {
        let mut lines = self.lines(site, results, None);
        // The first line is the subject.
        lines.first.remove(0);
        (cut(&self.subject(), MAX_SUBJECT), self.fit(&lines, style).text)
    }

    /// The page of what a message is about. None if it is about several things.
    fn leads_to(&self, site: &Site) -> Option<String> {
        match self {
            Self::Notice(notice) => Some(site.link(notice.about.leads_to)),
            Self::Digest { .. } | Self::Code { .. } => None,
        }
    }

    const fn urgency(&self) -> Urgency {
        match self {
            Self::Notice(notice) if !notice.is_over => match notice.key.kind {
                NoticeKind::NeedsAnswer => Urgency::Question,
                NoticeKind::Failed | NoticeKind::Held | NoticeKind::Watchdog | NoticeKind::Budget => {
                    Urgency::Alarm
                }
                NoticeKind::Succeeded | NoticeKind::NothingNew => Urgency::News,
            },
            Self::Notice(_) | Self::Digest { .. } | Self::Code { .. } => Urgency::News,
        }
    }

    /// The body of a webhook. Its texts are visible, and are not changed otherwise: the receiver knows what it does with them.
    #[must_use]
    pub fn webhook(&self, site: &Site, results: &Results) -> Value {
        match self {
            Self::Notice(notice) => {
                let mut data =
                    told(&notice.key, &notice.about, (notice.count, notice.last_at, notice.is_over), site);
                data["notice_id"] = json!(notice.notice_id);
                data["since"] = json!(notice.since);
                if notice.key.kind == NoticeKind::Succeeded {
                    data["results"] = results.iter().map(|(run, result)| told_result(*run, result)).collect();
                }
                json!({"type": format!("notice.{}", notice.key.kind), "timestamp": notice.at, "data": data})
            }
            Self::Digest { date, at, digest } => {
                let line = |item: &DigestItem| {
                    let mut line =
                        told(&item.key, &item.about, (item.count, item.last_at, item.is_over), site);
                    if let Some(excerpt) = excerpt_of(item, results) {
                        line["excerpt"] = json!(excerpt);
                    }
                    line
                };
                let lines: Vec<Value> =
                    digest.groups.iter().flat_map(|group| &group.lines).map(line).collect();
                json!({"type": "notice.digest", "timestamp": at, "data": {"date": date, "lines": lines, "more": digest.more}})
            }
            // It goes to e-mail addresses only.
            Self::Code { .. } => json!({"type": "code"}),
        }
    }
}

/// What a webhook is told of a notice, alone or in a digest.
fn told(
    key: &NoticeKey,
    about: &About,
    (count, last_at, is_over): (u32, Timestamp, bool),
    site: &Site,
) -> Value {
    json!({
        "kind": key.kind,
        "action_id": key.action_id,
        "cause": key.cause,
        "title": visible(&about.title),
        "reason": visible(&about.reason),
        "count": count,
        "last_at": last_at,
        "is_over": is_over,
        "url": site.link(about.leads_to),
    })
}

/// What a webhook is told of a result. The texts are what the run has saved, without what nobody sees.
fn told_result(run: RunId, result: &RunResult) -> Value {
    let output = |output: &Output| {
        let text: String = output
            .text
            .chars()
            .filter(|c| matches!(c, '\n' | '\t') || !(c.is_control() || is_invisible(*c)))
            .collect();
        json!({
            "title": visible(&output.title),
            "text": text,
            "is_cut": output.is_cut,
            "is_markdown": output.is_markdown,
            "tainted": output.tainted,
        })
    };
    let outputs: Vec<Value> = result.outputs.iter().map(output).collect();
    json!({"run_id": run, "outputs": outputs, "more": result.more, "cost_micros": result.cost_micros, "sources": result.sources})
}

/// The beginning of the result that a line of a digest is about.
fn excerpt_of(item: &DigestItem, results: &Results) -> Option<String> {
    match item.about.leads_to {
        LeadsTo::Run { run_id } if item.key.kind == NoticeKind::Succeeded => excerpt(results.get(&run_id)?),
        _ => None,
    }
}

fn digest_line(item: &DigestItem, site: &Site, results: &Results) -> Line {
    let mut head = headline(&item.key, &item.about, item.count, item.is_over);
    // A line has no reason, and this one needs a person.
    if item.about.has_paused && !item.is_over {
        head.push_str(", and is paused");
    }
    if let Some(excerpt) = excerpt_of(item, results) {
        head.push_str(&format!(". {excerpt}"));
    }
    Line::Link(head, site.link(item.about.leads_to))
}

#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Slack reads `&`, `<` and `>`: links, mentions and names of channels need them.
fn escape_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Lines of a code block. Three of its marks in it would end it.
fn fenced(text: &str) -> String {
    format!("```\n{}\n```", text.replace("```", "'''"))
}

fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '>' | '#' | '[' | ']' | '(' | ')' | ':' | '-' | '+'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
