//! Chooses between the two forms of a run's answer by the `Accept` header (RFC 9110, section 12.5.1).

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};

use crate::error::{Error, Result};

/// The form of the answer that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// Server-sent events, as they happen.
    Events,
    /// The finished result.
    Json,
}

/// The quality of a range, and how specifically it names the type. The greater one is preferred.
type Fit = (u16, u8);

impl Accept {
    /// The form with the greater `q`. If both are equal, the form that is named more specifically; otherwise events.
    ///
    /// # Errors
    /// 406 if neither form is accepted.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let lines = headers.get_all(header::ACCEPT).iter();
        let lines: Vec<String> =
            lines.map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect();
        let ranges: Vec<Range> =
            lines.iter().flat_map(|line| line.split(',')).filter_map(Range::parse).collect();
        if ranges.is_empty() {
            return Ok(Self::Events);
        }
        let (events, json) = (fit(&ranges, "text", "event-stream"), fit(&ranges, "application", "json"));
        match (events.0, json.0) {
            (0, 0) => Err(Error::Malformed {
                status: StatusCode::NOT_ACCEPTABLE,
                code: "not_acceptable",
                message: "`Accept` must allow `text/event-stream` or `application/json`".to_owned(),
            }),
            _ if json > events => Ok(Self::Json),
            _ => Ok(Self::Events),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Accept {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Self::from_headers(&parts.headers)
    }
}

/// One range of media types: `text/*;q=0.5`.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    /// `None` if the text is not a media range. It is then ignored.
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1_000;
        for parameter in parts {
            if let Some((name, value)) = parameter.split_once('=')
                && name.trim().eq_ignore_ascii_case("q")
            {
                quality = thousandths(value.trim())?;
            }
        }
        Some(Self { kind, subtype, quality })
    }

    /// How specifically the range names a type: 0 if it does not match, 1 for `*/*`.
    fn closeness(&self, kind: &str, subtype: &str) -> u8 {
        let same = str::eq_ignore_ascii_case;
        match (self.kind, self.subtype) {
            ("*", "*") => 1,
            (own, "*") if same(own, kind) => 2,
            (own, below) if same(own, kind) && same(below, subtype) => 3,
            _ => 0,
        }
    }
}

/// Parses `0`, `1`, or either with up to three decimals.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.len() <= 3 && decimals.bytes().all(|b| b.is_ascii_digit());
    let decimals: u16 = format!("{decimals:0<3}").parse().ok().filter(|_| is_number)?;
    match whole {
        "0" => Some(decimals),
        "1" if decimals == 0 => Some(1_000),
        _ => None,
    }
}

/// The most specific matching range decides the quality of a type.
fn fit(ranges: &[Range<'_>], kind: &str, subtype: &str) -> Fit {
    let fitting = ranges.iter().map(|range| (range.closeness(kind, subtype), range.quality));
    let (closeness, quality) = fitting.filter(|(closeness, _)| *closeness > 0).max().unwrap_or((0, 0));
    (quality, closeness)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: Option<Accept>) {
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())]);
        match (Accept::from_headers(&headers), expected) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected, "{accept}"),
            (Err(error), None) => assert_eq!(error.status(), StatusCode::NOT_ACCEPTABLE),
            (found, expected) => panic!("{accept}: {found:?} and not {expected:?}"),
        }
    }

    #[test]
    fn the_form_that_is_wanted_most_is_chosen() {
        use Accept::{Events, Json};
        assert_eq!(Accept::from_headers(&HeaderMap::new()).unwrap(), Events);
        check("", Some(Events));
        check("*/*", Some(Events));
        check("text/event-stream", Some(Events));
        check("application/json", Some(Json));
        check("Application/JSON; charset=utf-8", Some(Json));
        // As browsers and libraries send it.
        check("application/json, text/plain, */*", Some(Json));
        check("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Some(Events));
        check("application/json, text/event-stream", Some(Events));
        // By quality.
        check("application/json;q=0.5, text/event-stream", Some(Events));
        check("application/json, text/event-stream;q=0.9", Some(Json));
        check("application/json;q=0.5, */*;q=0.1", Some(Json));
        check("application/*;q=0.9, text/*;q=0.8", Some(Json));
        check("text/event-stream;q=0, */*", Some(Json));
        check("application/json;q=0, */*", Some(Events));
        check("application/json;q=0.001", Some(Json));
        // Neither.
        check("text/html", None);
        check("application/json;q=0", None);
        check("*/*;q=0", None);
        check("application/json;q=0.0, text/event-stream;q=0.000", None);
        // An invalid range is ignored.
        check("application/json;q=2, text/event-stream;q=0.1", Some(Events));
        check("nonsense", Some(Events));
    }
}
