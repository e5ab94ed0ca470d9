//! Listening on a connection: `messages/listen`, `subscriptions/listen`, and what a connection subscribed to without either.
#![expect(deprecated, reason = "the versions before 2026-07-28 have logging")]

use super::error::{self, from_service};
use super::resources;
use super::session_meta::Era;
use heapstead_service::{Caller, Delivery, Event, Level, Scope, Service, Subscriber};
use heapstead_store::records::OpenedSession;
use heapstead_types::SessionId;
use rmcp::ErrorData;
use rmcp::model::{
    CustomNotification, CustomResult, LoggingLevel, ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

pub const METHOD: &str = "messages/listen";
/// The first thing that a listener hears.
pub const BEGUN: &str = "notifications/messages/listen";
/// By which a notification names the request that it answers to.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";

/// A notification: method and parameters.
pub type Notification = (&'static str, Value);

/// The notification for an event.
pub fn told(event: Event) -> Notification {
    match event {
        Event::Updated(topic) => (UPDATED, json!({ "uri": resources::uri(&topic) })),
        Event::Log { level, execution, text } => (
            "notifications/message",
            json!({ "level": level_name(level), "logger": "heapstead", "data": { "execution_id": execution, "message": text } }),
        ),
        Event::Progress { token, secs, message, .. } => {
            ("notifications/progress", json!({ "progressToken": token, "progress": secs, "message": message }))
        }
    }
}

/// After events were lost: whatever a listener watches may have changed.
pub fn everything_changed(service: &Service, scope: &Scope) -> Vec<Notification> {
    service.events().topics(scope).into_iter().map(|topic| told(Event::Updated(topic))).collect()
}

/// Whether this connection was told before, as the one that asked for it.
pub fn was_told(event: &Event, connection: Option<&str>) -> bool {
    matches!(event, Event::Progress { connection: Some(told), .. } if Some(told.as_str()) == connection)
}

/// `messages/listen` where all notifications leave by the same way: those of a session name it. Answered when the session ends.
pub async fn on_connection(
    service: &Service,
    caller: &Caller,
    session: Option<&OpenedSession>,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let cancelled = || error::request_cancelled("the request was cancelled");
    let Some(session) = session else {
        // What belongs to no session reaches this connection anyway.
        notify(&context.peer, (BEGUN, json!({}))).await?;
        context.ct.cancelled().await;
        return Err(cancelled());
    };
    let (mut listener, _) = service.events().of_session(session, None).map_err(from_service)?;
    notify(&context.peer, (BEGUN, json!({}))).await?;
    loop {
        let heard = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(cancelled()),
            heard = listener.next() => heard,
        };
        match heard {
            Delivery::Event(_, event) if was_told(&event, caller.connection.as_ref().map(|connection| connection.id.as_str())) => {}
            Delivery::Event(_, event) => notify(&context.peer, of_session(told(event), session.id)).await?,
            Delivery::Ended => return Ok(CustomResult::new(json!({}))),
            Delivery::Lagged => {
                return Err(error::subscriber_lagged());
            }
        }
    }
}

fn of_session((method, mut params): Notification, session: SessionId) -> Notification {
    params["_meta"][Era::Legacy.key()] = json!({ "sessionId": session });
    (method, params)
}

/// Waits until it is handed on, so that a slow client falls behind here and nowhere else.
pub async fn notify(peer: &Peer<RoleServer>, (method, params): Notification) -> Result<(), ErrorData> {
    let notification = ServerNotification::CustomNotification(CustomNotification::new(method, Some(params)));
    peer.send_notification(notification).await.map_err(|error| error::request_cancelled(error.to_string()))
}

/// Tells a connection what it subscribed to without a session, for as long as this is there.
pub struct Pump {
    service: Service,
    scope: Scope,
    task: AbortHandle,
}

impl Pump {
    pub fn start(service: &Service, scope: Scope, peer: Peer<RoleServer>) -> Result<Self, ErrorData> {
        let (listener, _) = service.events().receive(scope.clone(), None).map_err(from_service)?;
        let task = tokio::spawn(pump(service.clone(), scope.clone(), listener, peer)).abort_handle();
        Ok(Self { service: service.clone(), scope, task })
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.task.abort();
        self.service.events().remove_scope(&self.scope);
    }
}

async fn pump(service: Service, scope: Scope, mut listener: Subscriber, peer: Peer<RoleServer>) {
    loop {
        let news = match listener.next().await {
            Delivery::Event(_, event) => vec![told(event)],
            Delivery::Ended => return,
            Delivery::Lagged => match service.events().receive(scope.clone(), None) {
                Ok((again, _)) => {
                    listener = again;
                    everything_changed(&service, &scope)
                }
                Err(_) => return,
            },
        };
        for told in news {
            if notify(&peer, told).await.is_err() {
                return;
            }
        }
    }
}

/// `subscriptions/listen` of 2026-07-28: the request names what it wants to hear of. In a session it hears of the progress of that session's calls
/// too, and, where it says from which level on, the log messages; and it ends with it.
pub async fn on_request(
    service: &Service,
    caller: &Caller,
    session: Option<&OpenedSession>,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let own = RequestScope { service, scope: service.events().request_scope() };
    let (mut listener, _) = service.events().receive(own.scope.clone(), None).map_err(from_service)?;
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        if let Some(topic) = resources::topic(uri) {
            // Of what is not known, or not the caller's, nothing will ever be heard.
            let _ = service.events().subscribe(caller, &own.scope, topic).await;
        }
    }
    let mut of_session = match session {
        Some(session) => Some(service.events().of_session(session, None).map_err(from_service)?.0),
        None => None,
    };
    let level_min = context.request_context().meta.log_level().map(level);
    loop {
        let heard = tokio::select! {
            biased;
            () = context.cancelled() => return Ok(()),
            heard = listener.next() => heard,
            heard = next_of(of_session.as_mut()) => heard,
        };
        match heard {
            Delivery::Event(_, Event::Updated(topic)) => {
                let mut updated = ResourceUpdatedNotificationParam::new(resources::uri(&topic));
                if let Some(session) = session {
                    updated.meta.get_or_insert_default().insert(Era::Modern.key().into(), json!({ "sessionId": session.id }));
                }
                let updated = ServerNotification::ResourceUpdatedNotification(ResourceUpdatedNotification::new(updated));
                context.sink().send(updated).await.map_err(|error| error::request_cancelled(error.to_string()))?;
            }
            Delivery::Event(_, Event::Log { level, .. }) if level_min.is_none_or(|min| level < min) => {}
            Delivery::Event(_, event) => {
                let (method, mut params) = told(event);
                params["_meta"] =
                    json!({ SUBSCRIPTION_KEY: context.sink().id(), Era::Modern.key(): { "sessionId": session.map(|session| session.id) } });
                notify(&context.request_context().peer, (method, params)).await?;
            }
            Delivery::Ended => return Ok(()),
            Delivery::Lagged => {
                return Err(error::subscriber_lagged());
            }
        }
    }
}

struct RequestScope<'a> {
    service: &'a Service,
    scope: Scope,
}

impl Drop for RequestScope<'_> {
    fn drop(&mut self) {
        self.service.events().remove_scope(&self.scope);
    }
}

/// What happens in the session, and its end; nothing ever where there is none. Changes of resources are told to whom asked for them by name.
async fn next_of(listener: Option<&mut Subscriber>) -> Delivery {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        match listener.next().await {
            Delivery::Event(_, Event::Updated(_)) => {}
            heard => return heard,
        }
    }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Notice => "notice",
        Level::Warning => "warning",
        Level::Error => "error",
        Level::Critical => "critical",
        Level::Alert => "alert",
        Level::Emergency => "emergency",
    }
}

pub fn level(level: LoggingLevel) -> Level {
    match level {
        LoggingLevel::Debug => Level::Debug,
        LoggingLevel::Info => Level::Info,
        LoggingLevel::Notice => Level::Notice,
        LoggingLevel::Warning => Level::Warning,
        LoggingLevel::Error => Level::Error,
        LoggingLevel::Critical => Level::Critical,
        LoggingLevel::Alert => Level::Alert,
        LoggingLevel::Emergency => Level::Emergency,
    }
}
