//! Every request goes through here: the session that it names in `_meta` is resolved and authorised once, before it is answered, and the
//! answer reports the session's new head.
#![expect(deprecated, reason = "the versions before 2026-07-28 have logging")]

use super::carries::Carries;
use super::dialect::TASK_CALL;
use super::error::{self, from_service, method_not_found};
use super::handler::Handler;
use super::listen::{self, Pump};
use super::resources;
use super::session_meta::{EXTENSION, Era};
use super::session_methods::{self as methods, Method};
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

pub struct Sessioned {
    edge: Arc<Edge>,
    handler: Handler,
    /// Tells the connection what it subscribed to, once it did.
    pump: Mutex<Option<Pump>>,
    /// Nobody listens any more then, and nothing has to wait for that.
    gone: CancellationToken,
}

/// A request while it is answered, and the session it is in.
struct Visit {
    era: Era,
    entered: Option<(Caller, EnteredSession, Option<Head>)>,
}

/// When a request refreshes the TTL of the session that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refresh {
    /// When it enters the session.
    Now,
    /// When the run that it starts is accepted.
    ByRun,
}

impl Sessioned {
    pub fn new(edge: Arc<Edge>) -> Self {
        Self { handler: Handler::new(edge.clone()), edge, pump: Mutex::default(), gone: CancellationToken::new() }
    }

    /// For a connection that tells when its client has left.
    pub fn until(self, gone: CancellationToken) -> Self {
        Self { gone, ..self }
    }

    async fn enter(&self, context: &mut RequestContext<RoleServer>, refresh: Refresh) -> Result<Visit, ErrorData> {
        let visit = self.visit(context, refresh).await?;
        if let Some((_, entered, _)) = &visit.entered {
            context.extensions.insert(entered.clone());
        }
        Ok(visit)
    }

    /// Resolves and authorises the session that a request names. This is the only time that it is read.
    async fn visit(&self, context: &RequestContext<RoleServer>, refresh: Refresh) -> Result<Visit, ErrorData> {
        let era = Era::of(context);
        let Some(named) = era.read(&context.meta)? else { return Ok(Visit { era, entered: None }) };
        let Some(service) = &self.edge.service else {
            return Err(error::invalid_params("this server is stateless and has no sessions: remove the session from `_meta`"));
        };
        let mut caller = self.handler.caller(context)?;
        let entered = match refresh {
            Refresh::Now => methods::find(service, &caller, &named.id, era).await?,
            Refresh::ByRun => methods::find_for_run(service, &caller, &named.id, era).await?,
        };
        let known_head = match &named.state {
            Some(state) => Some(service.sessions().open_state(entered.id(), state).await.map_err(from_service)?),
            None => None,
        };
        caller.entered = Some(entered.clone());
        Ok(Visit { era, entered: Some((caller, entered, known_head)) })
    }

    /// Adds to an answer where its session stands, if the client can't know.
    async fn leave<R: Carries>(&self, visit: Visit, mut result: R) -> R {
        let (Some((caller, entered, known_head)), Some(service)) = (visit.entered, &self.edge.service) else { return result };
        // If it has ended meanwhile, the next request fails.
        let Some(now) = service.sessions().current(&caller, &entered).await else { return result };
        if known_head.unwrap_or(entered.session().head()) != now.head()
            && let Ok(metadata) = methods::metadata(service, &now).await
        {
            result.carry(visit.era.key(), metadata);
        }
        result
    }

    /// As `leave`, for a request that should have run code and may have been refused: then nothing has refreshed the TTL of its session.
    async fn finish<R: Carries>(&self, visit: Visit, result: Result<R, ErrorData>) -> Result<R, ErrorData> {
        if let (Some((_, entered, _)), Some(service)) = (&visit.entered, &self.edge.service) {
            service.sessions().leave(entered).await;
        }
        Ok(self.leave(visit, result?).await)
    }

    async fn session_request(
        &self,
        method: Method,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let Some(service) = &self.edge.service else { return Err(method_not_found(&request.method)) };
        let era = Era::of(&context);
        if method == Method::Create && era.read(&context.meta)?.is_some() {
            return Err(error::invalid_params("sessions/create creates a session: remove the session from `_meta`"));
        }
        let visit = self.enter(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let params = request.params.unwrap_or_else(|| json!({}));
        match method {
            Method::Create => methods::create(service, &caller).await,
            Method::Delete => methods::delete(service, &caller, era).await,
            Method::List => Ok(self.leave(visit, methods::list(service, &caller, &params).await?).await),
            Method::Resume => methods::resume(service, &caller, &params, era).await,
        }
    }
}

impl Sessioned {
    /// Whom a subscription is for, and what it is to.
    async fn subscription(
        &self,
        method: &str,
        uri: &str,
        mut context: RequestContext<RoleServer>,
    ) -> Result<(&Service, Caller, Scope, Topic), ErrorData> {
        let Some(service) = &self.edge.service else { return Err(method_not_found(method)) };
        self.enter(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let unknown = || {
            let text = format!(
                "`{}` can't be subscribed to: only the records and outputs of executions and the heads of sessions can",
                error::truncated_uri(uri)
            );
            error::resource_not_found(ErrorCode::NotFound, text, uri)
        };
        let topic = resources::topic(uri).ok_or_else(unknown)?;
        let scope = match (caller.entered_id(), &caller.connection) {
            (Some(session), _) => Scope::Session(session),
            (None, Some(connection)) => Scope::Connection(connection.id.clone()),
            (None, None) => return Err(Era::of(&context).required()),
        };
        Ok((service, caller, scope, topic))
    }

    /// Sees to it that what this connection subscribes to, and the log messages that it asks for, reach it.
    fn pump(&self, service: &Service, scope: &Scope, peer: Peer<RoleServer>) -> Result<(), ErrorData> {
        let mut pump = self.pump.lock().unwrap_or_else(PoisonError::into_inner);
        if pump.is_none() && matches!(scope, Scope::Connection(_)) {
            *pump = Some(Pump::start(service, scope.clone(), peer)?);
        }
        Ok(())
    }
}

/// Methods that are answered by the handler, in the session that the request names.
macro_rules! in_session {
    ($($name:ident($request:ty) -> $result:ty;)*) => { $(
        async fn $name(&self, request: $request, mut context: RequestContext<RoleServer>) -> Result<$result, ErrorData> {
            let visit = self.enter(&mut context, Refresh::Now).await?;
            let result = self.handler.$name(request, context).await?;
            Ok(self.leave(visit, result).await)
        }
    )* };
}

impl ServerHandler for Sessioned {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.handler.get_info();
        if self.edge.service.is_some() {
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
        let visit = self.enter(&mut context, refresh).await?;
        let result = self.handler.call_tool(request, context).await;
        self.finish(visit, result).await
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let visit = self.enter(&mut context, Refresh::Now).await?;
        let mut result = self.handler.initialize(request, context).await?;
        result.capabilities.logging = self.get_info().capabilities.logging;
        Ok(self.leave(visit, result).await)
    }

    async fn subscribe(&self, request: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let peer = context.peer.clone();
        let (service, caller, scope, topic) = self.subscription("resources/subscribe", &request.uri, context).await?;
        self.pump(service, &scope, peer)?;
        service.events().subscribe(&caller, &scope, topic).await.map_err(|error| resources::refused(&request.uri, error))
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let (service, _, scope, topic) = self.subscription("resources/unsubscribe", &request.uri, context).await?;
        service.events().unsubscribe(&scope, &topic);
        Ok(())
    }

    async fn set_level(&self, request: SetLevelRequestParams, mut context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let Some(service) = &self.edge.service else { return Err(method_not_found("logging/setLevel")) };
        self.enter(&mut context, Refresh::Now).await?;
        let caller = self.handler.caller(&context)?;
        let scope = match (caller.entered_id(), &caller.connection) {
            (Some(session), _) => Scope::Session(session),
            // Those of its runs outside of sessions.
            (None, Some(connection)) => Scope::Connection(connection.id.clone()),
            (None, None) => return Ok(()),
        };
        self.pump(service, &scope, context.peer.clone())?;
        service.events().set_log_level(&scope, listen::level(request.level));
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.edge.service.as_ref()?;
        let mut accepted = SubscriptionFilter::new();
        let watchable = |uris: &Vec<String>| uris.iter().filter(|uri| resources::topic(uri).is_some()).cloned().collect();
        accepted.resource_subscriptions = requested.resource_subscriptions.as_ref().map(watchable);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let Some(service) = &self.edge.service else { return Err(method_not_found("subscriptions/listen")) };
        let visit = self.visit(context.request_context(), Refresh::Now).await?;
        let caller = self.handler.caller(context.request_context())?;
        listen::on_request(service, &caller, visit.session(), &context).await
    }

    async fn ping(&self, mut context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.enter(&mut context, Refresh::Now).await.map(drop)
    }

    async fn discover(&self, mut context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.enter(&mut context, Refresh::Now).await?;
        Ok(DiscoverResult::from_server_info(self.supported_protocol_versions().into_owned(), self.get_info()))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visit = self.enter(&mut context, Refresh::Now).await?;
        let mut list = self.handler.list_tools(request, context).await?;
        let runs_require = self.edge.service.as_ref().is_some_and(|service| service.policy().require_session);
        // A connection has a context of its own; where there is none, a session has to be named.
        let requires = |name: &str| match self.handler.needs_session(name) {
            NeedsSession::Never => false,
            NeedsSession::IfRequired => runs_require,
            NeedsSession::WithoutConnection => visit.era == Era::Modern,
        };
        for tool in list.tools.iter_mut().filter(|tool| requires(&tool.name)) {
            let text = format!("{}\n\nIt needs a session: {REQUIRED}", tool.description.as_deref().unwrap_or_default());
            tool.description = Some(text.into());
            tool.meta.get_or_insert_default().insert(visit.era.key().into(), json!({ "required": true }));
        }
        Ok(self.leave(visit, list).await)
    }

    async fn on_custom_request(&self, request: CustomRequest, mut context: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        let era = Era::of(&context);
        let mut result = match Method::named(&request.method) {
            Some(method) => self.session_request(method, request, context).await?,
            None if request.method == listen::METHOD && era == Era::Legacy => {
                let Some(service) = &self.edge.service else { return Err(method_not_found(listen::METHOD)) };
                let visit = self.enter(&mut context, Refresh::Now).await?;
                let caller = self.handler.caller(&context)?;
                let listening = listen::on_connection(service, &caller, visit.session(), &context);
                tokio::select! {
                    answer = listening => answer?,
                    () = self.gone.cancelled() => return Err(error::request_cancelled("the client has disconnected")),
                }
            }
            None => {
                let refresh = if request.method == TASK_CALL { Refresh::ByRun } else { Refresh::Now };
                let visit = self.enter(&mut context, refresh).await?;
                let result = self.handler.on_custom_request(request, context).await;
                self.finish(visit, result).await?
            }
        };
        if let (Era::Modern, Some(members)) = (era, result.0.as_object_mut()) {
            members.entry("resultType").or_insert_with(|| "complete".into());
        }
        Ok(result)
    }
}

impl Visit {
    fn session(&self) -> Option<&OpenedSession> {
        self.entered.as_ref().map(|(_, entered, _)| entered.session())
    }
}

/// For the description of a tool that needs a session.
const REQUIRED: &str =
    "name one with `session`, or open one (`sessions/create`, or `session_context` where there is that tool) and call in it.";
