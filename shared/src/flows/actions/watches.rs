//! Looks at the things that an action watches: addresses of the web, and records of the owner.

use base::reach::{Ask, Fetch, FetchError, Fetched};
use domain::actions::Action;
use domain::ids::Owner;
use domain::reach;
use domain::validate::FieldErrors;
use domain::watch::page::MAX_SHOWN;
use domain::watch::state::{Look, Seen};
use domain::watch::{Watch, feed, page};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::blobs::{BlobError, BlobKey};
use crate::context::Cx;
use crate::error::{Error, Result};
use crate::flows::existing;
use crate::flows::projects::documents::{self, DocumentName};

/// The longest validator that is remembered, in bytes.
const MAX_VALIDATOR: usize = 500;

/// Why a look has failed.
#[derive(Debug)]
pub struct NotSeen {
    /// A sentence that names the thing.
    pub text: String,
    /// Whether another look may succeed soon.
    pub retryable: bool,
}

/// Refuses what can't be watched: a host that may not be reached, or a record that does not exist.
///
/// # Errors
/// 400 with every such field.
pub async fn check(cx: &Cx, owner: &Owner, action: &Action) -> Result<()> {
    let mut errors = FieldErrors::default();
    for (at, watch) in action.watches.iter().enumerate() {
        let field = |name: &str| format!("watches[{at}].{name}");
        match watch {
            Watch::Url { url, .. } | Watch::Feed { url } => {
                if let Err(refused) = reach::check(url, &cx.config.reach.policy) {
                    errors.add(field("url"), refused.to_string());
                }
            }
            Watch::Asset { asset_id } => {
                if cx.store.asset(owner, *asset_id).await?.is_none() {
                    errors.add(field("asset_id"), "there is no such asset");
                }
            }
            Watch::ThemeFile { project_id, .. } | Watch::ContextDocument { project_id, .. } => {
                match existing::project(cx, owner, *project_id).await {
                    Ok(_) => {}
                    Err(Error::NotFound(_)) => errors.add(field("project_id"), "there is no such project"),
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(errors.into_result(())?)
}

/// Looks at one thing. `seen` is what was last seen of it.
///
/// # Errors
/// If the table or the bucket does not answer. The inner error is one of the thing itself.
pub async fn look(
    cx: &Cx,
    owner: &Owner,
    watch: &Watch,
    seen: Option<&Seen>,
) -> Result<std::result::Result<Look, NotSeen>> {
    let is_known = |print: &str| seen.is_some_and(|seen| seen.print == print);
    Ok(Ok(match watch {
        Watch::Url { .. } | Watch::Feed { .. } => return look_at_web(cx, watch, seen).await,
        Watch::Asset { asset_id } => {
            let asset = cx.store.asset(owner, *asset_id).await?;
            // A run reads it with its own tool.
            Look::Record { print: asset.map(|asset| asset.value.sha256), shown: String::new() }
        }
        Watch::ThemeFile { project_id, path } => {
            let theme = cx.store.theme(owner, *project_id).await?.value;
            let file = cx.store.theme_file(owner, *project_id, theme.generation, path).await?;
            let print = file.map(|file| file.value.sha256);
            let shown = match &print {
                Some(print) if !is_known(print) => {
                    match cx.blobs.get(&BlobKey::theme_file(owner, *project_id, print)).await {
                        Ok(text) => beginning(String::from_utf8_lossy(&text).into_owned()),
                        // It was deleted meanwhile. The next look finds that.
                        Err(BlobError::Missing { .. }) => String::new(),
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => String::new(),
            };
            Look::Record { print, shown }
        }
        Watch::ContextDocument { project_id, workflow } => {
            let place = DocumentName { project: *project_id, workflow: workflow.clone() };
            let found = documents::find(cx, owner, &place).await?;
            let print = found.as_ref().map(|found| found.version.to_string());
            let is_shown = print.as_ref().is_some_and(|print| !is_known(print));
            let shown = found.filter(|_| is_shown).map(|found| beginning(found.markdown()));
            Look::Record { print, shown: shown.unwrap_or_default() }
        }
    }))
}

fn beginning(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_SHOWN));
    text
}

/// Requests an address. If the last answer had a validator, the server may answer that nothing has changed.
async fn look_at_web(
    cx: &Cx,
    watch: &Watch,
    seen: Option<&Seen>,
) -> Result<std::result::Result<Look, NotSeen>> {
    let name = watch.name();
    let not_seen =
        |text: String, retryable| NotSeen { text: format!("{name} can't be checked: {text}"), retryable };
    let url = watch.url().unwrap_or_default();
    let validators = seen.map(validators).unwrap_or_default();
    let fetched = match request(cx.fetch(), url, validators.clone()).await {
        // The validators must not be sent on without encryption. Without them, the redirect is followed.
        Err(FetchError::Leak { .. }) if !validators.is_empty() => {
            request(cx.fetch(), url, HeaderMap::new()).await
        }
        other => other,
    };
    let Fetched { url: address, status, headers, body } = match fetched {
        Ok(fetched) => fetched,
        Err(error) => {
            let retryable = matches!(error, FetchError::TimedOut { .. } | FetchError::Failed { .. });
            return Ok(Err(not_seen(error.to_string(), retryable)));
        }
    };
    if status == StatusCode::NOT_MODIFIED && !validators.is_empty() {
        return Ok(Ok(Look::Same));
    }
    if !status.is_success() {
        let retryable = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        return Ok(Err(not_seen(format!("the server answered {}", status.as_u16()), retryable)));
    }
    let content_type = text_of(&headers, &header::CONTENT_TYPE).unwrap_or_default();
    let etag = text_of(&headers, &header::ETAG);
    let last_modified = text_of(&headers, &header::LAST_MODIFIED);
    let bytes = body.len();
    let watch = watch.clone();
    let read = move || {
        Ok(match &watch {
            Watch::Feed { .. } => feed::read(&content_type, &body, address.url().as_str())
                .map(|feed| Look::Feed { feed, etag, last_modified })
                .map_err(|error| error.to_string()),
            watch => {
                let pointer = match watch {
                    Watch::Url { pointer, .. } => pointer.as_deref(),
                    _ => None,
                };
                page::read(&content_type, &body, pointer)
                    .map(|page| Look::Page { page, etag, last_modified })
                    .map_err(|error| error.to_string())
            }
        })
    };
    let read = cx.compute.on_body(bytes, read).await?;
    Ok(read.map_err(|text| NotSeen {
        text: format!("{name} can't be checked: the answer {text}"),
        retryable: false,
    }))
}

async fn request(
    fetch: &Fetch,
    url: &str,
    mut headers: HeaderMap,
) -> std::result::Result<Fetched, FetchError> {
    headers.insert(
        header::USER_AGENT,
        HeaderValue::from_static(concat!("Lamplighter/", env!("CARGO_PKG_VERSION"))),
    );
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    fetch.send(Ask { headers, ..Ask::get(url) }).await
}

fn validators(seen: &Seen) -> HeaderMap {
    [(header::IF_NONE_MATCH, &seen.etag), (header::IF_MODIFIED_SINCE, &seen.last_modified)]
        .into_iter()
        .filter_map(|(name, value)| Some((name, HeaderValue::from_str(value.as_deref()?).ok()?)))
        .collect()
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= MAX_VALIDATOR).then(|| value.to_owned())
}
