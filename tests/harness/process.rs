//! Processes that die during a run, and the process that takes the run over.

#![allow(clippy::unwrap_used, reason = "a test's helpers panic as its body does")]

use std::time::Duration;

use domain::ids::RunId;
use domain::runs::form::ReplyForm;
use jiff::SignedDuration;
use reqwest::Method;
use shared::Cx;
use shared::flows::executor::route;
use shared::flows::turn::{self, IfBusy, Said, Topic};
use shared::runtime::function::Invocation;
use shared::store::{DueItem, Once};
use tokio::runtime::Runtime;

use crate::events::{Event, events};
use crate::stage::Stage;
use crate::{Harness, send};

/// A separate process, as far as a test can have one: its tasks are killed together.
pub struct Process {
    pub runtime: Runtime,
    pub cx: Cx,
}

impl Process {
    /// A second process of the platform, with the same table, bucket and queues.
    pub fn start(stage: &Stage) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let shared = &stage.h.platform.cx;
        let cx = Cx::new((*shared.config).clone(), shared.clock.clone()).unwrap();
        let cx = cx.with(|parts| parts.areas = shared.areas);
        Self { runtime, cx }
    }

    /// Begins a turn. Returns its run when the run is stored.
    pub async fn begins(&self, stage: &Stage, topic: Topic, message: &str) -> RunId {
        self.begins_with(stage, topic, message, ReplyForm::default()).await
    }

    /// Begins a turn whose reply has this form.
    pub async fn begins_with(&self, stage: &Stage, topic: Topic, message: &str, form: ReplyForm) -> RunId {
        let (cx, owner) = (self.cx.clone(), stage.owner.clone());
        let said =
            Said { topic, message: message.to_owned(), images: Vec::new(), if_busy: IfBusy::Reject, form };
        let invocation = Invocation { deadline: jiff::Timestamp::MAX };
        let began = self
            .runtime
            .spawn(async move { turn::start(&cx, &owner, &Once::none(), said, invocation).await });
        began.await.unwrap().unwrap().run()
    }

    /// Ends all its tasks where they wait. Returns when none of them can write any more: a test may set its clock right after.
    pub fn kill(self) {
        let ended = std::thread::spawn(move || self.runtime.shutdown_timeout(Duration::from_secs(10)));
        ended.join().expect("ending a runtime does not panic");
    }
}

/// The events of a run that are not void.
pub fn valid(all: Vec<Event>) -> Vec<Event> {
    let mut valid: Vec<Event> = Vec::new();
    for event in all {
        if event.name == "step.restarted" {
            let void_from = event.data["void_from"].as_u64().unwrap();
            valid.retain(|before| before.id < void_from);
        } else {
            valid.push(event);
        }
    }
    valid
}

/// The events of a run so far; if it has not ended, this waits for its end.
pub async fn followed(h: &Harness, run: RunId) -> Vec<Event> {
    let request =
        h.request(Method::GET, &format!("/runs/{run}/events")).header("accept", "text/event-stream");
    events(send(request).await.body.as_str().unwrap())
}

/// Lets the leases end and processes the run, as the sweep and an executor do, until it has ended. Calls that a killed
/// process had already sent may still arrive after the first time.
pub async fn take_over(stage: &Stage, run: RunId) {
    let cx = &stage.h.platform.cx;
    for _ in 0..20 {
        stage.clock.set(stage.clock.now() + SignedDuration::from_secs(61));
        let deadline = cx.clock.now() + SignedDuration::from_mins(15);
        route::process(cx, &DueItem::run(&stage.owner, run), deadline).await.unwrap();
        if cx.store.run(&stage.owner, run).await.unwrap().unwrap().value.state.is_final() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it is never finished: {:#?}", cx.store.run(&stage.owner, run).await.unwrap());
}
