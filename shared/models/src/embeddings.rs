//! Vectors of texts ("embeddings"), in the formats of the providers that have a model for it.
//!
//! One call, without a retry: the caller's work is repeated anyway. What a provider answers is checked: as many vectors as texts, each of
//! the length that was asked for, and of finite numbers.

use domain::models::error::TimeoutPhase;
use domain::models::prices::EmbeddingModel;
use domain::models::{ModelError, Provider, estimate};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::call::Endpoint;

/// The most bytes of an answer: 256 vectors of 256 numbers are about 1.5 MB as JSON.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// The vectors of texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// One for each text, in their order.
    pub vectors: Vec<Vec<f32>>,
    /// How many tokens the texts have. An estimate, on the high side, if the provider does not say it.
    pub tokens: u64,
}

/// The format of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// `POST /embeddings`.
    OpenAi,
    /// `POST /v1beta/models/…:batchEmbedContents`. It reports no tokens.
    Google,
    /// `POST /model/…/invoke` of Amazon Titan. It takes one text.
    Titan,
}

impl Format {
    const fn provider(self) -> Provider {
        match self {
            Self::OpenAi => Provider::OpenAi,
            Self::Google => Provider::Google,
            Self::Titan => Provider::Bedrock,
        }
    }

    fn path(self, model: &EmbeddingModel) -> String {
        match self {
            Self::OpenAi => "/embeddings".to_owned(),
            Self::Google => format!("/v1beta/models/{}:batchEmbedContents", model.model),
            Self::Titan => format!("/model/{}/invoke", model.model.as_str().replace(':', "%3A")),
        }
    }

    fn body(self, model: &EmbeddingModel, texts: &[String]) -> Value {
        let (id, dimensions) = (&model.model, model.dimensions);
        match self {
            Self::OpenAi => {
                json!({"model": id, "input": texts, "dimensions": dimensions, "encoding_format": "float"})
            }
            Self::Google => {
                let request = |text: &String| {
                    json!({
                        "model": format!("models/{id}"),
                        "content": {"parts": [{"text": text}]},
                        "outputDimensionality": dimensions,
                    })
                };
                json!({"requests": texts.iter().map(request).collect::<Vec<_>>()})
            }
            Self::Titan => json!({"inputText": texts.first(), "dimensions": dimensions, "normalize": true}),
        }
    }

    /// The vectors in the order of the texts, and the tokens if the provider says them.
    fn read(self, body: &[u8]) -> Option<(Vec<Vec<f32>>, Option<u64>)> {
        #[derive(Deserialize)]
        struct OpenAi {
            data: Vec<Datum>,
            usage: Option<Tokens>,
        }
        #[derive(Deserialize)]
        struct Datum {
            index: usize,
            embedding: Vec<f32>,
        }
        #[derive(Deserialize)]
        struct Tokens {
            prompt_tokens: u64,
        }
        #[derive(Deserialize)]
        struct Google {
            embeddings: Vec<Values>,
        }
        #[derive(Deserialize)]
        struct Values {
            values: Vec<f32>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Titan {
            embedding: Vec<f32>,
            input_text_token_count: Option<u64>,
        }
        match self {
            Self::OpenAi => {
                let OpenAi { mut data, usage } = serde_json::from_slice(body).ok()?;
                data.sort_by_key(|datum| datum.index);
                let in_order = data.iter().enumerate().all(|(at, datum)| at == datum.index);
                let vectors = data.into_iter().map(|datum| datum.embedding).collect();
                in_order.then_some((vectors, usage.map(|usage| usage.prompt_tokens)))
            }
            Self::Google => {
                let Google { embeddings } = serde_json::from_slice(body).ok()?;
                Some((embeddings.into_iter().map(|of| of.values).collect(), None))
            }
            Self::Titan => {
                let Titan { embedding, input_text_token_count } = serde_json::from_slice(body).ok()?;
                Some((vec![embedding], input_text_token_count))
            }
        }
    }
}

/// Asks for the vectors of at most [`EmbeddingModel::most_texts`] texts. None of them is empty.
pub(crate) async fn embed(
    endpoint: Endpoint,
    format: Format,
    model: &'static EmbeddingModel,
    texts: Vec<String>,
) -> Result<Embedded, ModelError> {
    let body = serde_json::to_vec(&format.body(model, &texts)).expect("a JSON value always serializes");
    let deadline = Instant::now() + endpoint.limits.deadline;
    let answer = endpoint.post(&format.path(model), None, body, format.provider(), deadline).await?;
    let read = timeout_at(deadline, read_whole(answer)).await;
    let read = read.map_err(|_| ModelError::Timeout(TimeoutPhase::Deadline))??;
    let (vectors, tokens) = format.read(&read).ok_or(ModelError::Malformed)?;
    let is_whole =
        |vector: &Vec<f32>| vector.len() == model.dimensions && vector.iter().all(|value| value.is_finite());
    if vectors.len() != texts.len() || !vectors.iter().all(is_whole) {
        return Err(ModelError::Malformed);
    }
    Ok(Embedded { vectors, tokens: tokens.unwrap_or_else(|| likely_tokens(model, &texts)) })
}

/// A high estimate of the tokens of texts.
#[must_use]
pub fn likely_tokens(model: &EmbeddingModel, texts: &[String]) -> u64 {
    texts.iter().map(|text| estimate::tokens(&model.model, text.len()) + 1).sum()
}

async fn read_whole(mut answer: reqwest::Response) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|_| ModelError::ConnectionLost)? {
        if body.len() + chunk.len() > MAX_ANSWER {
            return Err(ModelError::Truncated);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use domain::models::Vendor;

    use super::*;
    use crate::fake::{Fake, FakeResponse, Piece};
    use crate::{
        Model,
        bedrock::Bedrock,
        google::Google,
        openai::{Dialect, OpenAi},
    };

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn vector(first: f32) -> Vec<f32> {
        let mut vector = vec![0.0; 256];
        vector[0] = first;
        vector
    }

    fn answer(body: &Value) -> FakeResponse {
        FakeResponse::Stream(vec![Piece::Bytes(body.to_string().into_bytes())])
    }

    #[tokio::test]
    async fn vectors_come_in_the_order_of_the_texts() {
        let openai = json!({"data": [
            {"index": 1, "embedding": vector(2.0)}, {"index": 0, "embedding": vector(1.0)}],
            "usage": {"prompt_tokens": 7}});
        let google = json!({"embeddings": [{"values": vector(1.0)}, {"values": vector(2.0)}]});
        let titan = json!({"embedding": vector(1.0), "inputTextTokenCount": 3});
        let fake = Fake::start([answer(&openai), answer(&google), answer(&titan)]).await;
        let two = || texts(&["one", "two"]);
        let of = |vendor| EmbeddingModel::of(vendor).unwrap();

        let model = OpenAi::new(fake.openai(), Dialect::OPENAI);
        let embedded = model.embed(of(Vendor::OpenAi), two()).unwrap().await.unwrap();
        assert_eq!(embedded, Embedded { vectors: vec![vector(1.0), vector(2.0)], tokens: 7 });

        let embedded = Google::new(fake.google()).embed(of(Vendor::Google), two()).unwrap().await.unwrap();
        assert_eq!(embedded.vectors, [vector(1.0), vector(2.0)]);
        assert!((2..20).contains(&embedded.tokens), "{}", embedded.tokens);

        let model = Bedrock::new(fake.bedrock());
        let embedded = model.embed(of(Vendor::Bedrock), texts(&["one"])).unwrap().await.unwrap();
        assert_eq!(embedded, Embedded { vectors: vec![vector(1.0)], tokens: 3 });

        let bodies: Vec<Value> = fake.requests().into_iter().map(|(_, body)| body).collect();
        let google = |text: &str| {
            json!({"model": "models/gemini-embedding-2",
            "content": {"parts": [{"text": text}]}, "outputDimensionality": 256})
        };
        assert_eq!(
            bodies,
            [
                json!({"model": "text-embedding-3-small", "input": ["one", "two"], "dimensions": 256, "encoding_format": "float"}),
                json!({"requests": [google("one"), google("two")]}),
                json!({"inputText": "one", "dimensions": 256, "normalize": true}),
            ]
        );
        assert_eq!(
            fake.paths(),
            [
                "/v1/embeddings",
                "/v1beta/models/gemini-embedding-2:batchEmbedContents",
                "/model/amazon.titan-embed-text-v2%3A0/invoke",
            ]
        );
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_the_texts_is_refused() {
        let datum = |index: usize, values: Vec<f32>| json!({"index": index, "embedding": values});
        let bad = [
            json!({"data": []}),
            json!({"data": [datum(0, vector(1.0)), datum(0, vector(1.0))]}),
            json!({"data": [datum(0, vector(1.0)), datum(1, vec![1.0])]}),
            json!({"data": [datum(0, vector(1.0)), datum(2, vector(1.0))]}),
            json!({"data": [{"index": 0, "embedding": "AAAA"}, {"index": 1, "embedding": "AAAA"}]}),
            json!({"error": {"message": "no"}}),
            json!("no"),
        ];
        let fake = Fake::start(bad.iter().map(answer)).await;
        let model = OpenAi::new(fake.openai(), Dialect::OPENAI);
        for bad in &bad {
            let asked = model.embed(EmbeddingModel::of(Vendor::OpenAi).unwrap(), texts(&["one", "two"]));
            assert_eq!(asked.unwrap().await, Err(ModelError::Malformed), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_refusal_has_its_reason() {
        let refusal = FakeResponse::Refuse {
            status: 429,
            headers: vec![("retry-after", "7".to_owned())],
            body: String::new(),
        };
        let fake = Fake::start([refusal]).await;
        let model = OpenAi::new(fake.openai(), Dialect::OPENAI);
        let asked = model.embed(EmbeddingModel::of(Vendor::OpenAi).unwrap(), texts(&["one"])).unwrap().await;
        assert!(matches!(asked, Err(ModelError::RateLimited { retry_after: Some(_) })), "{asked:?}");
    }

    #[test]
    fn providers_without_such_a_model_say_so() {
        for vendor in [Vendor::Anthropic, Vendor::Xai, Vendor::Demo, Vendor::Server("own".parse().unwrap())] {
            assert!(EmbeddingModel::of(vendor).is_none(), "{vendor}");
        }
    }
}
