//! Notifications on a connection: `messages/listen`, `subscriptions/listen`, and subscriptions of the connection itself.
#![expect(deprecated, reason = "the versions before 2026-07-28 have logging")]

use super::error::{self, from_service};
use super::resources;
use super::session_metadata::Era;
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
/// The first notification to a subscriber.
pub const STARTED: &str = "notifications/messages/listen";
/// The member of `_meta` with the id of the `subscriptions/listen` request.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";
const UPDATED: &str = "notifications/resources/updated";

/// A notification: method and parameters.
pub type Notification = (&'static str, Value);

/// The notification for an event.
pub fn notification(event: Event) -> Notification {
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

/// An update notification for every subscribed topic, for a subscriber that missed events.
pub fn update_all(service: &Service, scope: &Scope) -> Vec<Notification> {
    service.events().topics(scope).into_iter().map(|topic| notification(Event::Updated(topic))).collect()
}

/// Whether this connection has already received the event as progress of its own request.
pub fn was_sent_to(event: &Event, connection: Option<&str>) -> bool {
    matches!(event, Event::Progress { connection: Some(requester), .. } if Some(requester.as_str()) == connection)
}

/// `messages/listen` over stdio and SSE. All notifications share one stream, so those of a session name it. Returns when the session ends.
pub async fn on_connection(
    service: &Service,
    caller: &Caller,
    session: Option<&OpenedSession>,
    context: &RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let cancelled = || error::request_cancelled("the request was cancelled");
    let Some(session) = session else {
        // Events without a session are sent to the connection anyway.
        notify(&context.peer, (STARTED, json!({}))).await?;
        context.ct.cancelled().await;
        return Err(cancelled());
    };
    let (mut subscriber, _) = service.events().of_session(caller, session, None).map_err(from_service)?;
    notify(&context.peer, (STARTED, json!({}))).await?;
    loop {
        let delivery = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(cancelled()),
            delivery = subscriber.next() => delivery,
        };
        match delivery {
            Delivery::Event(_, event) if was_sent_to(&event, caller.connection.as_ref().map(|connection| connection.id.as_str())) => {}
            Delivery::Event(_, event) => notify(&context.peer, of_session(notification(event), session.id)).await?,
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

/// Waits until the transport accepts the notification, so that a slow client delays only its own subscription.
pub async fn notify(peer: &Peer<RoleServer>, (method, params): Notification) -> Result<(), ErrorData> {
    let notification = ServerNotification::CustomNotification(CustomNotification::new(method, Some(params)));
    peer.send_notification(notification).await.map_err(|error| error::request_cancelled(error.to_string()))
}

/// Forwards the events of a connection without a session to its client, until dropped.
pub struct Forwarder {
    service: Service,
    scope: Scope,
    task: AbortHandle,
}

impl Forwarder {
    pub fn start(service: &Service, caller: &Caller, scope: Scope, peer: Peer<RoleServer>) -> Result<Self, ErrorData> {
        let (subscriber, _) = service.events().receive(caller, scope.clone(), None).map_err(from_service)?;
        let task = tokio::spawn(forward(service.clone(), caller.clone(), scope.clone(), subscriber, peer)).abort_handle();
        Ok(Self { service: service.clone(), scope, task })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.task.abort();
        self.service.events().remove_scope(&self.scope);
    }
}

async fn forward(service: Service, caller: Caller, scope: Scope, mut subscriber: Subscriber, peer: Peer<RoleServer>) {
    loop {
        let notifications = match subscriber.next().await {
            Delivery::Event(_, event) => vec![notification(event)],
            Delivery::Ended => return,
            Delivery::Lagged => match service.events().receive(&caller, scope.clone(), None) {
                Ok((again, _)) => {
                    subscriber = again;
                    update_all(&service, &scope)
                }
                Err(_) => return,
            },
        };
        for notification in notifications {
            if notify(&peer, notification).await.is_err() {
                return;
            }
        }
    }
}

/// `subscriptions/listen` of 2026-07-28: the request names the resources. In a session it also receives the progress of the session's calls and,
/// if the request has a log level, log messages. It returns when the session ends.
pub async fn on_request(
    service: &Service,
    caller: &Caller,
    session: Option<&OpenedSession>,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let own = RequestScope { service, scope: service.events().request_scope() };
    let (mut subscriber, _) = service.events().receive(caller, own.scope.clone(), None).map_err(from_service)?;
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        if let Some(topic) = resources::topic(uri) {
            // For a resource that does not exist or belongs to another owner there are no events.
            let _ = service.events().subscribe(caller, &own.scope, topic).await;
        }
    }
    let mut of_session = match session {
        Some(session) => Some(service.events().of_session(caller, session, None).map_err(from_service)?.0),
        None => None,
    };
    let level_min = context.request_context().meta.log_level().map(level);
    loop {
        let delivery = tokio::select! {
            biased;
            () = context.cancelled() => return Ok(()),
            delivery = subscriber.next() => delivery,
            delivery = next_of(of_session.as_mut()) => delivery,
        };
        match delivery {
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
                let (method, mut params) = notification(event);
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

/// The next event of the session, or its end; pending forever without a session. Skips resource updates, which the request scope delivers.
async fn next_of(subscriber: Option<&mut Subscriber>) -> Delivery {
    let Some(subscriber) = subscriber else { return std::future::pending().await };
    loop {
        match subscriber.next().await {
            Delivery::Event(_, Event::Updated(_)) => {}
            delivery => return delivery,
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
