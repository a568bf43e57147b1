//! The readers of this crate take linear time and memory, whatever the text is: archives, and the frames and events of a provider's
//! answer. `shared/theme-scripts/tests/growth` does the same for the readers of `theme` and `domain`.
//!
//! The test runs itself again in a process of its own, because other tests at the same time would count, too.

#[path = "../theme-scripts/tests/growth/measure.rs"]
mod measure;

use bytes::Bytes;
use domain::models::{ModelId, ModelRequest};
use futures::stream::{self, StreamExt};
use models::call::{Decode, Framing, frames};
use models::{anthropic, bedrock, google, openai, responses};

use crate::flows::archive::{self, ArchiveLimits};
use measure::Shape;

/// Set in the process that measures.
const ALONE: &str = "GROWTH_TEST";
const NAME: &str = "growth_tests::hostile_texts_take_linear_time_and_memory";

type Read = Box<dyn Fn(&str)>;
type Text = (&'static str, &'static str, &'static str);

fn unpack(archive: &[u8]) {
    let limits = ArchiveLimits {
        entries: 100_000,
        entry_bytes: 1 << 26,
        total_bytes: 1 << 26,
        path_bytes: 256,
        ratio: None,
    };
    drop(archive::read(archive, &limits));
}

/// An answer that arrives in small pieces.
fn framed(framing: Framing) -> Read {
    Box::new(move |text| {
        let pieces: Vec<_> =
            text.as_bytes().chunks(61).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let all = frames(framing, stream::iter(pieces)).for_each(|_| std::future::ready(()));
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(all);
    })
}

/// An answer, an event a line.
fn decoded<D: Decode>(decoder: D) -> Read {
    Box::new(move |text| {
        let mut decoder = decoder.clone();
        let all = text.lines().try_for_each(|line| decoder.data(line).map(drop));
        drop(all.and_then(|()| decoder.end()));
    })
}

const TEXTS: &[Text] =
    &[("", "a", ""), ("", "a", "b"), ("", "ab", ""), ("", "a/", "c"), ("", "\n", ""), ("", "é", "")];
const FRAMES: &[Text] = &[
    ("", "data: a\n", ""),
    ("", "data: a\n\n", ""),
    ("", "data:", ""),
    ("", "data: ", "\n\n"),
    ("", "a", ""),
    ("", ":", "\n\n"),
    ("", ":\n", ""),
    ("", "\n", ""),
    ("", "\r", ""),
    ("", "\r\n", ""),
    ("", "id: §\n", ""),
    ("", "event: a\n", "\n"),
    ("", "retry: 9\n", ""),
    ("data: ", "a", "\n\n"),
    ("", "data\n", "\n"),
    ("", "\u{feff}", ""),
];
const MESSAGES: &[Text] =
    &[("", "\0", ""), ("", "\0\0\0\u{10}", ""), ("\0\u{7f}\u{7f}\u{7f}\0\0\0\0", "a", ""), ("", "a", "")];
const ARCHIVES: &[Text] = &[
    ("", "PK\u{5}\u{6}", ""),
    ("", "PK\u{5}\u{6}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", ""),
    ("", "PK\u{1}\u{2}", ""),
    ("", "PK\u{3}\u{4}", ""),
    ("", "PK\u{6}\u{7}", "PK\u{5}\u{6}\0\0\0\0\u{1}\0\u{1}\0\0\0\0\0\0\0\0\0\0\0"),
    ("", "a", "PK\u{5}\u{6}\0\0\0\0\u{7f}\u{7f}\u{7f}\u{7f}\0\0\0\0\0\0\0\0\0\0"),
    ("", "\0", ""),
];

const ANTHROPIC: &[Text] = &[
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}",
        "\n{\"type\":\"message_stop\"}",
    ),
    (
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"a","input":{}}}"#,
        "\n{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"[\"}}",
        "\n{\"type\":\"content_block_stop\",\"index\":0}\n{\"type\":\"message_stop\"}",
    ),
    (
        "",
        "{\"type\":\"content_block_start\",\"index\":§,\"content_block\":{\"type\":\"tool_use\",\"id\":\"§\",\"name\":\"a\",\"input\":{}}}\n",
        "{\"type\":\"message_stop\"}",
    ),
    (
        "",
        "{\"type\":\"content_block_start\",\"index\":§,\"content_block\":{\"type\":\"server_tool_use\",\"name\":\"web_search\"}}\n",
        "{\"type\":\"message_stop\"}",
    ),
    ("", "{\"type\":\"message_delta\",\"usage\":{\"output_tokens\":§}}\n", ""),
];
const OPENAI: &[Text] = &[
    ("", "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n", "[DONE]"),
    (
        "",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"a\",\"arguments\":\"[\"}}]}}]}\n",
        "{\"choices\":[{\"finish_reason\":\"stop\"}]}\n[DONE]",
    ),
    (
        "",
        "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":§,\"function\":{\"arguments\":\"\"}}]}}]}\n",
        "{\"choices\":[{\"finish_reason\":\"stop\"}]}\n[DONE]",
    ),
    ("", "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"§\"}]}}]}\n", "[DONE]"),
    ("{\"choices\":[{\"delta\":{\"tool_calls\":[{}", ",{\"index\":§}", "]}}]}\n[DONE]"),
];
const RESPONSES: &[Text] = &[
    ("", "{\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n", "{\"type\":\"response.completed\"}"),
    (
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","name":"a"}}"#,
        "\n{\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"[\"}",
        "\n{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\"}}",
    ),
    (
        "",
        "{\"type\":\"response.output_item.added\",\"output_index\":§,\"item\":{\"type\":\"web_search_call\"}}\n",
        "{\"type\":\"response.completed\"}",
    ),
    (
        "",
        "{\"type\":\"response.output_item.done\",\"output_index\":§,\"item\":{\"type\":\"code_interpreter_call\",\"container_id\":\"§\"}}\n",
        "{\"type\":\"response.completed\"}",
    ),
];
const GOOGLE: &[Text] = &[
    (
        "",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n",
        "{\"candidates\":[{\"finishReason\":\"STOP\"}]}",
    ),
    (
        "",
        "{\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"a\"},\"thoughtSignature\":\"§\"}]}}]}\n",
        "{\"candidates\":[{\"finishReason\":\"STOP\"}]}",
    ),
    (
        "{\"candidates\":[{\"content\":{\"parts\":[{}",
        ",{\"executableCode\":{\"code\":\"§\"}},{\"text\":\"a\"}",
        "]},\"finishReason\":\"STOP\"}]}",
    ),
];
const BEDROCK: &[Text] = &[
    (
        "",
        "{\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"text\":\"a\"}}}\n",
        "{\"messageStop\":{\"stopReason\":\"end_turn\"}}\n{\"metadata\":{\"usage\":{\"inputTokens\":1}}}",
    ),
    (
        r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"a","name":"a"}}}}"#,
        "\n{\"contentBlockDelta\":{\"contentBlockIndex\":0,\"delta\":{\"toolUse\":{\"input\":\"[\"}}}}",
        "\n{\"contentBlockStop\":{\"contentBlockIndex\":0}}\n{\"messageStop\":{\"stopReason\":\"tool_use\"}}",
    ),
    (
        "",
        "{\"contentBlockDelta\":{\"contentBlockIndex\":§,\"delta\":{\"reasoningContent\":{\"redactedContent\":\"aaaa\"}}}}\n",
        "{\"messageStop\":{\"stopReason\":\"end_turn\"}}",
    ),
    (
        "{\"messageStop\":{\"stopReason\":\"end_turn\"}}",
        "\n{\"metadata\":{\"usage\":{\"inputTokens\":1}}}",
        "",
    ),
];

fn readers() -> Vec<(&'static str, usize, &'static [Text], Read)> {
    let kib = 900;
    let mut all: Vec<(&'static str, usize, &'static [Text], Read)> = vec![
        ("server-sent events", 64 * kib, FRAMES, framed(Framing::ServerSentEvents)),
        ("event stream", 64 * kib, MESSAGES, framed(Framing::EventStream)),
        ("archive", 64 * kib, ARCHIVES, Box::new(|text: &str| unpack(text.as_bytes()))),
        (
            "archive of many files",
            64 * kib,
            &[("", "a", "")],
            Box::new(|text: &str| {
                let files = (0..text.len() / 64).map(|number| (format!("a/{number}"), "a"));
                unpack(&archive::write(files).unwrap());
            }),
        ),
        (
            "archive of one file",
            64 * kib,
            TEXTS,
            Box::new(|text: &str| unpack(&archive::write([("a", text)]).unwrap())),
        ),
    ];
    let (model, request) = (ModelId::new("a"), ModelRequest::default());
    all.extend([
        ("anthropic", 64 * kib, ANTHROPIC, decoded(anthropic::Decoder::default())),
        ("openai", 64 * kib, OPENAI, decoded(openai::Decoder::new(&model, &request))),
        (
            "responses",
            64 * kib,
            RESPONSES,
            decoded(responses::Decoder::new(&model, responses::Dialect::OpenAi)),
        ),
        ("google", 64 * kib, GOOGLE, decoded(google::Decoder::new(&model, &request))),
        ("bedrock", 64 * kib, BEDROCK, decoded(bedrock::Decoder::new(&model))),
    ]);
    all
}

#[test]
fn hostile_texts_take_linear_time_and_memory() {
    if std::env::var_os(ALONE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let done = again.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        return;
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for (reader, bytes, texts, read) in readers() {
        for &(before, unit, after) in texts {
            // Caches are filled before.
            if count == 0 {
                read("a");
            }
            count += 1;
            let shape = Shape { reader: reader.to_owned(), before, unit, after };
            wrong.extend(measure::check(&shape, bytes, &read).err());
        }
    }
    assert!(count >= 40, "only {count} shapes");
    assert!(wrong.is_empty(), "{} of {count} grow too fast:\n{}", wrong.len(), wrong.join("\n"));
}
