//! `GET /`: shows what runs here and how to try it.

use axum::response::Html;

/// The page of the platform that answers at `url`. If it authenticates, the commands send the key of a variable.
pub fn page(url: &str, authenticates: bool) -> Html<String> {
    let (key, header) = if authenticates {
        (
            "export LAMPLIGHTER_API_KEY=llk_…  # a first key: stop the server and run its command <i>api-key</i>\n",
            " -H \"authorization: Bearer $LAMPLIGHTER_API_KEY\"",
        )
    } else {
        ("", "")
    };
    let functions: String =
        catalog::NAMES.iter().map(|name| format!("<li><code>{name}</code></li>")).collect();
    Html(format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>\
         <title>Lamplighter</title>\
         <style>body{{font:16px/1.5 system-ui;max-width:44rem;margin:3rem auto;padding:0 1rem}}\
         pre{{background:#f3f4f6;padding:1rem;overflow:auto}}</style>\
         <h1>Lamplighter</h1><p>AI agents that keep their appointments. Version {version}, running on this machine.</p>\
         <p>Try it from a shell:</p><pre>{key}curl -s {url}/health\n\
curl -s {url}/agents{header} -H 'content-type: application/json' \\\n  -d '{{\"name\":\"Watch\",\"goal\":\"A research agent that reports every Monday\"}}'\n\
curl -s {url}/agents{header}</pre>\
         <p>The whole surface is described in <a href=/openapi.json>/openapi.json</a>. These functions run:</p>\
         <ul>{functions}</ul></html>",
        version = env!("CARGO_PKG_VERSION"),
    ))
}
