//! Resolves and authorises the session in the `_meta` of a request once, before `Handler` handles the request, and adds the session's new head
//! to the result.
#![expect(deprecated, reason = "the versions before 2026-07-28 have logging")]

use super::dialect::TASK_CALL;
use super::error::{self, from_service, method_not_found};
use super::handler::Handler;
use super::listen::{self, Forwarder};
use super::resources;
use super::result_metadata::ResultMetadata;
use super::session_metadata::{EXTENSION, Era};
use super::session_methods::{self as methods, Method, Refresh};
use crate::api::NeedsSession;
use crate::edge::Edge;
use heapstead_service::{Caller, EnteredSession, Scope, Service, Topic};
use heapstead_store::records::{Head, OpenedSession};
use heapstead_types::ErrorCode;
use rmcp::ErrorData;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest, CustomResult,
    DiscoverResult, GetTaskParams, GetTaskResult, InitializeRequestParams, InitializeResult, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

pub struct SessionHandler {
    edge: Arc<Edge>,
    handler: Handler,
    /// Started by the first subscription of the connection.
    forwarder: Mutex<Option<Forwarder>>,
    /// Cancelled when the client has disconnected.
    disconnected: CancellationToken,
}

/// The session of a request.
struct RequestSession {
    era: Era,
    entered: Option<(Caller, EnteredSession, Option<Head>)>,
}

impl SessionHandler {
    pub fn new(edge: Arc<Edge>) -> Self {
        Self { handler: Handler::new(edge.clone()), edge, forwarder: Mutex::default(), disconnected: CancellationToken::new() }
    }

    /// With a token that is cancelled when the client disconnects.
    pub fn with_disconnect_token(self, disconnected: CancellationToken) -> Self {
        Self { disconnected, ..self }
    }

    /// Resolves the session and stores it in the context for `Handler`.
    async fn enter_session(&self, context: &mut RequestContext<RoleServer>, refresh: Refresh) -> Result<RequestSession, ErrorData> {
        let request_session = self.resolve_session(context, refresh).await?;
        if let Some((_, entered, _)) = &request_session.entered {
            context.extensions.insert(entered.clone());
        }
        Ok(request_session)
    }

    /// Resolves and authorises the session that a request names.
    async fn resolve_session(&self, context: &RequestContext<RoleServer>, refresh: Refresh) -> Result<RequestSession, ErrorData> {
        let era = Era::of(context);
        let Some(named) = era.read(&context.meta)? else { return Ok(RequestSession { era, entered: None }) };
        let Some(service) = self.edge.service() else {
            return Err(error::invalid_params("this server is stateless and has no sessions: remove the session from `_meta`"));
        };
        let mut caller = self.handler.caller(context)?;
        let entered = methods::find(service, &caller, &named.id, era, refresh).await?;
        let known_head = match &named.state {
            Some(state) => Some(service.sessions().open_state(entered.id(), state).await.map_err(from_service)?),
            None => None,
        };
        caller.entered = Some(entered.clone());
        Ok(RequestSession { era, entered: Some((caller, entered, known_head)) })
    }

    /// Adds the metadata of the session to a result if the head has moved.
    async fn add_metadata<R: ResultMetadata>(&self, request_session: RequestSession, mut result: R) -> R {
        let (Some((caller, entered, known_head)), Some(service)) = (request_session.entered, self.edge.service()) else { return result };
        // If the session has ended meanwhile, the next request fails.
        let Some(now) = service.sessions().current(&caller, &entered).await else { return result };
        if known_head.unwrap_or(entered.session().head()) != now.head()
            && let Ok(metadata) = methods::metadata(service, &now).await
        {
            result.set_metadata(request_session.era.key(), metadata);
        }
        result
    }

    /// Like `add_metadata`, for a request that may have started a run. If it was refused, this refreshes the TTL of the session.
    async fn finish<R: ResultMetadata>(&self, request_session: RequestSession, result: Result<R, ErrorData>) -> Result<R, ErrorData> {
        if let (Some((_, entered, _)), Some(service)) = (&request_session.entered, self.edge.service()) {
            service.sessions().leave(entered).await;
        }
        Ok(self.add_metadata(request_session, result?).await)
    }

    async fn session_request(
        &self,
        method: Method,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let Some(service) = self.edge.service() else { return Err(method_not_found(&request.method)) };
        let era = Era::of(&context);
        if method == Method::Create && era.read(&context.meta)?.is_some() {
            return Err(error::invalid_params("sessions/create creates a session: remove the session from `_meta`"));
        }
        let request_session = self.enter_session(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let params = request.params.unwrap_or_else(|| json!({}));
        match method {
            Method::Create => methods::create(service, &caller).await,
            Method::Delete => methods::delete(service, &caller, era).await,
            Method::List => Ok(self.add_metadata(request_session, methods::list(service, &caller, &params).await?).await),
            Method::Resume => methods::resume(service, &caller, &params, era).await,
        }
    }
}

impl SessionHandler {
    /// The caller, the scope and the topic of a subscription.
    async fn subscription(
        &self,
        method: &str,
        uri: &str,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(&Service, Caller, Scope, Topic), ErrorData> {
        let Some(service) = self.edge.service() else { return Err(method_not_found(method)) };
        self.enter_session(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let unknown = || {
            let text = format!(
                "`{}` can't be subscribed to: only the records and outputs of executions and the heads of sessions can",
                error::truncated_uri(uri)
            );
            error::resource_not_found(ErrorCode::NotFound, text, uri)
        };
        let topic = resources::topic(uri).ok_or_else(unknown)?;
        let scope = Scope::of(&caller).ok_or_else(|| Era::of(&context).required())?;
        Ok((service, caller, scope, topic))
    }

    /// Starts forwarding events to the connection, unless it is running or the scope is a session.
    fn start_forwarder(&self, service: &Service, caller: &Caller, scope: &Scope, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut forwarder = self.forwarder.lock().unwrap_or_else(PoisonError::into_inner);
        if forwarder.is_none() && matches!(scope, Scope::Connection(_)) {
            *forwarder = Some(Forwarder::start(service, caller, scope.clone(), peer)?);
        }
        Ok(())
    }
}

/// Methods that resolve the session and then call `Handler`.
macro_rules! in_session {
    ($($name:ident($request:ty) -> $result:ty;)*) => { $(
        async fn $name(&self, request: $request, mut context: RequestContext<RoleServer>) -> Result<$result, ErrorData> {
            let request_session = self.enter_session(&mut context, Refresh::Now).await?;
            let result = self.handler.$name(request, context).await?;
            Ok(self.add_metadata(request_session, result).await)
        }
    )* };
}

impl ServerHandler for SessionHandler {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.handler.get_info();
        if self.edge.service().is_some() {
            info.capabilities.extensions.get_or_insert_default().insert(EXTENSION.into(), Default::default());
            // Log messages about executions go to subscribers of their session, or to the connection that started them outside of one.
            info.capabilities.logging = Some(JsonObject::new());
        }
        info
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler.get_tool(name)
    }

    in_session! {
        get_task(GetTaskParams) -> GetTaskResult;
        cancel_task(CancelTaskParams) -> ();
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
        read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
        complete(CompleteRequestParams) -> CompleteResult;
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let refresh = if self.handler.runs_code(&request.name) { Refresh::ByRun } else { Refresh::Now };
        let request_session = self.enter_session(&mut context, refresh).await?;
        let result = self.handler.call_tool(request, context).await;
        self.finish(request_session, result).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let request_session = self.enter_session(&mut context, Refresh::Now).await?;
        let mut result = self.handler.initialize(request, context).await?;
        result.capabilities.logging = self.get_info().capabilities.logging;
        Ok(self.add_metadata(request_session, result).await)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let peer = context.peer.clone();
        let (service, caller, scope, topic) = self.subscription("resources/subscribe", &request.uri, context).await?;
        self.start_forwarder(service, &caller, &scope, peer)?;
        service.events().subscribe(&caller, &scope, topic).await.map_err(|error| resources::service_error(&request.uri, error))
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let (service, _, scope, topic) = self.subscription("resources/unsubscribe", &request.uri, context).await?;
        service.events().unsubscribe(&scope, &topic);
        Ok(())
    }

    async fn set_level(&self, request: SetLevelRequestParams, mut context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let Some(service) = self.edge.service() else { return Err(method_not_found("logging/setLevel")) };
        self.enter_session(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let Some(scope) = Scope::of(&caller) else { return Ok(()) };
        self.start_forwarder(service, &caller, &scope, context.peer.clone())?;
        service.events().set_log_level(&caller, &scope, listen::level(request.level));
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.edge.service()?;
        let mut accepted = SubscriptionFilter::new();
        let watchable = |uris: &Vec<String>| uris.iter().filter(|uri| resources::topic(uri).is_some()).cloned().collect();
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(watchable);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(service) = self.edge.service() else { return Err(method_not_found("subscriptions/listen")) };
        let request_session = self.resolve_session(context.request_context(), Refresh::Now).await?;
        let caller = self.handler.caller(context.request_context())?;
        listen::on_request(service, &caller, request_session.session(), &context).await
    }

    async fn ping(&self, mut context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.enter_session(&mut context, Refresh::Now).await.map(drop)
    }

    async fn discover(&self, mut context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.enter_session(&mut context, Refresh::Now).await?;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let request_session = self.enter_session(&mut context, Refresh::Now).await?;
        let mut list = self.handler.list_tools(request, context).await?;
        let runs_require = self.edge.service().is_some_and(|service| service.policy().require_session);
        // Without a connection, the conversation context needs a session.
        let requires = |name: &str| match self.handler.needs_session(name) {
            NeedsSession::Never => false,
            NeedsSession::IfRequired => runs_require,
            NeedsSession::WithoutConnection => request_session.era == Era::Modern,
        };
        for tool in list.tools.iter_mut().filter(|tool| requires(&tool.name)) {
            let text = format!("{}\n\nRequires a session: {REQUIRED}", tool.description.as_deref().unwrap_or_default());
            tool.description = Some(text.into());
            tool.meta.get_or_insert_default().insert(request_session.era.key().into(), json!({ "required": true }));
        }
        Ok(self.add_metadata(request_session, list).await)
    }

    async fn on_custom_request(&self, request: CustomRequest, mut context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let era = Era::of(&context);
        let mut result = match Method::from_name(&request.method) {
            Some(method) => self.session_request(method, request, context).await?,
            None if request.method == listen::METHOD && era == Era::Legacy => {
                let Some(service) = self.edge.service() else { return Err(method_not_found(listen::METHOD)) };
                let request_session = self.enter_session(&mut context, Refresh::Now).await?;
                let caller = self.handler.caller(&context)?;
                let listening = listen::on_connection(service, &caller, request_session.session(), &context);
                tokio::select! {
                    result = listening => result?,
                    () = self.disconnected.cancelled() => return Err(error::request_cancelled("the client has disconnected")),
                }
            }
            None => {
                let refresh = if request.method == TASK_CALL { Refresh::ByRun } else { Refresh::Now };
                let request_session = self.enter_session(&mut context, refresh).await?;
                let result = self.handler.on_custom_request(request, context).await;
                self.finish(request_session, result).await?
            }
        };
        if let (Era::Modern, Some(members)) = (era, result.0.as_object_mut()) {
            members.entry("resultType").or_insert_with(|| "complete".into());
        }
        Ok(result)
    }
}

impl RequestSession {
    fn session(&self) -> Option<&OpenedSession> {
        self.entered.as_ref().map(|(_, entered, _)| entered.session())
    }
}

/// Appended to the description of a tool that requires a session.
const REQUIRED: &str =
    "pass its name as `session`, or create one with `sessions/create` (or, if available, the tool `session_context`) and call in it.";
