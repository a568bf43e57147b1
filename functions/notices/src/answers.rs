//! The page behind the link of a message. A look changes nothing. Only its buttons answer, pause or correct.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use shared::Cx;
use shared::edge::answer_page;
use shared::edge::problem::Problem;
use shared::flows::answers::answer_links;

shared::routes!(read, answer);

/// Open the page of an answer
///
/// Shows what the message asks, as it is now, with buttons, also to pause or correct the action. It changes nothing. The token of the message is the only credential. It works
/// for seven days, while its channel is on.
#[utoipa::path(
    get, path = "/answers/{token}", tag = "notices", operation_id = "open_answer", security(()),
    params(("token" = String, Path, description = "From the link of a message", max_length = 1_000)),
    responses(
        (status = 200, description = "The page", body = String, content_type = "text/html"),
        (status = 404, description = "A page that says that the link does not work", body = String, content_type = "text/html"),
    ),
)]
async fn read(State(cx): State<Cx>, Path(token): Path<String>) -> Response {
    answer_links::asked(&cx, &token)
        .await
        .map_or_else(|error| answer_page::failed(error, &[]), |asked| answer_page::asking(&asked))
}

/// Answer by the link of a message
///
/// The form of the page. Each answer names what its reader has seen; if that has changed, nothing happens.
#[utoipa::path(
    post, path = "/answers/{token}", tag = "notices", operation_id = "answer_by_link", security(()),
    params(("token" = String, Path, description = "From the link of a message", max_length = 1_000)),
    request_body(content = String, content_type = "application/x-www-form-urlencoded", description = "The fields of a form of the page"),
    responses(
        (status = 200, description = "The page that says what was done", body = String, content_type = "text/html"),
        (status = 400, description = "A page that says which field is wrong", content((String = "text/html"), (Problem = "application/problem+json"))),
        (status = 404, description = "A page that says that the link does not work", body = String, content_type = "text/html"),
        (status = 409, description = "A page that says that the question is another one now", content((String = "text/html"), (Problem = "application/problem+json"))),
    ),
)]
async fn answer(State(cx): State<Cx>, Path(token): Path<String>, body: Bytes) -> Response {
    let answer = answer_links::answer(&cx, &token, || answer_page::said(&body));
    answer.await.map_or_else(|error| answer_page::failed(error, &body), answer_page::answered)
}
