//! Shortens a payload that is too long for the server by cutting its longest texts.
//!
//! The server keeps only the first thousand characters of an answer, so a cut answer loses nothing. A prompt is cut only if it is
//! too long by itself, and then it says so.

use serde_json::Value;

/// How many bytes of each text are kept at first. This is halved until the payload fits.
const KEPT: usize = 1024 * 1024;

/// Shorter limits do not help: then the payload has too many texts.
const LEAST: usize = 1024;

/// The payload in at most `most` bytes of JSON. It is not changed if it is not a JSON object, or if it is long for
/// other reasons than its texts.
#[must_use]
pub fn to_fit(body: Vec<u8>, most: usize) -> Vec<u8> {
    let Ok(payload @ Value::Object(_)) = serde_json::from_slice::<Value>(&body) else { return body };
    // The prompt is what the log is for, so everything else is cut first.
    for spares_prompt in [true, false] {
        let mut kept = KEPT;
        while kept >= LEAST {
            let short = cut_to(&payload, kept, spares_prompt).to_string();
            if short.len() <= most {
                return short.into_bytes();
            }
            kept /= 2;
        }
    }
    body
}

fn cut_to(payload: &Value, kept: usize, spares_prompt: bool) -> Value {
    const PROMPT: &str = "/tool_input/prompt";
    let mut short = payload.clone();
    cut(&mut short, kept);
    if let (true, Some(whole), Some(place)) =
        (spares_prompt, payload.pointer(PROMPT), short.pointer_mut(PROMPT))
    {
        place.clone_from(whole);
    }
    short
}

/// Cuts every text of more than `kept` bytes, and adds its original length at the end.
fn cut(value: &mut Value, kept: usize) {
    match value {
        Value::String(text) if text.len() > kept => {
            let before = text.len();
            text.truncate(text.floor_char_boundary(kept));
            text.push_str(&format!(" […cut by lamplighter from {before} bytes]"));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, kept)),
        Value::Object(fields) => fields.values_mut().for_each(|value| cut(value, kept)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(payload: &Value, most: usize) -> Value {
        let body = to_fit(payload.to_string().into_bytes(), most);
        assert!(body.len() <= most, "{} of {most}", body.len());
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn an_answer_is_cut_before_a_prompt() {
        let (prompt, answer) = ("p".repeat(3_000_000), "ä\"".repeat(1_000_000));
        let payload =
            json!({"tool_input": {"prompt": prompt}, "tool_response": {"content": [{"text": answer}]}});
        let short = check(&payload, 4_400_000);
        assert_eq!(short["tool_input"]["prompt"], prompt);
        let text = short["tool_response"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("ä\"ä") && text.ends_with(" […cut by lamplighter from 3000000 bytes]"));
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_cut_too() {
        let payload = json!({"tool_input": {"prompt": "p".repeat(5_000_000)}, "session_id": "s"});
        let short = check(&payload, 4_400_000);
        assert!(
            short["tool_input"]["prompt"]
                .as_str()
                .unwrap()
                .ends_with("cut by lamplighter from 5000000 bytes]")
        );
        assert_eq!(short["session_id"], "s");
    }

    #[test]
    fn a_payload_without_long_texts_is_not_shortened() {
        for body in ["[1,2,3]", "nonsense", &json!({"a": vec![1; 100]}).to_string()] {
            assert_eq!(to_fit(body.as_bytes().to_vec(), 5), body.as_bytes());
        }
    }
}
