use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::models::error::TimeoutPhase;
use domain::models::routing::Ask;
use domain::models::{
    Message, ModelId, ModelPrice, ModelTier, Provider, ServerName, StopReason, ToolChoice, Vendor,
};
use futures::stream;
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::{EventStream, Model, Models, ModelsConfig, OwnerModels};
use base::clock::ManualClock;

/// What a model does with a call.
#[derive(Clone, Debug)]
enum Does {
    Answers,
    /// Fails before anything came.
    Fails(ModelError),
    /// Fails after some text.
    Breaks(ModelError),
    /// Never answers.
    Hangs,
}

struct Scripted {
    script: Mutex<VecDeque<Does>>,
    calls: Mutex<usize>,
}

impl Scripted {
    fn new(script: impl IntoIterator<Item = Does>) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.into_iter().collect()), calls: Mutex::default() })
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

impl Model for Scripted {
    fn provider(&self) -> Provider {
        Provider::Anthropic
    }

    fn stream(&self, model: &ModelId, _: &ModelRequest) -> EventStream {
        *self.calls.lock().unwrap() += 1;
        let begins = || Ok(ModelEvent::Started { model: model.clone() });
        let text = || Ok(ModelEvent::TextDelta(format!("{model} speaks. ")));
        let usage = Usage { input_tokens: 7, output_tokens: 3, ..Usage::default() };
        let ends = ModelEvent::Finished { stop: StopReason::EndTurn, assistant_blocks: Vec::new(), usage };
        match self.script.lock().unwrap().pop_front().unwrap_or(Does::Answers) {
            Does::Answers => stream::iter([begins(), text(), Ok(ends)]).boxed(),
            Does::Fails(error) => stream::iter([Err(error)]).boxed(),
            Does::Breaks(error) => stream::iter([begins(), text(), Err(error)]).boxed(),
            Does::Hangs => stream::pending().boxed(),
        }
    }
}

#[derive(Debug, PartialEq)]
enum Why {
    Model(ModelError),
    Stopped,
    TooDear,
}

impl From<ModelError> for Why {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// Records the calls of the gateway.
#[derive(Default)]
struct Notes {
    shown: bool,
    stops: bool,
    /// What is left to reserve, in calls. `None`: as many as wanted.
    pays_for: Option<usize>,
    open: usize,
    settled: Vec<Usage>,
    text: String,
    fallbacks: Vec<String>,
    changes: usize,
}

impl Requester for Notes {
    type Error = Why;

    async fn reserve(&mut self, quote: &Quote<'_>) -> Result<u32, Why> {
        assert_eq!((self.open, quote.max_output_tokens), (0, 1_000), "one reservation at a time");
        if let Some(left) = &mut self.pays_for {
            *left = left.checked_sub(1).ok_or(Why::TooDear)?;
        }
        self.open += 1;
        Ok(500)
    }

    async fn event(&mut self, event: ModelEvent) -> Result<(), Why> {
        if let ModelEvent::TextDelta(text) = event {
            self.text.push_str(&text);
        }
        Ok(())
    }

    async fn look(&mut self) -> Result<(), Why> {
        if self.stops { Err(Why::Stopped) } else { Ok(()) }
    }

    fn has_shown(&self) -> bool {
        self.shown && !self.text.is_empty()
    }

    async fn settle(&mut self, _: &ModelRef, used: Usage, _: i64) -> Result<(), Why> {
        self.open -= 1;
        self.settled.push(used);
        Ok(())
    }

    async fn breaker_changed(&mut self, _: &BreakerChange) {
        self.changes += 1;
    }

    async fn fall_back(&mut self, Fallback { from, to, cause }: &Fallback<'_>) -> Result<(), Why> {
        self.text.clear();
        self.fallbacks.push(format!("{from} to {to}: {cause}"));
        Ok(())
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        system: Vec::new(),
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        messages: vec![Message::user("Hello")],
        max_output_tokens: 1_000,
        cache_last_turn: false,
        ..ModelRequest::default()
    }
}

fn candidate(id: &str, model: &Arc<Scripted>) -> Candidate {
    let model_ref = ModelRef { vendor: Vendor::Server(ServerName::COMPATIBLE), model: ModelId::new(id) };
    Candidate::new(model_ref, ModelPrice::FREE, model.clone() as _)
}

struct Scene {
    models: [Arc<Scripted>; 2],
    candidates: [Candidate; 2],
    time: ManualClock,
}

impl Scene {
    fn new(first: impl IntoIterator<Item = Does>, second: impl IntoIterator<Item = Does>) -> Self {
        let models = [Scripted::new(first), Scripted::new(second)];
        let candidates = [("first", &models[0]), ("second", &models[1])];
        let candidates = candidates.map(|(id, model)| candidate(id, model));
        Self { models, candidates, time: ManualClock::at(Timestamp::UNIX_EPOCH) }
    }

    async fn call(&self, notes: &mut Notes) -> Result<(), Why> {
        call(&self.candidates, &Clock::Manual(self.time.clone()), request(), notes).await
    }

    fn calls(&self) -> (usize, usize) {
        (self.models[0].calls(), self.models[1].calls())
    }
}

const OVERLOADED: ModelError = ModelError::Overloaded { retry_after: None };

#[tokio::test]
async fn another_model_is_called_if_one_fails_before_its_reply_is_shown() {
    let quota = ModelError::Quota;
    for (does, shown, falls_back) in [
        (Does::Answers, true, false),
        (Does::Fails(OVERLOADED), true, true),
        (Does::Fails(ModelError::Timeout(TimeoutPhase::FirstByte)), true, true),
        (Does::Fails(ModelError::Authentication), true, true),
        (Does::Fails(quota.clone()), true, true),
        (Does::Breaks(ModelError::Truncated), false, true),
        (Does::Breaks(ModelError::Truncated), true, false),
        (Does::Fails(ModelError::ContextTooLarge), true, false),
        (Does::Fails(ModelError::Refused), true, false),
        (Does::Fails(ModelError::InvalidRequest { code: None }), true, false),
        (Does::Fails(ModelError::Timeout(TimeoutPhase::Deadline)), true, false),
    ] {
        let scene = Scene::new([does.clone()], []);
        let mut notes = Notes { shown, ..Notes::default() };
        let ended = scene.call(&mut notes).await;
        let answers = matches!(does, Does::Answers);
        assert_eq!(ended.is_ok(), falls_back || answers, "{does:?} {shown}");
        assert_eq!(scene.calls(), (1, usize::from(falls_back)), "{does:?} {shown}");
        assert_eq!((notes.fallbacks.len(), notes.open), (usize::from(falls_back), 0), "{does:?}");
        assert_eq!(notes.settled.len(), 1 + usize::from(falls_back), "each call is settled");
        if falls_back {
            assert_eq!(notes.text, "second speaks. ", "the text of the first is discarded");
        }
    }
    // What may be billed is paid for; what was refused is not.
    for (error, billed) in [(OVERLOADED, false), (ModelError::Truncated, true)] {
        let scene = Scene::new([Does::Fails(error.clone())], []);
        let mut notes = Notes::default();
        scene.call(&mut notes).await.unwrap();
        assert_eq!(notes.settled[0].total_input() > 0, billed, "{error}");
        assert_eq!(notes.settled[0].estimated, billed, "{error}");
    }
}

#[tokio::test]
async fn no_other_model_behind_a_failing_endpoint_is_called() {
    for (error, called) in [
        (ModelError::Authentication, false),
        (ModelError::Quota, false),
        (ModelError::Timeout(TimeoutPhase::FirstByte), false),
        (ModelError::Connection { at: "x".to_owned() }, false),
        (OVERLOADED, true),
        (ModelError::NotFound, true),
        (ModelError::RateLimited { retry_after: None }, true),
    ] {
        let (failing, healthy) = (Scripted::new([Does::Fails(error.clone())]), Scripted::new([]));
        let candidates = [("large", &failing), ("small", &failing), ("other", &healthy)]
            .map(|(id, model)| candidate(id, model));
        let mut notes = Notes::default();
        let clock = Clock::Manual(ManualClock::at(Timestamp::UNIX_EPOCH));
        call(&candidates, &clock, request(), &mut notes).await.unwrap();
        let expected = if called { "small speaks. " } else { "other speaks. " };
        assert_eq!(notes.text, expected, "{error}");
        assert_eq!((failing.calls(), healthy.calls()), if called { (2, 0) } else { (1, 1) }, "{error}");
    }
}

#[tokio::test]
async fn the_last_error_is_the_error() {
    let scene = Scene::new([Does::Fails(OVERLOADED)], [Does::Fails(ModelError::Quota)]);
    let mut notes = Notes::default();
    assert_eq!(scene.call(&mut notes).await, Err(Why::Model(ModelError::Quota)));
    assert_eq!((notes.open, notes.settled.len()), (0, 2));
    assert_eq!(
        call(&[], &Clock::Manual(scene.time.clone()), request(), &mut notes).await,
        Err(Why::Model(ModelError::NotConfigured))
    );
}

#[tokio::test]
async fn a_caller_can_stop_a_call_and_a_fallback() {
    let scene = Scene::new([Does::Hangs], []);
    let mut notes = Notes { stops: true, ..Notes::default() };
    assert_eq!(scene.call(&mut notes).await, Err(Why::Stopped));
    assert_eq!((scene.calls(), notes.open), ((1, 0), 0));
    assert!(notes.settled[0].estimated, "a call that was stopped is paid for");
    // The second call is reserved for, too.
    let scene = Scene::new([Does::Fails(OVERLOADED)], []);
    let mut notes = Notes { pays_for: Some(1), ..Notes::default() };
    assert_eq!(scene.call(&mut notes).await, Err(Why::TooDear));
    assert_eq!((scene.calls(), notes.open), ((1, 0), 0));
}

#[tokio::test]
async fn a_model_whose_breaker_is_open_is_not_called() {
    let limited = ModelError::RateLimited { retry_after: Some(Duration::from_secs(60)) };
    let scene =
        Scene::new([Does::Fails(limited.clone())], [Does::Answers, Does::Answers, Does::Fails(limited)]);
    for at in 0..3 {
        let mut notes = Notes::default();
        let _ = scene.call(&mut notes).await;
        // The requester is told why the preferred model is not called.
        let paused = notes.fallbacks[0].ends_with("is not called until 1970-01-01T00:01:00Z");
        assert_eq!((notes.fallbacks.len(), paused), (1, at > 0), "{:?}", notes.fallbacks);
    }
    assert_eq!(scene.calls(), (1, 3));
    // Both are limited now. The one that may be called first is called all the same.
    scene.time.set(scene.time.now() + jiff::SignedDuration::from_secs(1));
    scene.call(&mut Notes::default()).await.unwrap();
    assert_eq!(scene.calls(), (2, 3));
    // After the pause the first is called again, and is good.
    scene.time.set(scene.time.now() + jiff::SignedDuration::from_secs(60));
    for _ in 0..3 {
        scene.call(&mut Notes::default()).await.unwrap();
    }
    assert_eq!(scene.calls(), (5, 3));
}

/// 2,000 turns of a provider with long outages and a healthy one.
#[tokio::test]
async fn with_a_healthy_fallback_nearly_every_turn_succeeds() {
    let seed = rand::random::<u64>();
    let mut random = StdRng::seed_from_u64(seed);
    let mut is_down = false;
    let errors = [
        OVERLOADED,
        ModelError::Server { status: 500, retry_after: None },
        ModelError::Timeout(TimeoutPhase::FirstByte),
        ModelError::ConnectionLost,
        ModelError::RateLimited { retry_after: Some(Duration::from_secs(20)) },
    ];
    let scene = Scene::new([], []);
    let mut succeeded = 0;
    for _ in 0..2_000 {
        is_down ^= random.random_ratio(1, 50);
        let fails = is_down || random.random_ratio(1, 50);
        let error = errors[random.random_range(0..errors.len())].clone();
        let next = if fails { Does::Fails(error) } else { Does::Answers };
        *scene.models[0].script.lock().unwrap() = [next].into();
        let mut notes = Notes { shown: true, ..Notes::default() };
        succeeded += usize::from(scene.call(&mut notes).await.is_ok());
        assert_eq!(notes.open, 0, "seed {seed}");
        scene.time.set(scene.time.now() + jiff::SignedDuration::from_secs(2));
    }
    let (first, second) = scene.calls();
    assert_eq!(succeeded, 2_000, "seed {seed}: {first} {second}");
    assert!(first > 50 && second > 50, "seed {seed}: {first} {second}");
    assert!(first + second < 2_400, "the breaker spares useless calls; seed {seed}: {first} {second}");
}

#[test]
fn all_configured_providers_are_candidates() {
    let key = |name: &str| Some(name.to_owned());
    let config = ModelsConfig { anthropic_key: key("a"), xai_key: key("x"), ..ModelsConfig::default() };
    for tier in ModelTier::ALL {
        let models = Models::from_config(&config).unwrap();
        let ask = Ask { tier: Some(tier), ..Ask::default() };
        let route = models.route(&ask, &OwnerModels::default(), 0).unwrap();
        let ids: Vec<_> = route.candidates.iter().map(Candidate::provider).collect();
        assert_eq!(ids[..2], [Provider::Anthropic, Provider::OpenAi]);
    }
}
