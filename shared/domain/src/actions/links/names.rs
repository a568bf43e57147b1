//! Finds hosts that stand in a text without a scheme: `example.com/path`. Many programs make links of them.
//!
//! A dot between two words is no proof. `README.md`, `node.js` and `Done.It` look the same. So the last part of the name decides,
//! and what stands around it. `docs/api.md` has the rules for people.

use std::collections::HashSet;
use std::sync::LazyLock;

use url::Host;

use super::{Found, Hosts, MAX_HEAD, Wrong, wrong};

/// The top-level domains of countries.
const COUNTRIES: &str = "ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by bz \
    ca cc cd cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf \
    gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr \
    kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni \
    nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se sg sh si sk sl sm sn so sr ss \
    st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw";

/// Other top-level domains that programs make links of without a path.
const OTHERS: &str = "com net org info biz pro name edu gov mil int mobi tel asia coop museum aero cat jobs travel xxx web shop app \
    dev cloud online site website store blog tech xyz club top vip icu buzz space agency digital network example zip mov рф укр бел \
    срб қаз орг ком онлайн сайт дети рус москва 中国 中國 台湾 台灣 香港 公司 网络 한국 भारत";

/// Top-level domains that are better known as endings of files. Without a path, the name is taken for a file.
const FILES: &str = "cc md ml mm mov pm ps py rs sh so tf zip";

/// Endings of files that are no top-level domains. A name with them leads nowhere.
const NO_DOMAINS: &str = "asp aspx bak bash bat bib bin bmp cfg cgi class conf cpp cs css csv dat db deb diff dll doc docx ejs env \
    epub exe fish gem gif go gql gradle graphql gz haml hbs hpp htm html ico ini ipynb jar java jpeg jpg js json jsonl jsx jsp kt \
    less liquid lock log lua map mdx mjs cjs odp ods odt otf patch pdf php png ppt pptx proto rb rpm rst rtf sass scala scss sql \
    sqlite svelte svg swift tar tex tgz tiff tmp toml ts tsv tsx ttf txt vue wasm wav webm webp woff xls xlsx xml xz yaml yml zsh";

type Names = LazyLock<HashSet<&'static str>>;

static DOMAINS: Names =
    LazyLock::new(|| COUNTRIES.split_whitespace().chain(OTHERS.split_whitespace()).collect());
static COUNTRY: Names = LazyLock::new(|| COUNTRIES.split_whitespace().collect());
static FILE: Names = LazyLock::new(|| FILES.split_whitespace().collect());
static NO_DOMAIN: Names = LazyLock::new(|| NO_DOMAINS.split_whitespace().collect());

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Text,
    /// In code, programs make no links. A person may still follow `curl example.com/install`.
    Code,
}

fn is_part(char: char) -> bool {
    char.is_alphanumeric() || is_dot(char) || matches!(char, '-' | '_')
}

/// A full stop, or one of the characters that browsers take for one.
fn is_dot(char: char) -> bool {
    matches!(char, '.' | '。' | '．' | '｡')
}

/// Adds the hosts of a text that are not permitted.
pub(super) fn search(text: &str, place: Place, found: &mut Found) {
    let (mut at, mut in_url) = (0, false);
    while let Some(length) = text[at..].find(is_part) {
        let gap = &text[at..at + length];
        // The path of a URL names no other host.
        in_url &= !gap.contains(|char: char| char.is_whitespace() || "<>\"'`()[]{}|，。、；".contains(char));
        let start = at + length;
        let end = text[start..].find(|char| !is_part(char)).map_or(text.len(), |length| start + length);
        at = end;
        let (before, after) = (&text[..start], &text[end..]);
        if in_url || found.is_full() || before.ends_with('@') {
            continue;
        }
        if before.ends_with("://") || before.ends_with(":\\\\") {
            in_url = true;
            continue;
        }
        let has_slashes = is_protocol_relative(before);
        if before.ends_with('/') && !has_slashes {
            continue;
        }
        let Some(host) = host_of(&text[start..end], after, place, has_slashes) else { continue };
        in_url = after.starts_with(['/', '?', '#', ':']);
        if let Some(why) = why(&host, found.hosts) {
            let shown = &text[start..text.floor_char_boundary(text.len().min(start + 2 * MAX_HEAD))];
            let shown =
                shown.split(|char: char| char.is_whitespace() || "<>\"'`()[]{}|".contains(char)).next();
            let shown =
                shown.unwrap_or_default().trim_end_matches(['.', ',', ':', ';', '!', '?', '*', '_', '~']);
            found.add_again(wrong(shown, why));
        }
    }
}

/// Whether a text ends with `//` that a host may follow.
fn is_protocol_relative(before: &str) -> bool {
    before
        .strip_suffix("//")
        .is_some_and(|rest| !rest.ends_with(|char: char| char.is_alphanumeric() || ":/_".contains(char)))
}

/// Judges the target of a link without a scheme: `example.com/path` is a relative link for a browser and a host for others.
pub(super) fn in_target(link: &str, hosts: &Hosts) -> Option<Wrong> {
    let end = link.find(|char| !is_part(char)).unwrap_or(link.len());
    let host = host_of(&link[..end], &link[end..], Place::Text, false)?;
    wrong(link, why(&host, hosts)?)
}

fn why(name: &str, hosts: &Hosts) -> Option<String> {
    // Browsers read no other host than this one. What is no host leads nowhere.
    let host = Host::parse(name).ok()?;
    (!hosts.permit(&host)).then(|| format!("leads to {host}"))
}

/// The host that a run of letters, digits, hyphens and dots is, if it counts as one before what follows it. `//` may stand before it.
fn host_of(run: &str, after: &str, place: Place, has_slashes: bool) -> Option<String> {
    let next = after.chars().next();
    // `a.b@example.com`. In `example.com@x`, no host follows.
    if let Some(domain) = after.strip_prefix('@') {
        let end = domain.find(|char| !is_part(char)).unwrap_or(domain.len());
        if domain[..end].trim_matches(is_dot).contains(is_dot) {
            return None;
        }
    }
    let run = run.trim_matches(|char| is_dot(char) || matches!(char, '-' | '_'));
    let mut labels: Vec<&str> = run.rsplit(is_dot).take(MAX_HEAD).collect();
    // A host has no empty part and no underscore. What stands before them is something else.
    let valid =
        labels.iter().position(|label| label.is_empty() || label.contains('_')).unwrap_or(labels.len());
    labels.truncate(valid);
    let [last, second, ..] = labels[..] else { return None };
    let last = last.to_lowercase();
    let last = last.as_str();
    let is_shaped =
        last.starts_with("xn--") || (last.chars().count() > 1 && last.chars().all(char::is_alphabetic));
    if !is_shaped || NO_DOMAIN.contains(last) {
        return None;
    }
    let has_path = has_path(after);
    let counts = match place {
        Place::Code => DOMAINS.contains(last) && (has_path || has_slashes && !FILE.contains(last)),
        Place::Text if has_path || has_slashes => true,
        Place::Text if last.starts_with("xn--") => true,
        Place::Text if FILE.contains(last) => false,
        // `3.in`, and calls such as `name.is(`.
        Place::Text if COUNTRY.contains(last) => second.chars().any(char::is_alphabetic) && next != Some('('),
        Place::Text => DOMAINS.contains(last),
    };
    labels.reverse();
    counts.then(|| labels.join("."))
}

/// Whether a path follows a host, or a port with a path.
fn has_path(after: &str) -> bool {
    let after_port = after
        .strip_prefix(':')
        .map_or(after, |port| port.trim_start_matches(|char: char| char.is_ascii_digit()));
    after_port.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_in_one_list() {
        for ending in FILES.split_whitespace() {
            assert!(DOMAINS.contains(ending), "{ending} is a top-level domain");
        }
        for ending in NO_DOMAINS.split_whitespace() {
            assert!(!DOMAINS.contains(ending), "{ending} is in two lists");
        }
    }
}
