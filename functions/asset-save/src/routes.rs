//! The routes of assets.

use axum::extract::State;
use axum::http::StatusCode;
use domain::assets::{AssetPatch, AssetType, AssetVersion};
use domain::ids::{AgentId, AssetId};
use serde::Deserialize;
use shared::edge::extract::{Caller, Id, IfMatch, Json, Once, Query};
use shared::edge::respond::{Created, Tagged};
use shared::flows::agents::assets::{self, AssetView, SaveAsset};
use shared::flows::existing;
use shared::flows::page::{Page, PageQuery};
use shared::{Cx, Result};
use utoipa::IntoParams;

use crate::download::Download;

shared::routes!(save, list_of_agent, list, read, change, delete, content, versions);

/// Save an asset
///
/// Send the fields, or `proposal_id` and the fields that differ from the proposal. A proposal can be saved once.
#[utoipa::path(
    post, path = "/agents/{agent_id}/assets", tag = "assets", operation_id = "save_asset",
    params(AgentId),
    responses((status = 201, body = AssetView)),
)]
async fn save(
    State(cx): State<Cx>,
    caller: Caller,
    once: Once,
    Id(agent): Id<AgentId>,
    Json(input): Json<SaveAsset>,
) -> Result<Created<AssetView>> {
    let asset = assets::save(&cx, &caller.owner, &once, agent, input).await?;
    Ok(Created { location: format!("/assets/{}", asset.asset.asset_id), version: asset.version, body: asset })
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct TypeFilter {
    /// Only assets of this type.
    asset_type: Option<AssetType>,
}

/// List an agent's assets, newest first
///
/// Without their contents. With a filter, a page may be short although there are more.
#[utoipa::path(
    get, path = "/agents/{agent_id}/assets", tag = "assets", operation_id = "list_agent_assets",
    params(AgentId, PageQuery, TypeFilter),
    responses((status = 200, body = Page<AssetView>)),
)]
async fn list_of_agent(
    State(cx): State<Cx>,
    caller: Caller,
    Id(agent): Id<AgentId>,
    Query(filter): Query<TypeFilter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<AssetView>>> {
    existing::agent(&cx, &caller.owner, agent).await?;
    assets::list(&cx, &caller.owner, Some(agent), filter.asset_type, &page).await.map(axum::Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Filter {
    /// Only this agent's assets.
    agent_id: Option<AgentId>,
    /// Only assets of this type.
    asset_type: Option<AssetType>,
}

/// List assets, newest first
///
/// All assets, or those of one agent or type, without their contents. With a filter, a page may be short although there
/// are more.
#[utoipa::path(
    get, path = "/assets", tag = "assets", operation_id = "list_assets",
    params(PageQuery, Filter),
    responses((status = 200, body = Page<AssetView>)),
)]
async fn list(
    State(cx): State<Cx>,
    caller: Caller,
    Query(filter): Query<Filter>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<AssetView>>> {
    assets::list(&cx, &caller.owner, filter.agent_id, filter.asset_type, &page).await.map(axum::Json)
}

/// Read an asset
///
/// Without its content, which is at `/assets/{asset_id}/content`.
#[utoipa::path(
    get, path = "/assets/{asset_id}", tag = "assets", operation_id = "read_asset",
    params(AssetId),
    responses((status = 200, body = AssetView)),
)]
async fn read(State(cx): State<Cx>, caller: Caller, Id(id): Id<AssetId>) -> Result<Tagged<AssetView>> {
    let asset = assets::load(&cx, &caller.owner, id).await?;
    Ok(Tagged { version: asset.version, body: asset.into() })
}

/// Change an asset
///
/// New content makes a new version. Old versions stay readable.
#[utoipa::path(
    patch, path = "/assets/{asset_id}", tag = "assets", operation_id = "change_asset",
    params(AssetId, IfMatch),
    responses((status = 200, body = AssetView)),
)]
async fn change(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AssetId>,
    if_match: Option<IfMatch>,
    Json(patch): Json<AssetPatch>,
) -> Result<Tagged<AssetView>> {
    let asset = assets::change(&cx, &caller.owner, id, if_match, patch).await?;
    Ok(Tagged { version: asset.version, body: asset })
}

/// Delete an asset and all its versions
///
/// This can't be undone.
#[utoipa::path(
    delete, path = "/assets/{asset_id}", tag = "assets", operation_id = "delete_asset",
    params(AssetId),
    responses((status = 204, description = "It was deleted")),
)]
async fn delete(State(cx): State<Cx>, caller: Caller, Id(id): Id<AssetId>) -> Result<StatusCode> {
    assets::delete(&cx, &caller.owner, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// A `content_version`. Default: the newest.
    version: Option<u64>,
}

/// Read the content of an asset
///
/// As text: Markdown for a document, plain text for everything else.
#[utoipa::path(
    get, path = "/assets/{asset_id}/content", tag = "assets", operation_id = "read_asset_content",
    params(AssetId, Which),
    responses(
        (status = 200, content((String = "text/markdown"), (String = "text/plain")),
            headers(("x-content-version" = u64, description = "The version of the content"))),
    ),
)]
async fn content(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AssetId>,
    Query(which): Query<Which>,
) -> Result<Download> {
    assets::content(&cx, &caller.owner, id, which.version).await.map(Download)
}

/// List the versions of an asset's content, newest first
///
/// Read a version at `/assets/{asset_id}/content?version=`.
#[utoipa::path(
    get, path = "/assets/{asset_id}/versions", tag = "assets", operation_id = "list_asset_versions",
    params(AssetId, PageQuery),
    responses((status = 200, body = Page<AssetVersion>)),
)]
async fn versions(
    State(cx): State<Cx>,
    caller: Caller,
    Id(id): Id<AssetId>,
    Query(page): Query<PageQuery>,
) -> Result<axum::Json<Page<AssetVersion>>> {
    assets::versions(&cx, &caller.owner, id, &page).await.map(axum::Json)
}
