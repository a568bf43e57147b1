use std::time::Duration;

use aws_sdk_eventbridge::error::ProvideErrorMetadata;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use aws_sdk_eventbridge::types::builders::PutEventsRequestEntryBuilder;
use serde_json::{Value, json};

use crate::harness::{BUS, QUEUE, engines, events};

fn entry() -> PutEventsRequestEntryBuilder {
    PutEventsRequestEntry::builder()
        .event_bus_name(BUS)
        .source("lamplighter")
        .detail_type("occurrence.due")
        .detail(r#"{"n": 1}"#)
}

#[tokio::test]
async fn a_matching_event_arrives_in_its_envelope() {
    let engines = engines().await;
    let published = events(&engines)
        .put_events()
        .entries(
            entry().time(aws_smithy_types::DateTime::from_secs(1_700_000_000)).resources("arn:a").build(),
        )
        .entries(entry().detail_type("occurrence.ended").build())
        .entries(entry().source("another").build())
        .entries(entry().event_bus_name("default").build())
        .entries(
            entry().event_bus_name(format!("arn:aws:events:us-east-1:000000000000:event-bus/{BUS}")).build(),
        )
        .send()
        .await
        .unwrap();
    assert_eq!((published.failed_entry_count(), published.entries().len()), (0, 5));

    let received = engines.queue(QUEUE).unwrap().receive(10, Duration::ZERO).await;
    let bodies: Vec<Value> =
        received.iter().map(|message| serde_json::from_str(&message.body).unwrap()).collect();
    assert_eq!(
        bodies[0],
        json!({
            "version": "0",
            "id": published.entries()[0].event_id().unwrap(),
            "detail-type": "occurrence.due",
            "source": "lamplighter",
            "account": "000000000000",
            "time": "2023-11-14T22:13:20Z",
            "region": "us-east-1",
            "resources": ["arn:a"],
            "detail": {"n": 1},
        })
    );
    assert_eq!(bodies[1]["id"], json!(published.entries()[4].event_id().unwrap()));
    assert_eq!(bodies.len(), 2);
    engines.shutdown().await;
}

#[tokio::test]
async fn bad_entries_are_refused_one_by_one() {
    let none = PutEventsRequestEntry::builder().event_bus_name(BUS).build();
    let cases = [
        (entry().source("").build(), "InvalidArgument"),
        (entry().set_source(None).build(), "InvalidArgument"),
        (entry().set_detail_type(None).build(), "InvalidArgument"),
        (entry().set_detail(None).build(), "InvalidArgument"),
        (none, "InvalidArgument"),
        (entry().detail("{").build(), "MalformedDetail"),
        (entry().detail("[1]").build(), "MalformedDetail"),
        (entry().source("aws.s3").build(), "NotAuthorizedForSourceException"),
        (entry().event_bus_name("misspelt").build(), "InvalidArgument"),
    ];
    let engines = engines().await;
    for (refused, code) in cases {
        let answer = events(&engines)
            .put_events()
            .entries(refused.clone())
            .entries(entry().build())
            .send()
            .await
            .unwrap();
        assert_eq!(answer.failed_entry_count(), 1, "{refused:?}");
        assert_eq!(answer.entries()[0].error_code(), Some(code), "{refused:?}");
        assert_eq!(answer.entries()[0].event_id(), None);
        assert!(answer.entries()[1].event_id().is_some(), "the good entry beside {refused:?} was refused");
    }
    assert_eq!(engines.queue(QUEUE).unwrap().depth().visible, 9);
    engines.shutdown().await;
}

#[tokio::test]
async fn a_request_with_too_much_is_refused_whole() {
    let engines = engines().await;
    let with_size = |bytes: usize| {
        let fixed = entry().detail("").build();
        let rest = fixed.source().unwrap().len() + fixed.detail_type().unwrap().len();
        let detail = format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - rest - r#"{"a":""}"#.len()));
        entry().detail(detail).build()
    };
    let cases = [
        ("ten entries", vec![entry().build(); 10], None),
        ("eleven entries", vec![entry().build(); 11], Some("ValidationException")),
        ("no entry", vec![], Some("ValidationException")),
        ("256 KB", vec![with_size(256 * 1024)], None),
        ("256 KB and a byte", vec![with_size(256 * 1024 + 1)], Some("ValidationException")),
    ];
    for (name, entries, expected) in cases {
        let answer = events(&engines).put_events().set_entries(Some(entries)).send().await;
        let code = answer.as_ref().err().and_then(|error| error.code());
        assert_eq!(code, expected, "{name}: {answer:?}");
    }
    assert_eq!(engines.queue(QUEUE).unwrap().depth().visible, 11);
    engines.shutdown().await;
}
