use proptest::prelude::*;
use serde_json::json;

use super::ModelError::{
    Authentication, ContextTooLarge, InvalidRequest, NotFound, Overloaded, Permission, ProviderTimeout,
    Quota, RateLimited, Refused, RequestTooLarge, Server, Timeout, Unexpected,
};
use super::*;

fn now() -> Timestamp {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

fn secs(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

#[test]
fn statuses_and_bodies_become_kinds() {
    let anthropic = |kind: &str, message: &str| {
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"})
            .to_string()
    };
    let openai = |kind: &str, code: Option<&str>, message: &str| {
        json!({"error": {"message": message, "type": kind, "param": null, "code": code}}).to_string()
    };
    let check = |provider: Provider, status: u16, body: &str, expected: ModelError| {
        let failure = HttpFailure { status, body: body.as_bytes(), ..HttpFailure::default() };
        assert_eq!(classify(provider, &failure, now()), expected, "{status} {body}");
    };
    let none = None;
    let invalid = |code: &str| InvalidRequest { code: Some(code.into()) };

    let a = Provider::Anthropic;
    check(
        a,
        400,
        &anthropic("invalid_request_error", "max_tokens: Field required"),
        invalid("invalid_request_error"),
    );
    check(
        a,
        400,
        &anthropic("invalid_request_error", "prompt is too long: 214315 tokens > 200000 maximum"),
        ContextTooLarge,
    );
    check(a, 400, &anthropic("invalid_request_error", "Your credit balance is too low"), Quota);
    check(a, 401, &anthropic("authentication_error", "invalid x-api-key"), Authentication);
    check(a, 402, &anthropic("billing_error", "m"), Quota);
    check(a, 403, &anthropic("permission_error", "m"), Permission);
    check(a, 404, &anthropic("not_found_error", "model: x"), NotFound);
    check(a, 409, &anthropic("conflict_error", "m"), Server { status: 409, retry_after: none });
    check(a, 413, &anthropic("request_too_large", "m"), RequestTooLarge);
    check(a, 429, &anthropic("rate_limit_error", "m"), RateLimited { retry_after: none });
    check(a, 500, &anthropic("api_error", "m"), Server { status: 500, retry_after: none });
    check(a, 504, &anthropic("timeout_error", "m"), ProviderTimeout { retry_after: none });
    check(a, 529, &anthropic("overloaded_error", "Overloaded"), Overloaded { retry_after: none });

    let o = Provider::OpenAi;
    check(
        o,
        401,
        &openai("invalid_request_error", Some("invalid_api_key"), "Incorrect API key"),
        Authentication,
    );
    check(o, 400, &openai("invalid_request_error", Some("context_length_exceeded"), "m"), ContextTooLarge);
    check(
        o,
        400,
        &openai("invalid_request_error", None, "This model's maximum context length is 8192"),
        ContextTooLarge,
    );
    check(
        o,
        400,
        &openai("invalid_request_error", Some("unknown_parameter"), "m"),
        invalid("unknown_parameter"),
    );
    check(o, 400, &openai("x", Some("content_filter"), "m"), Refused);
    check(o, 429, &openai("tokens", Some("rate_limit_exceeded"), "m"), RateLimited { retry_after: none });
    check(o, 429, &openai("insufficient_quota", Some("insufficient_quota"), "m"), Quota);
    check(o, 500, &openai("server_error", None, "m"), Server { status: 500, retry_after: none });
    check(o, 503, &openai("server_error", None, "m"), Overloaded { retry_after: none });

    let g = Provider::Google;
    let google = |code: u16, message: &str, details: serde_json::Value| {
        json!({"error": {"code": code, "message": message, "status": "S", "details": details}}).to_string()
    };
    let rpc = |kind: &str, field: &str, value: serde_json::Value| {
        let mut detail = json!({"@type": format!("type.googleapis.com/google.rpc.{kind}")});
        detail[field] = value;
        json!([detail])
    };
    let large = "The input token count (2551556) exceeds the maximum number of tokens allowed (1048576).";
    check(g, 400, &google(400, large, json!([])), ContextTooLarge);
    check(g, 400, &google(400, "API key not valid. Please pass a valid API key.", json!([])), Authentication);
    check(g, 400, &google(400, "m", json!([])), InvalidRequest { code: None });
    check(g, 429, &google(429, "m", json!([])), RateLimited { retry_after: none });
    let delay = |text: &str| {
        google(429, "You exceeded your current quota", rpc("RetryInfo", "retryDelay", json!(text)))
    };
    check(g, 429, &delay("33s"), RateLimited { retry_after: secs(33) });
    check(g, 429, &format!("[{}]", delay("33s")), RateLimited { retry_after: secs(33) });
    check(g, 429, &delay("soon"), Quota);
    check(g, 429, &delay("-1s"), Quota);
    let violation = json!([{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]);
    check(g, 429, &google(429, "m", rpc("QuotaFailure", "violations", violation)), Quota);
    check(g, 503, &google(503, "The model is overloaded.", json!([])), Overloaded { retry_after: none });
    check(g, 500, &google(500, "m", json!([])), Server { status: 500, retry_after: none });

    // Servers that use the OpenAI format.
    check(
        o,
        400,
        r#"{"code":"Client specified an invalid argument","error":"bad"}"#,
        InvalidRequest { code: None },
    );
    check(o, 400, r#"{"code":"x y","error":"Incorrect API key provided: na***ys."}"#, Authentication);
    check(
        o,
        400,
        r#"[{"error":{"code":400,"message":"API key not valid. Please pass one."}}]"#,
        Authentication,
    );
    check(
        o,
        400,
        r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        ContextTooLarge,
    );
    check(o, 400, r#"{"error":{"message":"Input too long: 9 input tokens, limit is 8"}}"#, ContextTooLarge);
    check(o, 404, r#"{"error":"model 'x' not found"}"#, NotFound);
    check(o, 502, "<html><h1>502 Bad Gateway</h1></html>", Server { status: 502, retry_after: none });
    check(a, 502, "", Server { status: 502, retry_after: none });
    // A server error that quotes the prompt is still a server error.
    check(a, 500, &anthropic("api_error", "prompt is too long"), Server { status: 500, retry_after: none });
    check(a, 429, &anthropic("", "prompt is too long"), RateLimited { retry_after: none });
    check(a, 418, "[]", Unexpected { status: 418 });
    check(a, 302, "null", Unexpected { status: 302 });
}

#[test]
fn errors_of_aws_are_named_by_a_header() {
    let check = |status: u16, name: &str, message: &str, expected: ModelError| {
        for error_type in [name.to_owned(), format!("{name}:http://internal.amazon.com/coral/x/")] {
            let body = json!({ "message": message }).to_string();
            let failure = HttpFailure {
                status,
                error_type: Some(&error_type),
                body: body.as_bytes(),
                ..HttpFailure::default()
            };
            assert_eq!(
                classify(Provider::Bedrock, &failure, now()),
                expected,
                "{status} {error_type} {message}"
            );
        }
    };
    let retry_after = None;
    check(429, "ThrottlingException", "Too many tokens, please wait", RateLimited { retry_after });
    check(429, "ModelNotReadyException", "m", RateLimited { retry_after });
    check(408, "ModelTimeoutException", "m", ProviderTimeout { retry_after });
    check(424, "ModelErrorException", "m", Server { status: 424, retry_after });
    check(503, "ServiceUnavailableException", "m", Overloaded { retry_after });
    check(500, "InternalServerException", "m", Server { status: 500, retry_after });
    check(403, "AccessDeniedException", "You don't have access to the model", Permission);
    check(403, "ExpiredTokenException", "m", Authentication);
    check(
        403,
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
        Authentication,
    );
    check(404, "ResourceNotFoundException", "m", NotFound);
    check(400, "ServiceQuotaExceededException", "m", Quota);
    check(400, "ValidationException", "The provided model identifier is invalid.", NotFound);
    check(400, "ValidationException", "Input is too long for requested model.", ContextTooLarge);
    check(400, "ValidationException", "prompt is too long: 214315 tokens > 200000 maximum", ContextTooLarge);
    check(400, "ValidationException", "The text field is blank", InvalidRequest { code: None });
}

#[test]
fn the_wait_is_read_in_every_form() {
    let check = |retry_after: Option<&str>, retry_after_ms: Option<&str>, expected: Option<Duration>| {
        let failure = HttpFailure { status: 429, retry_after, retry_after_ms, ..HttpFailure::default() };
        let error = classify(Provider::Anthropic, &failure, now());
        assert_eq!(error.retry_after(), expected, "{retry_after:?} {retry_after_ms:?}");
    };
    check(None, None, None);
    check(Some("7"), None, secs(7));
    check(Some(" 7 "), None, secs(7));
    check(Some("0.5"), None, Some(Duration::from_millis(500)));
    check(Some("3600"), None, secs(3600));
    check(Some("7"), Some("250"), Some(Duration::from_millis(250)));
    check(Some("7"), Some("soon"), secs(7));
    check(Some("Sat, 21 Nov 2026 12:00:30 GMT"), None, secs(30));
    check(Some("Sat, 21 Nov 2026 11:00:00 GMT"), None, secs(0));
    check(Some("-1"), None, None);
    check(Some("NaN"), None, None);
    check(Some("1e300"), None, None);
    check(Some("later"), None, None);
}

#[test]
fn the_provider_may_overrule_its_status() {
    let check = |status: u16, should_retry: &str, expected: ModelError| {
        let failure = HttpFailure { status, should_retry: Some(should_retry), ..HttpFailure::default() };
        let error = classify(Provider::Anthropic, &failure, now());
        assert_eq!(error, expected, "{status} {should_retry}");
    };
    check(400, "true", Server { status: 400, retry_after: None });
    check(500, "true", Server { status: 500, retry_after: None });
    check(500, "false", Unexpected { status: 500 });
    check(429, "false", Quota);
    check(401, "false", Authentication);
    check(500, "maybe", Server { status: 500, retry_after: None });
}

#[test]
fn an_error_event_is_what_its_status_would_have_been() {
    let check = |provider: Provider, event: Value, expected: ModelError| {
        assert_eq!(classify_event(provider, &event), expected, "{event}");
    };
    let event = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "m"}});
    let a = Provider::Anthropic;
    check(a, event("overloaded_error"), Overloaded { retry_after: None });
    check(a, event("rate_limit_error"), RateLimited { retry_after: None });
    check(a, event("timeout_error"), ProviderTimeout { retry_after: None });
    check(a, event("api_error"), Server { status: 500, retry_after: None });
    check(a, event("invalid_request_error"), InvalidRequest { code: Some("invalid_request_error".into()) });
    check(a, event("billing_error"), Quota);
    check(a, event("of_tomorrow"), Server { status: 500, retry_after: None });
    let o = Provider::OpenAi;
    check(o, json!({"error": {"code": 502, "message": "m"}}), Server { status: 502, retry_after: None });
    check(o, json!({"error": {"code": 429, "message": "m"}}), RateLimited { retry_after: None });
    check(
        o,
        json!({"error": {"type": "server_error", "message": "m"}}),
        Server { status: 500, retry_after: None },
    );
    check(o, json!({"error": "broken"}), Server { status: 500, retry_after: None });
    let b = Provider::Bedrock;
    check(b, event("throttlingException"), RateLimited { retry_after: None });
    check(b, event("modelStreamErrorException"), Server { status: 424, retry_after: None });
    check(b, event("serviceUnavailableException"), Overloaded { retry_after: None });
    check(b, event("internalServerException"), Server { status: 500, retry_after: None });
    check(b, event("validationException"), InvalidRequest { code: None });
    let too_large = json!({"error": {"type": "validationException", "message": "prompt is too long: 3 > 2"}});
    check(b, too_large, ContextTooLarge);
}

#[test]
fn error_messages_are_clear() {
    for (error, words) in [
        (Timeout(TimeoutPhase::FirstByte), "the provider did not begin to answer in time"),
        (Timeout(TimeoutPhase::Deadline), "the answer was not complete in time"),
        (InvalidRequest { code: None }, "the provider rejected the request as invalid"),
        (
            InvalidRequest { code: Some("unknown_parameter".into()) },
            "the provider rejected the request as invalid (unknown_parameter)",
        ),
        (ModelError::Unsendable(Unsendable::NoMessages), "the request is not valid: it has no message"),
    ] {
        assert_eq!(error.to_string(), words);
    }
}

proptest! {
    /// No text that a server quotes appears in our messages: neither the prompt nor the key.
    #[test]
    fn quoted_text_never_appears_in_our_errors(
        status in 400u16..600,
        secret in "[A-Z]{12}",
        place in 0usize..5,
    ) {
        let quoted = format!("in '{secret}' sk-{secret}");
        let body = match place {
            0 => json!({"error": {"message": quoted, "type": "invalid_request_error"}}).to_string(),
            1 => json!({"error": {"message": "m", "type": quoted, "code": secret}}).to_string(),
            2 => json!({"error": quoted, "code": secret}).to_string(),
            3 => json!({"message": quoted}).to_string(),
            _ => quoted,
        };
        let failure = HttpFailure { status, body: body.as_bytes(), ..HttpFailure::default() };
        for provider in [Provider::Anthropic, Provider::OpenAi] {
            let error = classify(provider, &failure, now());
            let said = format!("{error} {error:?}");
            prop_assert!(!said.contains(&secret), "{}", said);
        }
    }

    #[test]
    fn no_error_answer_panics(status: u16, body: Vec<u8>, header in ".*") {
        let failure = HttpFailure {
            error_type: Some(&header),
            status,
            retry_after: Some(&header),
            retry_after_ms: Some(&header),
            should_retry: Some(&header),
            body: &body,
        };
        let _ = classify(Provider::OpenAi, &failure, now());
    }
}
