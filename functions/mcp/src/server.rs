//! What the protocol asks of a server, answered for one request of one owner.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use domain::ids::Owner;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use shared::flows::documents::Place;
use shared::{Cx, Error};
use tracing::Instrument;

use crate::{prompts, resources, tools};

/// What an assistant is told of this server before anything else.
const INSTRUCTIONS: &str = "\
Lamplighter keeps what you must not forget when your conversation is compacted. Call parse_mode with the user's prompt, \
word for word, before you do anything else: it says which mode you are in (PLAN, ACT, EVAL or AUTO), gives you the context \
document, and names the update_context call you owe before you end. Record decisions, progress and findings with update_context as \
they happen; calls that meet are all kept. Proposals of agents, assets and actions wait for a person's yes.";

/// A request's server.
#[derive(Clone)]
pub struct Server {
    pub cx: Cx,
    pub owner: Owner,
    /// The context document that is meant where a call does not say.
    pub place: Place,
    /// What a route has before it at the client.
    base: String,
    /// The SDK answers in a task of its own, which would not know whose logs it writes.
    span: tracing::Span,
}

impl Server {
    pub fn new(cx: Cx, owner: Owner, place: Place) -> Self {
        let base = shared::http::path_for_client("");
        Self { cx, owner, place, base, span: tracing::Span::current() }
    }

    /// A route's path as the client has to write it.
    pub fn path(&self, route: &str) -> String {
        format!("{}{route}", self.base)
    }

    /// Answers one HTTP request.
    pub async fn answer(self, request: Request) -> Response {
        // Hosts and origins are checked before: what is allowed depends on the installation.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(None)
            .with_max_request_body_bytes(shared::http::MAX_BODY_BYTES)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(self.clone()), sessions, config);
        service.handle(request).await.map(Body::new)
    }
}

/// What went wrong, for the log and for the caller.
pub fn told(error: Error) -> String {
    if error.status().is_server_error() {
        tracing::error!(code = error.code(), cause = %error.causes(), "a call over MCP failed");
    }
    match error {
        Error::Invalid(errors) => errors.to_string(),
        other => other.detail(),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let name = Implementation::new("lamplighter", env!("CARGO_PKG_VERSION")).with_title("Lamplighter");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().map(|tool| tool.about.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).map(|tool| tool.about.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let span = tracing::info_span!(parent: &self.span, "tool", tool = &*tool.about.name);
        let result = (tool.call)(self.clone(), request.arguments.unwrap_or_default()).instrument(span).await;
        Ok(match result.and_then(tools::bounded) {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(tools::Failure(text)) => CallToolResult::error(vec![ContentBlock::text(text)]).into(),
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, request.and_then(|page| page.cursor)).instrument(self.span.clone()).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).instrument(self.span.clone()).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::all()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request.name, request.arguments.as_ref()).map(Into::into)
    }
}
