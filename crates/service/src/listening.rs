//! Listening: whose changes a caller may ask to be told of, and being told.

use crate::hub::{Event, Full, LISTENERS_MAX, Level, Listener, Position, Scope, TOPICS_MAX, Topic};
use crate::{Archive, Caller, ServiceError};
use heapstead_store::metadata::OpenedSession;
use heapstead_types::SessionId;
use std::time::Duration;

impl Archive {
    /// Asks for a scope to be told of changes. What is not the caller's is not known.
    pub async fn subscribe(&self, caller: &Caller, scope: &Scope, topic: Topic) -> Result<(), ServiceError> {
        let running_elsewhere = match &topic {
            Topic::Head(id) => {
                let session = self.opened(caller, *id).await?;
                self.0.hub.watch_head(session.id, session.head());
                false
            }
            Topic::Execution(id) | Topic::Output(id) => {
                let record = self.execution(caller, id.as_str(), Duration::ZERO).await?;
                !record.status.is_terminal()
            }
        };
        if let Scope::Session(id) = scope {
            // Its end has to be seen, or what it subscribed to would be kept for ever.
            self.0.hub.watch_head(*id, self.opened(caller, *id).await?.head());
        }
        let full = |_: Full| ServiceError::Busy(format!("{TOPICS_MAX} resources are subscribed to here, which is as many as may be"));
        self.0.hub.subscribe(scope, topic.clone()).map_err(full)?;
        match topic {
            Topic::Head(id) => self.follow_all_in(id),
            Topic::Execution(id) | Topic::Output(id) => match self.0.live.find(&caller.principal, &id) {
                Some(live) => self.follow(&live),
                None if running_elsewhere => self.follow_elsewhere(caller.principal.clone(), id),
                None => {}
            },
        }
        Ok(())
    }

    pub fn unsubscribe(&self, scope: &Scope, topic: &Topic) {
        self.0.hub.unsubscribe(scope, topic);
    }

    /// Listens to a session, which was found before.
    pub fn listen_to_session(&self, session: &OpenedSession, after: Option<Position>) -> Result<(Listener, bool), ServiceError> {
        self.0.hub.watch_head(session.id, session.head());
        let listener = self.listen(Scope::Session(session.id), after)?;
        self.follow_all_in(session.id);
        Ok(listener)
    }

    /// Listens to what is left of a session of this caller that is over.
    pub async fn listen_to_rest(&self, caller: &Caller, id: SessionId, after: Position) -> Result<Option<Listener>, ServiceError> {
        match self.0.metadata.was_opened(&caller.principal, id).await? {
            true => self.0.hub.listen_to_rest(id, after).map_err(too_many_listeners),
            false => Ok(None),
        }
    }

    /// Listens to a scope, and tells whether events since `after` were lost.
    pub fn listen(&self, scope: Scope, after: Option<Position>) -> Result<(Listener, bool), ServiceError> {
        self.0.hub.listen(scope, after).map_err(too_many_listeners)
    }

    /// What a scope has subscribed to.
    pub fn subscribed(&self, scope: &Scope) -> Vec<Topic> {
        self.0.hub.topics(scope)
    }

    pub fn request_scope(&self) -> Scope {
        self.0.hub.request_scope()
    }

    /// Nobody listens to this scope any more.
    pub fn forget_scope(&self, scope: &Scope) {
        self.0.hub.forget(scope);
    }

    /// From now on the listeners of this scope are told only of what matters at least so much.
    pub fn set_log_level(&self, scope: &Scope, level: Level) {
        self.0.hub.set_level(scope, level);
        if let Scope::Connection(connection) = scope {
            self.follow_all_of(connection);
        }
    }

    pub fn tell_session(&self, session: SessionId, event: Event) {
        self.0.hub.tell(session, event);
    }
}

fn too_many_listeners(_: Full) -> ServiceError {
    ServiceError::Busy(format!("{LISTENERS_MAX} listeners are there, which is as many as may be"))
}
