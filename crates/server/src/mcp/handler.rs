//! Handles the requests of one MCP connection by calling the API.

use super::dialect::TASK_TOOL;
use super::error::{self, method_not_found};
use super::run_log::RunLog;
use super::session_metadata::Era;
use super::tool_result::{self, ClientFormat};
use super::{execution_task, legacy_tasks, progress, resources, tools};
use crate::api::{Arguments, Failed, NeedsSession, Operation, Success, to_json};
use crate::edge::Edge;
use crate::http;
use crate::long_results;
use axum::http::request::Parts;
use heapstead_service::{Caller, Connection, EnteredSession, PageRoom, ServiceError};
use heapstead_types::Principal;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;

/// How long clients may cache the list of tools, which does not change while the server runs.
const TOOLS_TTL_MS: u64 = 60 * 60 * 1000;

pub struct Handler {
    edge: Arc<Edge>,
    /// The caller of `initialize`. Since 2026-07-28 each request has its own caller.
    initialized_by: OnceLock<Caller>,
}

impl Handler {
    pub fn new(edge: Arc<Edge>) -> Self {
        Self { edge, initialized_by: OnceLock::new() }
    }

    /// The caller and the session of a request.
    pub fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let caller = match self.initialized_by.get() {
            Some(caller) => caller.clone(),
            None => self.read_caller(context)?,
        };
        let entered = context.extensions.get::<EnteredSession>().cloned();
        Ok(Caller { entered, room: Some(PageRoom::message()), ..caller })
    }

    fn read_caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        match context.extensions.get::<Parts>() {
            Some(parts) => http::caller(&self.edge, parts).map_err(|problem| error::invalid_params(problem.detail())),
            None => Ok(Caller { principal: Principal::local(), session: self.edge.session.clone(), ..Caller::default() }),
        }
    }

    fn tool(&self, name: &str) -> Result<&Operation, ErrorData> {
        let known = || self.edge.api.tools().map(|operation| operation.name).collect::<Vec<_>>().join(", ");
        self.edge
            .api
            .tool(name)
            .ok_or_else(|| error::invalid_params(format!("there is no tool `{}`: the tools are {}", error::truncated_name(name), known())))
    }

    /// The tool with this name or alias.
    fn tool_or_alias(&self, name: &str) -> Option<&Operation> {
        self.edge.api.tool(name).or_else(|| self.edge.api.tool_by_alias(name).map(|(tool, _)| tool))
    }

    /// Whether a call of this name runs code.
    pub fn runs_code(&self, name: &str) -> bool {
        self.tool_or_alias(name).is_some_and(|tool| tool.runs_code)
    }

    pub fn needs_session(&self, name: &str) -> NeedsSession {
        self.tool_or_alias(name).map_or(NeedsSession::Never, |tool| tool.needs_session)
    }

    /// The tool with this name or alias, and its arguments.
    fn resolve_tool(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Arguments,
    ) -> Result<Result<(&Operation, Arguments), ServiceError>, ErrorData> {
        let (Some(service), Some((operation, alias))) = (self.edge.service(), self.edge.api.tool_by_alias(name)) else {
            return Ok(Ok((self.tool(name)?, arguments)));
        };
        let translated = operation.translate(alias, arguments.clone()).inspect_err(|refused| {
            if let Some(call) = service.contexts().begin_call(operation.name, caller, &arguments) {
                call.failed(refused);
            }
        });
        Ok(translated.map(|arguments| (operation, arguments)))
    }

    fn format(&self, context: &RequestContext<RoleServer>) -> ClientFormat {
        ClientFormat::new(self.edge.inline_chars_max, context.protocol_version().as_ref())
    }

    /// A stateless server has no executions and so no resources.
    fn require_state(&self, method: &str) -> Result<(), ErrorData> {
        if self.edge.service().is_some() { Ok(()) } else { Err(method_not_found(method)) }
    }

    /// Whether `initialize` declared the tasks of 2025-11-25 to this client. If not, MCP requires servers to ignore `task` in a call.
    fn declares_tasks(&self, context: &RequestContext<RoleServer>) -> bool {
        self.edge.service().is_some() && context.protocol_version() == Some(ProtocolVersion::V_2025_11_25)
    }

    /// Runs the operation, reports its progress, and returns early if the client cancels the request. An accepted execution continues; a
    /// stateless run ends with the call.
    async fn call(&self, operation: &Operation, caller: Caller, arguments: Arguments, context: &RequestContext<RoleServer>) -> Called {
        let (entered, holder) = (caller.entered_id(), caller.budget_holder());
        let caller = Caller { room: Some(PageRoom::new(self.edge.inline_chars_max)), ..caller };
        let run_log = self.edge.service().and_then(|service| RunLog::requested(context, service, &caller, operation, &arguments));
        let work = async {
            match context.meta.get_progress_token() {
                None => operation.call(caller, arguments).await,
                Some(token) => {
                    let reporter = progress::Reporter::new(context, token, self.edge.service(), &caller);
                    self.call_with_progress(operation, caller, arguments, reporter).await
                }
            }
        };
        tokio::select! {
            biased;
            outcome = work => {
                if let (Some(run_log), Ok(success)) = (&run_log, &outcome) {
                    run_log.send(&success.body).await;
                }
                match outcome {
                    Err(failed) if let Some(refusal) = Era::of(context).protocol_error(&failed.error, entered) => Err(refusal),
                    outcome => {
                        let body = outcome.as_ref().map_or_else(|failed| &failed.body, |success| &success.body);
                        let long = self.edge.long_results.acquire(holder, long_results::bytes_of(body));
                        let _long = long.await.map_err(error::from_service)?;
                        Ok(tool_result::from_outcome(operation, outcome, self.format(context)))
                    }
                }
            },
            () = context.ct.cancelled() => Err(error::request_cancelled("the call was cancelled")),
        }
    }

    async fn call_with_progress(
        &self,
        operation: &Operation,
        caller: Caller,
        arguments: Arguments,
        reporter: progress::Reporter,
    ) -> Result<Success, Failed> {
        let Some(service) = self.edge.service() else { return reporter.during(None, operation.call(caller, arguments)).await };
        if let Some((wait, at_once)) = execution_task::split_wait(operation, &arguments) {
            let begun = operation.call(caller.clone(), at_once).await?;
            let id = begun.body["execution_id"].as_str().unwrap_or_default();
            let running = service.executions().running(&caller, id);
            let record = reporter.during(running, service.execution(&caller, id, wait)).await;
            let record = record.map_err(|error| Failed { body: operation.failure.body(&error.to_string()), error })?;
            return Ok(Success { pending: !record.status.is_terminal(), ..Success::whole(to_json(&record.for_message())) });
        }
        let followed = arguments.get("execution_id").and_then(Value::as_str).filter(|_| operation.follows_execution);
        let running = followed.and_then(|id| service.executions().running(&caller, id));
        reporter.during(running, operation.call(caller, arguments)).await
    }
}

/// For lists that are one page: no response has a cursor, so the client made it up.
fn refuse_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(cursor) => Err(error::from_service(ServiceError::bad_cursor(&cursor))),
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let (Some(service), Some(caller), Ok(runtime)) = (self.edge.service(), self.initialized_by.get(), Handle::try_current()) else {
            return;
        };
        if let (None, Some(connection)) = (&caller.session, caller.connection.clone()) {
            let service = service.clone();
            runtime.spawn(async move { service.contexts().delete_of_connection(&connection).await });
        }
    }
}

type Called = Result<CallToolResult, ErrorData>;

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let stateful = self.edge.service().is_some();
        let builder = ServerCapabilities::builder().enable_tools();
        let capabilities =
            if stateful { builder.enable_resources().enable_resources_subscribe().enable_tasks().build() } else { builder.build() };
        let server = Implementation::new("heapstead", env!("CARGO_PKG_VERSION"))
            .with_title("Heapstead")
            .with_description("Runs JavaScript and keeps its heap between calls");
        InitializeResult::new(capabilities)
            .with_server_info(server)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_instructions(if stateful { include_str!("instructions.md") } else { include_str!("instructions_stateless.md") })
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let mut caller = self.read_caller(&context)?;
        // Over HTTP the connection was created with the transport session.
        caller.connection = Some(context.extensions.get::<Arc<Connection>>().cloned().unwrap_or_default());
        // A second `initialize` on the same connection does not change the caller.
        let _ = self.initialized_by.set(caller);
        context.peer.set_peer_info(request.clone());
        let mut answer = self.negotiate_initialize(&request)?;
        // Versions with `initialize` have other tasks, which `Dialect` declares.
        answer.capabilities.extensions = None;
        Ok(answer)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request)?;
        let mut tools = tools::all(&self.edge.api);
        if self.declares_tasks(&context) {
            for tool in tools.iter_mut().filter(|tool| self.runs_code(&tool.name)) {
                tool.meta.get_or_insert_default().insert(TASK_TOOL.into(), true.into());
            }
        }
        if self.edge.plasm_names {
            tools.extend(self.edge.api.aliases().iter().map(tools::tool));
        }
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(TOOLS_TTL_MS))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.edge.api.tool(name).map(tools::tool)
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let (operation, arguments) = match self.resolve_tool(&caller, &request.name, request.arguments.unwrap_or_default())? {
            Ok(known) => known,
            Err(refused) => return Ok(tool_result::from_error(&refused).into()),
        };
        let era = Era::of(&context);
        let accepts_tasks = era == Era::Modern && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if accepts_tasks
            && let Some(service) = self.edge.service()
            && execution_task::may_be_task(operation, &arguments)
        {
            return match operation.call(caller.clone(), arguments).await {
                Ok(begun) => execution_task::created(service, &caller, &begun.body).await.map(CallToolResponse::Task),
                Err(failed) if let Some(refusal) = era.protocol_error(&failed.error, caller.entered_id()) => Err(refusal),
                refused => Ok(tool_result::from_outcome(operation, refused, self.format(&context)).into()),
            };
        }
        self.call(operation, caller, arguments, &context).await.map(Into::into)
    }

    async fn get_task(&self, request: GetTaskParams, context: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        execution_task::get(&self.edge, &self.caller(&context)?, &request.task_id).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        execution_task::cancel(&self.edge, &self.caller(&context)?, &request.task_id).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.require_state("resources/list")?;
        resources::list(&self.edge, &self.caller(&context)?, request.and_then(|request| request.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.require_state("resources/templates/list")?;
        refuse_cursor(request)?;
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.require_state("resources/read")?;
        resources::read(&self.edge, &self.caller(&context)?, &request.uri).await.map(Into::into)
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Err(method_not_found("prompts/list"))
    }

    async fn complete(&self, _: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        Err(method_not_found("completion/complete"))
    }

    /// Methods that rmcp does not know, and known methods whose parameters it could not parse.
    async fn on_custom_request(&self, request: CustomRequest, context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        let task_request = match Era::of(&context) {
            Era::Modern => None,
            Era::Legacy => legacy_tasks::Request::read(&method, params)?,
        };
        match task_request {
            Some(legacy_tasks::Request::Call { name, arguments }) if !self.declares_tasks(&context) => {
                let call = CallToolRequestParams::new(name).with_arguments(arguments);
                self.call_tool(call, context).await.map(legacy_tasks::without_task)
            }
            Some(_) if !self.declares_tasks(&context) => Err(method_not_found(legacy_tasks::original_name(&method))),
            Some(legacy_tasks::Request::Call { name, arguments }) => {
                let caller = self.caller(&context)?;
                let (operation, arguments) = self.resolve_tool(&caller, &name, arguments)?.map_err(error::from_service)?;
                legacy_tasks::begin(&self.edge, operation, caller, arguments).await
            }
            Some(request) => {
                let caller = self.caller(&context)?;
                tokio::select! {
                    answer = legacy_tasks::answer(&self.edge, &caller, request) => answer,
                    () = context.ct.cancelled() => Err(error::request_cancelled("the request was cancelled")),
                }
            }
            None if WITH_PARAMS.contains(&method.as_str()) => {
                Err(error::invalid_params(format!("the `params` of {method} have the wrong form")))
            }
            None => Err(method_not_found(&method)),
        }
    }
}

/// Methods whose parameters rmcp parses. A request arrives as a custom request if that failed.
const WITH_PARAMS: [&str; 5] = ["tools/call", "resources/read", "tasks/get", "tasks/cancel", "tasks/update"];
