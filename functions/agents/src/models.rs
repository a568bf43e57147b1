//! The routes of models.

use axum::extract::State;
use shared::edge::extract::{Caller, Json, Query};
use shared::flows::accounts::models::{self, AskedModels, ChooseModels, ModelsView};
use shared::{Cx, Result};

shared::routes!(list, choose);

/// Read which models would be called, and why
///
/// `choices` has the models that a call would use now. `models` lists all known models with their prices.
#[utoipa::path(
    get, path = "/models", tag = "models", operation_id = "list_models",
    params(AskedModels),
    responses((status = 200, body = ModelsView)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(asked): Query<AskedModels>,
) -> Result<axum::Json<ModelsView>> {
    models::view(&cx, &caller.owner, asked).await.map(axum::Json)
}

/// Choose models
///
/// Replaces what was chosen before. An empty object goes back to the defaults. Runs in progress use the choice from their next step
/// on. A model can be chosen if its provider has a key and its price is known.
#[utoipa::path(
    put, path = "/models/settings", tag = "models", operation_id = "choose_models",
    responses((status = 200, body = ModelsView)),
)]
async fn choose(
    State(cx): State<Cx>,
    caller: Caller,
    Json(input): Json<ChooseModels>,
) -> Result<axum::Json<ModelsView>> {
    models::choose(&cx, &caller.owner, input).await.map(axum::Json)
}
