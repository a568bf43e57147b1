//! The protocol's server: it answers one request of one owner.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use domain::accounts::scopes::Scope;
use domain::text::quoting::short_line;
use domain::tools::context::{PARSE_MODE, READ_CONTEXT};
use domain::tools::memory::{REMEMBER_CARD, SEARCH_MEMORY};
use domain::tools::theme_tools::{APPLY_CHANGES, EDIT_LINES};
use domain::tools::{Decision, Effect, THEME, ToolDef, ToolSets, theme_tools};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use shared::edge::extract::{Caller, Once};
use shared::flows::projects::documents::DocumentName;
use shared::{Cx, Error};
use tracing::Instrument;

use crate::client::Client;
use crate::{params, prompts, resources, tools};

/// What an assistant is told about this server before anything else.
const PURPOSE: &str = "Lamplighter keeps what you must not forget when your conversation is compacted.";

/// For clients that can change the context document.
const MODES: &str = "\
Before you do anything else, call parse_mode with the user's prompt, word for word. It returns the mode (PLAN, ACT, EVAL or AUTO), \
the context document, and the update_context call that you must make before you end. Call update_context whenever you decide, \
finish or find something; concurrent calls are all kept. A project has one context document for each workflow; list_workflows \
lists them.";

/// For clients that can only read it.
const READING: &str =
    "Before you do anything else, call read_context: it returns what was planned, done and found.";

/// For clients that can edit the theme.
const EDITING: &str = "\
Your edits of the theme collect in a change set: nobody else sees them, and a person applies them. Read a file before you edit it, \
and give the version that the answer named. At the end, call show_changes and tell the user what has changed.";

const PROPOSALS: &str = "Agents, assets and actions that you propose wait until a person accepts them.";

const MEMORY: &str = "search_memory finds what was said and learned in earlier sessions; remember_card keeps what you have finished.";

/// For clients that can only search.
const SEARCHING: &str = "search_memory finds what was said and learned in earlier sessions.";

/// The server of one request.
#[derive(Clone)]
pub struct Server {
    client: Client,
    /// The SDK answers in a task of its own. The span connects its log lines with the request.
    span: tracing::Span,
}

impl Server {
    pub fn new(cx: Cx, caller: Caller, once: Once, place: DocumentName, sets: ToolSets) -> Self {
        Self { client: Client::new(cx, caller, once, place, sets), span: tracing::Span::current() }
    }

    /// Whether the client is offered this tool.
    fn offers(&self, tool: &ToolDef) -> bool {
        self.client.sets.has(tool) && self.client.scope.includes(Scope::of_tool(tool.effect))
    }

    /// The instructions name only tools that the client is offered.
    fn instructions(&self) -> String {
        let mut parts = vec![PURPOSE];
        if self.offers(&PARSE_MODE) {
            parts.push(MODES);
        } else if self.offers(&READ_CONTEXT) {
            parts.push(READING);
        }
        let mut offered = tools::of(self.client.scope, &self.client.sets);
        if offered.any(|tool| tool.effect == Effect::Propose && !THEME.contains(&tool)) {
            parts.push(PROPOSALS);
        }
        if self.offers(&EDIT_LINES) {
            parts.push(EDITING);
        }
        if self.offers(&REMEMBER_CARD) {
            parts.push(MEMORY);
        } else if self.offers(&SEARCH_MEMORY) {
            parts.push(SEARCHING);
        }
        parts.join(" ")
    }

    /// Answers one HTTP request.
    pub async fn answer(self, request: Request) -> Response {
        // Hosts and origins are already checked: which ones are allowed depends on the installation.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_sse_keep_alive(None)
            .with_max_request_body_bytes(shared::request::limits::MAX_BODY_BYTES)
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let sessions = Arc::new(NeverSessionManager::default());
        let service = StreamableHttpService::new(move || Ok(self.clone()), sessions, config);
        service.handle(request).await.map(Body::new)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let name = Implementation::new("lamplighter", env!("CARGO_PKG_VERSION")).with_title("Lamplighter");
        ServerConfig::new(capabilities).with_server_info(name).with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = tools::list(self.client.scope, &self.client.sets);
        let is_of_apply = |tool: &Tool| tool.name == APPLY_CHANGES.name;
        if tools.iter().any(is_of_apply) && !tools::may_apply(&self.client).await {
            tools.retain(|tool| !is_of_apply(tool));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        match tools::decision(name) {
            Decision::Allowed(tool) if self.client.sets.has(tool) => Some(tools::described(tool)),
            _ => None,
        }
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = match tools::decision(&request.name) {
            Decision::Allowed(tool) if !self.client.sets.has(tool) => {
                let text = format!(
                    "the tool `{}` is not in the tool sets of the server's address: tools={}",
                    tool.name, self.client.sets
                );
                return Err(ErrorData::invalid_params(text, None));
            }
            Decision::Allowed(tool) => tool,
            Decision::NeedsPerson(reason) => {
                let text =
                    format!("The call was not made: {reason}, and a person cannot approve it over MCP.");
                return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
            }
            Decision::Refused(_) => {
                let told = format!("there is no tool `{}`", short_line(&request.name, 100));
                // A model reads the result of a call. Many clients keep an error of the protocol to themselves.
                if let Some(instead) = theme_tools::instead(&request.name)
                    .filter(|_| self.client.sets.has(&theme_tools::READ_FILE))
                {
                    let text = format!("{told}: {instead}");
                    return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
                }
                return Err(ErrorData::invalid_params(told, None));
            }
        };
        let (needed, held) = (Scope::of_tool(tool.effect), self.client.scope);
        if !held.includes(needed) {
            let text = format!("scope_missing: {}", Error::ScopeMissing { needed, held });
            return Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into());
        }
        let span = tracing::info_span!(parent: &self.span, "tool", tool = tool.name);
        let arguments = request.arguments.unwrap_or_default();
        let result = tools::call(self.client.clone(), tool, arguments).instrument(span).await;
        Ok(match result {
            Ok(Value::String(text)) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
            Ok(value) => CallToolResult::structured(value).into(),
            Err(tools::Failure(text)) => CallToolResult::error(vec![ContentBlock::text(text)]).into(),
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.client, request.and_then(|page| page.cursor))
            .instrument(self.span.clone())
            .await
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
        resources::read(&self.client, &request.uri).instrument(self.span.clone()).await.map(Into::into)
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        // The prompts tell the assistant to call parse_mode.
        let prompts = if self.offers(&PARSE_MODE) { prompts::all() } else { Vec::new() };
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if !self.offers(&PARSE_MODE) {
            let text = format!("there is no prompt `{}`: this client may not call parse_mode", request.name);
            return Err(ErrorData::invalid_params(text, None));
        }
        prompts::get(&request.name, request.arguments.as_ref()).map(Into::into)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(params::unread(request.method, request.params))
    }
}
