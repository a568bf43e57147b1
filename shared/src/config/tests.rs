use domain::accounts::plans::Plan;
use domain::accounts::rates::RateLimits;
use domain::reach::Policy;

use super::*;

const LAMBDA: &[(&str, &str)] =
    &[("AWS_REGION", "eu-central-1"), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];

fn read(more: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let find = |name: &str| more.iter().chain(LAMBDA).find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    Config::read(&find)
}

#[test]
fn a_lambda_environment_is_enough_and_asks_for_a_key() {
    let config = read(&[]).unwrap();
    assert_eq!(config.aws.table, "lamplighter");
    assert!(matches!(config.auth, AuthConfig::On(None)));
    assert!(!format!("{config:?}").contains("secret\""), "a debug print shows no secret");
}

#[test]
fn an_empty_variable_is_none_and_no_key_is_printed() {
    let models = read(&[
        ("ANTHROPIC_API_KEY", " "),
        ("OPENAI_API_KEY", "sk-1"),
        ("LAMPLIGHTER_MODEL_URL", "http://localhost:11434/v1"),
        ("LAMPLIGHTER_MODEL_KEY", "sk-2"),
        ("LAMPLIGHTER_MODEL_TOOLS", "off"),
        ("LAMPLIGHTER_PRICES", r#"{"compatible/*": "free"}"#),
        ("GOOGLE_AI_API_KEY", "AI-3"),
    ])
    .unwrap()
    .models;
    assert_eq!((&models.anthropic_key, models.openai_key.as_deref()), (&None, Some("sk-1")));
    assert_eq!(models.google_key.as_deref(), Some("AI-3"));
    assert!(!models.servers[&domain::models::ServerName::COMPATIBLE].tools);
    let shown = format!("{models:?}");
    assert!(!["sk-1", "sk-2", "AI-3"].iter().any(|key| shown.contains(key)), "{shown}");
}

#[test]
fn a_forced_model_goes_to_its_provider() {
    let (anthropic, openai) = (("ANTHROPIC_API_KEY", "sk-1"), ("OPENAI_API_KEY", "sk-2"));
    let (url, free) = (
        ("LAMPLIGHTER_MODEL_URL", "http://localhost:11434/v1"),
        (
            "LAMPLIGHTER_PRICES",
            r#"{"compatible/*": "free", "openai/gpt-4o": {"input": 2500000, "output": 10000000}}"#,
        ),
    );
    let check = |model: &str, variables: &[(&str, &str)], expected: Result<&str, &str>| {
        let all: Vec<_> = variables.iter().copied().chain([("LAMPLIGHTER_MODEL", model)]).collect();
        let found = read(&all).map(|config| config.models.forced.map(|model| model.to_string()));
        match (&found, expected) {
            (Ok(Some(found)), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            _ => panic!("{model}: {found:?}"),
        }
    };
    let both = [anthropic, openai];
    check("gpt-6-sol", &both, Ok("openai/gpt-6-sol"));
    check("openai/gpt-6-sol", &both, Ok("openai/gpt-6-sol"));
    check("claude-sonnet-5-5", &both, Ok("anthropic/claude-sonnet-5-5"));
    check("grok-4.3", &both, Err("the provider `xai` is not configured; configured are: anthropic, openai"));
    check("xai/grok-4.3", &both, Err("the provider `xai` is not configured"));
    check("gpt-4o", &both, Err("write it as `provider/model`, with one of anthropic, openai"));
    check("gpt-6-sol", &[anthropic], Err("the provider `openai` is not configured"));
    check("gpt-6-sol", &[], Err("LAMPLIGHTER_MODEL is `gpt-6-sol`, and no provider is configured"));
    // A model without a price is refused, with the setting that prices it.
    let unpriced = "uses the model `openai/gpt-4o`, which has no known price, so no budget would limit its cost: set \
                    LAMPLIGHTER_PRICES, for example {\"openai/gpt-4o\": {\"input\": 2500000";
    check("openai/gpt-4o", &both, Err(unpriced));
    check("gpt-4o", &[openai], Err(unpriced));
    check("gpt-4o", &[openai, free], Ok("openai/gpt-4o"));
    check("qwen3", &[url], Err("or {\"compatible/*\": \"free\"} if its models cost nothing"));
    check("qwen3", &[url, free], Ok("compatible/qwen3"));
    check("org/qwen3", &[url, free], Ok("compatible/org/qwen3"));
    check("gpt-6-sol", &[url, free], Ok("compatible/gpt-6-sol"));
    check("gpt-6-sol", &[url, free, openai], Ok("openai/gpt-6-sol"));
    check("compatible/gpt-6-sol", &[url, free, openai], Ok("compatible/gpt-6-sol"));
    check("qwen3", &[url, free, openai], Err("write it as `provider/model`, with one of compatible, openai"));
    let bedrock = [("LAMPLIGHTER_BEDROCK", "on")];
    check("meta.llama3-70b", &bedrock, Err("uses the model `bedrock/meta.llama3-70b`"));
}

#[test]
fn servers_have_a_name_an_address_prices_and_models() {
    let json = r#"{
        "ollama": {"url": "http://localhost:11434/v1", "models": {"fast": ["qwen3"]}, "prices": {"*": "free"}},
        "router": {"url": "https://router.example/v1", "key": "sk-9", "tools": false,
                   "prices": {"auto": {"input": 1000000, "output": 2000000}}}
    }"#;
    let models = read(&[("LAMPLIGHTER_SERVERS", json), ("ANTHROPIC_API_KEY", "k")]).unwrap().models;
    let [ollama, router] = ["ollama", "router"].map(|name| &models.servers[&name.parse().unwrap()]);
    assert!(ollama.tools && !router.tools && router.key.is_some() && ollama.key.is_none());
    assert!(!format!("{models:?}").contains("sk-9"));
    let price = |model: &str| models.prices.of(&model.parse().unwrap()).map(|price| price.rates.input);
    assert_eq!(
        (price("ollama/qwen3"), price("router/auto"), price("router/x")),
        (Some(0), Some(1_000_000), None)
    );
    for (json, problem) in [
        (r#"{"openai": {"url": "http://a"}}"#, "the name `openai` is the name of a provider"),
        (r#"{"A": {"url": "http://a"}}"#, "the name `A` must be 1 to 32 lower-case letters"),
        (r#"{"a": {"url": "ftp://a"}}"#, "`a`: the address must begin with http:// or https://"),
        (r#"{"a": {"url": "http://a", "key": "x\ny"}}"#, "`a`: the key contains a character"),
        (r#"{"a": {"url": "http://a", "price": {}}}"#, "unknown field `price`"),
        (r#"{"a": {"url": "http://a", "models": {"huge": []}}}"#, "unknown variant `huge`"),
        (r#"{"a": {"url": "http://a"}}"#, "uses the model `a/auto`, which has no known price"),
        (
            r#"{"a": {"url": "http://a", "models": {"deep": ["m"]}, "prices": {"n": "free"}}}"#,
            "uses the model `a/m`, which has no known price",
        ),
    ] {
        let found = read(&[("LAMPLIGHTER_SERVERS", json)]).unwrap_err();
        assert_eq!(found.variable, "LAMPLIGHTER_SERVERS");
        assert!(found.problem.contains(problem), "{json}: {found}");
    }
    let chosen = [("LAMPLIGHTER_MODELS", r#"{"deep": ["olama/m"]}"#), ("ANTHROPIC_API_KEY", "k")];
    let found = read(&chosen).unwrap_err().to_string();
    assert!(found.contains("`olama` is neither a provider nor a server"), "{found}");
}

/// Every Lambda function has credentials, so they must not be enough.
#[test]
fn bedrock_is_used_only_if_it_is_on() {
    let bedrock = |variables: &[(&str, &str)]| read(variables).unwrap().models.bedrock;
    assert!(bedrock(&[]).is_none());
    assert!(bedrock(&[("LAMPLIGHTER_BEDROCK", "off"), ("LAMPLIGHTER_BEDROCK_REGION", "")]).is_none());
    let own = bedrock(&[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "")]).unwrap();
    assert_eq!((own.region.as_str(), own.credentials.access_key_id.as_str()), ("eu-central-1", "id"));
    assert!(!format!("{own:?}").contains("\"secret\""));
    let other = bedrock(&[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "us-east-1")]);
    assert_eq!(other.unwrap().region, "us-east-1");
    let alone = providers::read(&|name| (name == "LAMPLIGHTER_BEDROCK").then(|| "on".to_owned()));
    assert_eq!(alone.unwrap_err().to_string(), "AWS_REGION is not set, and LAMPLIGHTER_BEDROCK is on");
}

#[test]
fn rate_limits_are_off_without_authentication() {
    let rates = |variables: &[(&str, &str)]| read(variables).unwrap().rates;
    assert_eq!(rates(&[]), RateLimits::default());
    assert_eq!(rates(&[("LAMPLIGHTER_RATE_LIMITS", "")]), RateLimits::default());
    assert_eq!(rates(&[("LAMPLIGHTER_AUTH", "off")]), RateLimits::OFF);
    let asked = rates(&[("LAMPLIGHTER_AUTH", "off"), ("LAMPLIGHTER_RATE_LIMITS", "on")]);
    assert_eq!(asked, RateLimits::default());
    assert_eq!(rates(&[("LAMPLIGHTER_RATE_LIMITS", "off")]), RateLimits::OFF);
}

#[test]
fn the_default_plan_may_always_be_chosen() {
    let plans = |variables: &[(&str, &str)]| read(variables).unwrap().plans;
    assert_eq!(plans(&[("LAMPLIGHTER_PLAN", "")]), PlansConfig::default());
    let several = plans(&[("LAMPLIGHTER_PLAN", "pro"), ("LAMPLIGHTER_PLANS", "team, starter,team")]);
    let allowed = vec![Plan::Starter, Plan::Pro, Plan::Team];
    assert_eq!(several, PlansConfig { default: Plan::Pro, allowed });
}

#[test]
fn origins_are_as_browsers_send_them() {
    let origins = |text: &str| read(&[("LAMPLIGHTER_CORS_ORIGINS", text)]).map(|config| config.cors.origins);
    assert_eq!(origins("").unwrap(), [""; 0]);
    let several = "https://app.example.com, http://localhost:3000,http://[::1]:8080,";
    let expected = ["https://app.example.com", "http://localhost:3000", "http://[::1]:8080"];
    assert_eq!(origins(several).unwrap(), expected);
    for wrong in [
        "*",
        "null",
        "app.example.com",
        "https://",
        "https://App.example",
        "https://a/b",
        "https://a:x",
        "ftp://a",
    ] {
        assert!(origins(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_misspelt_variable_is_named() {
    let names = ["LAMPLIGHTER_MODLE_URL", "LAMPLIGHTER_X", "LAMPLIGHTER_AUTH", "PATH", "lamplighter_data"];
    assert_eq!(
        unknown_variables(names.map(str::to_owned)),
        [
            "the variable LAMPLIGHTER_MODLE_URL is unknown and has no effect; do you mean LAMPLIGHTER_MODEL_URL?",
            "the variable LAMPLIGHTER_X is unknown and has no effect",
        ]
    );
    assert!(VARIABLES.is_sorted());
}

#[test]
fn hosts_that_are_not_public_are_none_or_listed() {
    let policy = |text: &str| {
        let reach = read(&[("LAMPLIGHTER_ALLOWED_HOSTS", text)]).unwrap().reach;
        reach.policy.allowed_hosts.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(policy(" "), [""; 0]);
    assert_eq!(policy("models.internal:8080, 10.0.0.7,"), ["models.internal:8080", "10.0.0.7"]);
    assert_eq!(*read(&[]).unwrap().reach.policy, Policy::default());
}

#[test]
fn a_wrong_value_is_named() {
    for (variables, expected) in [
        (&[("LAMPLIGHTER_AUTH", "maybe")][..], "LAMPLIGHTER_AUTH must be `on` or `off`, is `maybe`"),
        (
            &[("LAMPLIGHTER_CORS_ORIGINS", "https://a.example, https://b.example/")],
            "LAMPLIGHTER_CORS_ORIGINS must be origins like https://app.example.com, separated by commas, and has `https://b.example/`",
        ),
        (
            &[("LAMPLIGHTER_CORS_ORIGINS", "*")],
            "LAMPLIGHTER_CORS_ORIGINS must be origins like https://app.example.com, separated by commas, and has `*`",
        ),
        (&[("LAMPLIGHTER_BEDROCK", "yes")], "LAMPLIGHTER_BEDROCK must be `on` or `off`, is `yes`"),
        (
            &[("LAMPLIGHTER_BEDROCK", "on"), ("LAMPLIGHTER_BEDROCK_REGION", "evil.example/")],
            "LAMPLIGHTER_BEDROCK_REGION must be the name of an AWS region, such as eu-west-1",
        ),
        (
            &[("LAMPLIGHTER_BEDROCK", "on"), ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "localhost")],
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME must begin with http:// or https:// and have a host",
        ),
        (&[("LAMPLIGHTER_MODEL_TOOLS", "no")], "LAMPLIGHTER_MODEL_TOOLS must be `on` or `off`, is `no`"),
        (
            &[("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example")],
            "LAMPLIGHTER_JWT_AUDIENCE is required with LAMPLIGHTER_JWT_ISSUER",
        ),
        (
            &[("LAMPLIGHTER_JWT_ISSUER", "http://issuer.example"), ("LAMPLIGHTER_JWT_AUDIENCE", "x")],
            "LAMPLIGHTER_JWKS_URL must begin with https://",
        ),
        (
            &[
                ("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example"),
                ("LAMPLIGHTER_JWT_AUDIENCE", "x"),
                ("LAMPLIGHTER_JWKS_CA_FILE", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
            ],
            "LAMPLIGHTER_JWKS_CA_FILE must name a PEM file of certificates",
        ),
        (
            &[
                ("LAMPLIGHTER_JWT_ISSUER", "https://issuer.example"),
                ("LAMPLIGHTER_JWT_AUDIENCE", "x"),
                ("LAMPLIGHTER_JWKS_CA_FILE", "/nowhere/ca.pem"),
            ],
            "LAMPLIGHTER_JWKS_CA_FILE names a file that can't be read: No such file or directory (os error 2)",
        ),
        (
            &[("LAMPLIGHTER_MODEL_URL", "localhost:11434/v1")],
            "LAMPLIGHTER_MODEL_URL must begin with http:// or https:// and have a host",
        ),
        (
            &[("OPENAI_API_KEY", "sk-1\nsk-2")],
            "OPENAI_API_KEY contains a character that HTTP headers do not allow",
        ),
        (
            &[("LAMPLIGHTER_DAY_BUDGET_MICROS", "-1")],
            "LAMPLIGHTER_DAY_BUDGET_MICROS must be a positive number of micro-dollars, is `-1`",
        ),
        (
            &[("LAMPLIGHTER_PLAN", "free")],
            "LAMPLIGHTER_PLAN must name plans out of unlimited, starter, pro, team, agency, names `free`",
        ),
        (&[("LAMPLIGHTER_PLAN", "pro,team")], "LAMPLIGHTER_PLAN must name one plan"),
        (
            &[("LAMPLIGHTER_FEATURES", "context_editing=yes")],
            "LAMPLIGHTER_FEATURES must set `context_editing` to `on` or `off`, sets it to `yes`",
        ),
        (
            &[("LAMPLIGHTER_RATE_LIMITS", "turns=none")],
            "LAMPLIGHTER_RATE_LIMITS must set `turns` to 1 to 1000000 requests a minute or `off`, sets it to `none`",
        ),
        (
            &[("LAMPLIGHTER_MASTER_KEY", "/lamplighter/master-keys/0")],
            "LAMPLIGHTER_MASTER_KEY must be like /lamplighter/master-keys/1, is `/lamplighter/master-keys/0`",
        ),
        (
            &[("LAMPLIGHTER_MASTER_KEY", "/1")],
            "LAMPLIGHTER_MASTER_KEY must be like /lamplighter/master-keys/1, is `/1`",
        ),
        (
            &[("LAMPLIGHTER_ALLOWED_HOSTS", "10.0.0.7, *.internal")],
            "LAMPLIGHTER_ALLOWED_HOSTS must be hosts such as models.internal or 10.0.0.7:8080, separated by commas, and has `*.internal`",
        ),
        (
            &[("LAMPLIGHTER_SMTP_CA_FILE", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))],
            "LAMPLIGHTER_SMTP_CA_FILE must name a PEM file of certificates",
        ),
        (&[("LAMPLIGHTER_EXECUTORS", "0")], "LAMPLIGHTER_EXECUTORS must be 1 to 1000 executors, is `0`"),
        (&[("LAMPLIGHTER_ANSWER_DAYS", "29")], "LAMPLIGHTER_ANSWER_DAYS must be 1 to 28 days, is `29`"),
        (&[("LAMPLIGHTER_LOG_HOT_DAYS", "0")], "LAMPLIGHTER_LOG_HOT_DAYS must be 1 to 65535 days, is `0`"),
    ] {
        assert_eq!(read(variables).unwrap_err().to_string(), expected);
    }
}
