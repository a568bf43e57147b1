//! The routes of agent-chat.

use shared::Cx;
use utoipa_axum::router::OpenApiRouter;

use crate::{chats, proposals};

pub fn router() -> OpenApiRouter<Cx> {
    OpenApiRouter::default().merge(chats::router()).merge(proposals::router())
}
