//! The routes of agent-chat.

use shared::Cx;
use utoipa_axum::router::OpenApiRouter;

use crate::{chats, proposals, runs, turn};

pub fn router() -> OpenApiRouter<Cx> {
    OpenApiRouter::default()
        .merge(chats::router())
        .merge(proposals::router())
        .merge(turn::router())
        .merge(runs::router())
}
