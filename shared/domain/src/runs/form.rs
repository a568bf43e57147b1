//! What a client asks of the form of a turn's reply: where it ends, how long it is, and whether it is JSON.
//!
//! The form is stored with the run, so that another process which takes the run over keeps to it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::models::Sampling;
use crate::text::json_schema::Schema;

/// The smallest limit of a reply, in tokens: some providers refuse smaller ones.
pub const MIN_TOKENS: u32 = 16;

/// How many texts may end a reply.
pub const MAX_STOPS: usize = 4;

/// The longest text that ends a reply, in characters.
pub const MAX_STOP: usize = 200;

/// The largest JSON Schema of a reply, in bytes. It is stored with the run's record, which is written often.
pub const MAX_SCHEMA: usize = 16 * 1024;

/// The form of a reply. The default asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplyForm {
    /// The reply ends before the first of these texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// The most tokens of all model calls of the run together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<JsonForm>,
    /// How the model chooses among the next words, if it takes that.
    #[serde(default, skip_serializing_if = "Sampling::is_empty")]
    pub sampling: Sampling,
}

/// A reply that is JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonForm {
    /// Any object.
    Object,
    /// A value that matches this schema.
    Schema(Schema),
}

impl ReplyForm {
    /// Whether the reply may have any text.
    #[must_use]
    pub fn is_free(&self) -> bool {
        let Self { stop, max_tokens, json, sampling: _ } = self;
        stop.is_empty() && max_tokens.is_none() && json.is_none()
    }

    /// How many tokens the next call of a model may write, of at most `most`. `None` if the limit is reached.
    #[must_use]
    pub fn tokens_left(&self, used: u64, most: u32) -> Option<u32> {
        let Some(max) = self.max_tokens else { return Some(most) };
        let left = u32::try_from(u64::from(max).saturating_sub(used)).unwrap_or(u32::MAX);
        (left >= MIN_TOKENS).then_some(left.min(most))
    }
}

impl JsonForm {
    /// What the model is told.
    #[must_use]
    pub fn instruction(&self) -> String {
        let no_more = "Write nothing before or after it, and no code fence.";
        match self {
            Self::Object => format!("Answer with one JSON object. {no_more}"),
            Self::Schema(schema) => {
                let schema = schema.as_value();
                format!("Answer with one JSON value that matches this JSON Schema. {no_more}\n{schema}")
            }
        }
    }

    /// The schema that a provider can enforce, if there is one.
    #[must_use]
    pub fn for_provider(&self) -> Option<Value> {
        match self {
            Self::Object => None,
            Self::Schema(schema) => schema.for_provider(),
        }
    }

    /// The JSON of a reply. Models like to put it into a code fence.
    ///
    /// # Errors
    /// Why the reply does not have this form.
    pub fn read<'a>(&self, reply: &'a str) -> Result<&'a str, String> {
        let text = without_fence(reply);
        let value: Value =
            serde_json::from_str(text).map_err(|error| format!("the reply is not valid JSON: {error}"))?;
        match self {
            Self::Object if !value.is_object() => Err("the reply is JSON, but not an object".to_owned()),
            Self::Object => Ok(text),
            Self::Schema(schema) => match schema.check(&value) {
                Ok(()) => Ok(text),
                Err(why) => Err(format!("the reply does not match the JSON Schema: {why}")),
            },
        }
    }
}

fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(inner) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else { return text };
    inner.strip_prefix("json").unwrap_or(inner).trim()
}

/// Ends a text before the first of several others. A text that may be the beginning of one of them is held back until the next
/// piece decides.
#[derive(Debug, Default)]
pub struct StopReader {
    stops: Vec<String>,
    /// Text that is not passed on yet.
    held: String,
    /// How much of the held text the reader has already: it comes before this text.
    before: usize,
    is_over: bool,
}

impl StopReader {
    /// `before` is what the client has before the text. It may begin one of the texts that end the reply.
    #[must_use]
    pub fn new(stops: &[String], before: &str) -> Self {
        let (stops, is_idle) = (stops.to_vec(), stops.is_empty());
        let before = if is_idle { "" } else { before };
        Self { stops, held: before.to_owned(), before: before.len(), is_over: false }
    }

    /// Takes a piece of the text. Returns what can be passed on.
    #[must_use]
    pub fn feed(&mut self, text: &str) -> String {
        if self.stops.is_empty() {
            return text.to_owned();
        }
        if self.is_over {
            return String::new();
        }
        self.held.push_str(text);
        // The one that is complete first ends the text, so that it does not matter how the text is cut into pieces.
        let found = self.stops.iter().filter_map(|stop| {
            let at = self.held.find(stop.as_str())?;
            Some((at + stop.len(), at))
        });
        if let Some((_, at)) = found.min() {
            self.is_over = true;
            return self.pass(at);
        }
        let begins = |at: &usize| {
            let rest = &self.held[*at..];
            self.stops.iter().any(|stop| stop.starts_with(rest))
        };
        let at = self.held.char_indices().map(|(at, _)| at).find(begins).unwrap_or(self.held.len());
        self.pass(at)
    }

    /// The text has ended. Returns what was held back.
    #[must_use]
    pub fn finish(&mut self) -> String {
        if self.is_over { String::new() } else { self.pass(self.held.len()) }
    }

    /// Whether one of the texts was found.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// After the end: the text that ended it, and what came with it.
    #[must_use]
    pub fn rest(&self) -> &str {
        &self.held[self.before..]
    }

    fn pass(&mut self, to: usize) -> String {
        let passed = self.held.get(self.before..to).unwrap_or_default().to_owned();
        self.held.drain(..to);
        self.before = self.before.saturating_sub(to);
        passed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cut(stops: &[&str], before: &str, pieces: &[&str]) -> (String, bool) {
        let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
        let mut reader = StopReader::new(&stops, before);
        let mut text: String = pieces.iter().map(|piece| reader.feed(piece)).collect();
        text.push_str(&reader.finish());
        (text, reader.is_over())
    }

    #[test]
    fn a_text_ends_before_the_first_stop_however_it_is_cut_into_pieces() {
        let whole = "Ein Käse, zwei STOP und drei END";
        for (stops, expected, is_over) in [
            (&["STOP"][..], "Ein Käse, zwei ", true),
            (&["END", "STOP"], "Ein Käse, zwei ", true),
            (&["END"], "Ein Käse, zwei STOP und drei ", true),
            (&["äs", "Käsekuchen"], "Ein K", true),
            (&["E"], "", true),
            (&["nothing"], whole, false),
            (&["ENDE"], whole, false),
            // The second is complete before the first.
            (&["zwei STOP", "wei"], "Ein Käse, z", true),
            (&[], whole, false),
        ] {
            let letters: Vec<String> = whole.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            for pieces in [&[whole][..], &letters, &["Ein K", "äse, zwei S", "TO", "P und drei E", "ND"]] {
                assert_eq!(cut(stops, "", pieces), (expected.to_owned(), is_over), "{stops:?} {pieces:?}");
            }
        }
    }

    #[test]
    fn a_stop_may_begin_in_what_the_client_has_already() {
        assert_eq!(cut(&["\n\nB"], "\n\n", &["Beta"]), (String::new(), true));
        assert_eq!(cut(&["\n\n"], "\n\n", &["Alpha"]), (String::new(), true));
        assert_eq!(cut(&["\nB"], "\n\n", &["Alpha", "\nBeta"]), ("Alpha".to_owned(), true));
        assert_eq!(cut(&["x"], "\n\n", &["Alpha"]), ("Alpha".to_owned(), false));
        let mut reader = StopReader::new(&["STOP".to_owned()], "\n\n");
        assert_eq!(reader.feed("one ST"), "one ");
        assert_eq!(reader.feed("OP two"), "");
        assert_eq!(reader.rest(), "STOP two");
    }

    #[test]
    fn the_tokens_of_all_calls_are_limited_together() {
        let free = ReplyForm::default();
        assert_eq!(free.tokens_left(1_000_000, 16_000), Some(16_000));
        let form = ReplyForm { max_tokens: Some(100), ..ReplyForm::default() };
        assert_eq!(form.tokens_left(0, 16_000), Some(100));
        assert_eq!(form.tokens_left(84, 16_000), Some(16));
        assert_eq!(form.tokens_left(85, 16_000), None);
        assert_eq!(form.tokens_left(u64::MAX, 16_000), None);
        let form = ReplyForm { max_tokens: Some(u32::MAX), ..ReplyForm::default() };
        assert_eq!(form.tokens_left(5, 16_000), Some(16_000));
    }

    #[test]
    fn a_reply_is_read_as_json() {
        let form = JsonForm::Object;
        for good in ["{\"a\": 1}", " {\"a\": 1}\n", "```json\n{\"a\": 1}\n```", "```\n{\"a\": 1}```"] {
            assert_eq!(form.read(good), Ok("{\"a\": 1}"), "{good}");
        }
        for (bad, why) in [
            ("[1]", "not an object"),
            ("Here: {}", "not valid JSON"),
            ("{} {}", "not valid JSON"),
            ("", "not valid"),
        ] {
            assert!(form.read(bad).unwrap_err().contains(why), "{bad}");
        }
        let schema = Schema::new(json!({"type": "object", "required": ["a"]})).unwrap();
        let form = JsonForm::Schema(schema);
        assert_eq!(form.read("{\"a\": 1}"), Ok("{\"a\": 1}"));
        assert_eq!(
            form.read("{}"),
            Err("the reply does not match the JSON Schema: the value must have the field `a`".to_owned())
        );
    }

    #[test]
    fn a_form_is_stored_and_read_again() {
        let schema = Schema::new(json!({"type": "object"})).unwrap();
        let form = ReplyForm {
            stop: vec!["a".into()],
            max_tokens: Some(50),
            json: Some(JsonForm::Schema(schema)),
            sampling: Sampling::from([(
                crate::models::SamplingParameter::Temperature,
                serde_json::Number::from(0),
            )]),
        };
        let json = serde_json::to_value(&form).unwrap();
        assert_eq!(serde_json::from_value::<ReplyForm>(json).unwrap(), form);
        assert_eq!(serde_json::from_value::<ReplyForm>(json!({})).unwrap(), ReplyForm::default());
    }
}
