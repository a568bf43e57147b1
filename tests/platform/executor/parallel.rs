//! One executor that drives several runs at once.

use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage};
use domain::actions::{ActionState, OccurrenceState};
use serde_json::{Value, json};
use shared::runtime::function::{Invocation, Trigger};
use tests::model::{Says, ScriptedModel};
use tests::stage::Stage;

/// The event that SQS gives to an executor.
fn event(bodies: impl IntoIterator<Item = String>) -> SqsEvent {
    let mut event = SqsEvent::default();
    for (n, body) in bodies.into_iter().enumerate() {
        let mut message = SqsMessage::default();
        message.message_id = Some(format!("m{n}"));
        message.body = Some(body);
        event.records.push(message);
    }
    event
}

/// Nine runs wait for their model at the same time, although the tenth message of their batch can't be read.
#[tokio::test]
async fn an_executor_drives_its_runs_at_once() {
    const RUNS: usize = 9;
    let model = ScriptedModel::held(|_: &[Value]| Says::Text("Lamp oil is dear.".into())).await;
    let stage = Stage::with(model.config("scripted")).await;
    let mut ids = Vec::new();
    for _ in 0..RUNS {
        let id = stage.approved(json!({})).await;
        stage.h.post(&format!("/actions/{id}/run"), json!({})).await.expect(202);
        ids.push(id);
    }
    let queue = stage.h.platform.engines().queue("scheduled-executor").unwrap();
    let mut bodies = Vec::new();
    while bodies.len() < RUNS {
        let received = queue.receive(shared::runtime::lambda::BATCH, Duration::from_secs(10)).await;
        bodies.extend(received.iter().map(|message| message.body.to_string()));
    }
    bodies.push("not an item".to_owned());

    let function = catalog::ALL.iter().find(|function| function.name == "scheduled-executor").unwrap();
    let Trigger::Queue { handler } = function.trigger else { panic!("a queue wakes it") };
    let invocation = Invocation { deadline: stage.clock.now() + jiff::SignedDuration::from_mins(15) };
    let cx = stage.h.platform.cx.clone();
    let batch = tokio::spawn(shared::runtime::lambda::batch(cx, handler, invocation, event(bodies)));
    // All runs are under way before the first has its answer.
    model.asked_times(RUNS).await;
    // A run asks once more after its output was saved.
    model.allow(2 * RUNS);
    let response = batch.await.unwrap();
    let failed: Vec<String> =
        response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect();
    assert_eq!(failed, [format!("m{RUNS}")]);
    for id in ids {
        let [occurrence] = stage.occurrences(id).await.try_into().expect("one occurrence");
        assert_eq!(occurrence.state, OccurrenceState::Succeeded, "{occurrence:?}");
        assert_eq!(stage.action(id).await.state, ActionState::Completed);
    }
}
