//! What a call of an AWS service needs besides HTTP: a signature, and the framing of streamed answers.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use aws_smithy_eventstream::frame::{DecodedFrame, MessageFrameDecoder};
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_types::event_stream::Message;
use aws_smithy_types::str_bytes::StrBytes;
use bytes::{Bytes, BytesMut};
use domain::models::ModelError;
use futures::stream::{self, Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use base::aws_keys::AwsKeys;

/// Signs requests with Signature Version 4.
pub(super) struct Signer {
    identity: Identity,
    region: String,
    service: &'static str,
}

impl Signer {
    pub(super) fn new(service: &'static str, region: &str, keys: &AwsKeys) -> Self {
        let (id, secret, session) =
            (&keys.access_key_id, &keys.secret_access_key, keys.session_token.clone());
        let credentials = Credentials::new(id, secret, session, None, "environment");
        Self { identity: credentials.into(), region: region.to_owned(), service }
    }

    /// Adds the headers that sign a `POST` of `body` with `headers` to `url`.
    ///
    /// # Errors
    /// [`ModelError::Authentication`] if the credentials cannot be used in a header.
    pub(super) fn sign(
        &self,
        url: &str,
        headers: &mut HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<(), ModelError> {
        let params = v4::SigningParams::builder()
            .identity(&self.identity)
            .region(&self.region)
            .name(self.service)
            .time(now)
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| ModelError::Authentication)?
            .into();
        let signed = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let request = SignableRequest::new("POST", url, signed, SignableBody::Bytes(body))
            .map_err(|_| ModelError::Authentication)?;
        let (instructions, _) = sign(request, &params).map_err(|_| ModelError::Authentication)?.into_parts();
        for (name, value) in instructions.headers() {
            let name = HeaderName::try_from(name).map_err(|_| ModelError::Authentication)?;
            let mut value = HeaderValue::try_from(value).map_err(|_| ModelError::Authentication)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }
}

/// The events of an `application/vnd.amazon.eventstream` body, each as JSON text: an object whose only field is the
/// event's type and whose value is its payload. Exceptions have the form `{"error": {"type": …, "message": …}}`.
///
/// A frame that the body's end cuts off is dropped. Checksums are verified.
pub(super) fn events(
    bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
) -> impl Stream<Item = Result<String, ModelError>> + Send {
    let state = (bytes.boxed(), BytesMut::new(), MessageFrameDecoder::new());
    stream::unfold(Some(state), |state| async move {
        let (mut bytes, mut buffer, mut frames) = state?;
        loop {
            match frames.decode_frame(&mut buffer) {
                Ok(DecodedFrame::Complete(message)) => match data(&message) {
                    Ok(data) => return Some((Ok(data), Some((bytes, buffer, frames)))),
                    Err(error) => return Some((Err(error), None)),
                },
                Ok(DecodedFrame::Incomplete) => match bytes.next().await? {
                    Ok(more) => buffer.extend_from_slice(&more),
                    Err(error) => return Some((Err(error), None)),
                },
                Err(_) => return Some((Err(ModelError::Malformed), None)),
            }
        }
    })
}

/// The JSON text of one frame.
fn data(message: &Message) -> Result<String, ModelError> {
    let header = |wanted: &str| {
        let header = message.headers().iter().find(|header| header.name().as_str() == wanted)?;
        header.value().as_string().ok().map(StrBytes::as_str)
    };
    let payload = std::str::from_utf8(message.payload()).map_err(|_| ModelError::Malformed)?;
    match header(":message-type") {
        Some("event") => {
            let kind = Value::from(header(":event-type").ok_or(ModelError::Malformed)?);
            let payload = if payload.is_empty() { "null" } else { payload };
            Ok(format!("{{{kind}:{payload}}}"))
        }
        Some("exception") => {
            let body: Value = serde_json::from_str(payload).unwrap_or_default();
            Ok(failure(header(":exception-type"), body["message"].as_str()))
        }
        Some("error") => Ok(failure(header(":error-code"), header(":error-message"))),
        _ => Err(ModelError::Malformed),
    }
}

fn failure(kind: Option<&str>, message: Option<&str>) -> String {
    serde_json::json!({"error": {"type": kind, "message": message}}).to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use aws_smithy_eventstream::frame::write_message_to;
    use aws_smithy_types::event_stream::{Header, HeaderValue as Typed};

    use super::*;

    /// A frame with text headers.
    pub(crate) fn frame(headers: &[(&'static str, &'static str)], payload: &str) -> Vec<u8> {
        let headers = headers.iter().map(|(name, value)| Header::new(*name, Typed::String((*value).into())));
        let message = Message::new_from_parts(headers.collect(), payload.as_bytes().to_vec());
        let mut frame = Vec::new();
        write_message_to(&message, &mut frame).unwrap();
        frame
    }

    pub(crate) fn keys() -> AwsKeys {
        AwsKeys {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        }
    }

    /// The signatures were computed by botocore 1.44.5, which encodes the path a second time, as AWS does.
    #[test]
    fn a_signature_is_the_one_that_aws_expects() {
        const URL: &str = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A\
                           123456789012%3Ainference-profile%2Feu.anthropic.claude-sonnet-5-5/converse-stream";
        let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_400);
        for (session_token, names, signature) in [
            (
                None,
                "content-type;host;x-amz-date",
                "0e83309be39397170a3b6b76aef3ae3150166d12dabea25aeb33a2dbe0dbaf8d",
            ),
            (
                Some("TOKEN".to_owned()),
                "content-type;host;x-amz-date;x-amz-security-token",
                "89dc6da16f277df44dca2e92d9ac4166efc89801eca44e14cdb58d0a0742f64e",
            ),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            let signer = Signer::new("bedrock", "eu-west-1", &AwsKeys { session_token, ..keys() });
            signer.sign(URL, &mut headers, br#"{"messages":[]}"#, noon).unwrap();
            assert_eq!(headers["x-amz-date"], "20261121T120000Z");
            assert_eq!(
                headers["authorization"].to_str().unwrap(),
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/eu-west-1/bedrock/aws4_request, \
                     SignedHeaders={names}, Signature={signature}"
                )
            );
            assert!(!format!("{headers:?}").contains("TOKEN"), "{headers:?}");
        }
    }

    async fn read(body: Vec<u8>, size: usize) -> Vec<Result<String, ModelError>> {
        let chunks: Vec<_> = body.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        events(stream::iter(chunks)).collect().await
    }

    #[tokio::test]
    async fn frames_are_read_however_they_are_cut() {
        let event = |kind, payload| {
            frame(
                &[(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")],
                payload,
            )
        };
        let mut body = event("messageStart", r#"{"role":"assistant"}"#);
        body.extend(event("of_tomorrow", ""));
        body.extend(event("contentBlockDelta", r#"{"delta":{"text":"Grüße 👋"}}"#));
        let thrown = [(":exception-type", "throttlingException"), (":message-type", "exception")];
        body.extend(frame(&thrown, r#"{"message":"Too many"}"#));
        let broken = [(":error-code", "InternalError"), (":error-message", "m"), (":message-type", "error")];
        body.extend(frame(&broken, ""));
        let expected = [
            r#"{"messageStart":{"role":"assistant"}}"#,
            r#"{"of_tomorrow":null}"#,
            r#"{"contentBlockDelta":{"delta":{"text":"Grüße 👋"}}}"#,
            r#"{"error":{"message":"Too many","type":"throttlingException"}}"#,
            r#"{"error":{"message":"m","type":"InternalError"}}"#,
        ];
        let values = |texts: &[&str]| -> Vec<Value> {
            texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
        };
        for size in [1, 2, 7, 11, 12, 13, 64, 4096] {
            let read: Vec<String> = read(body.clone(), size).await.into_iter().map(Result::unwrap).collect();
            let texts: Vec<&str> = read.iter().map(String::as_str).collect();
            assert_eq!(values(&texts), values(&expected), "{size}");
        }
        // The end of the body cuts the last frame off.
        assert_eq!(read(body[..body.len() - 1].to_vec(), 64).await.len(), expected.len() - 1);
    }

    #[tokio::test]
    async fn a_damaged_frame_is_an_error_and_the_end() {
        let whole = frame(&[(":event-type", "messageStop"), (":message-type", "event")], "{}");
        for place in [0, 5, 9, 20, whole.len() - 6, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            damaged.extend(&whole);
            let read = read(damaged, 16).await;
            assert!(!matches!(read.first(), Some(Ok(_))), "{place}: {read:?}");
            assert!(read.len() <= 1, "{place}: {read:?}");
        }
        for headers in [&[(":event-type", "e")][..], &[(":message-type", "event")], &[(":message-type", "x")]]
        {
            assert_eq!(read(frame(headers, "{}"), 64).await, [Err(ModelError::Malformed)]);
        }
        // The largest length that a frame can claim neither panics nor allocates.
        assert_eq!(read(vec![0xff; 64], 64).await.len().min(1), read(vec![0xff; 64], 64).await.len());
    }
}
