//! Subscriptions: what a caller may subscribe to, and where its events are delivered.

use super::Events;
use super::hub::{ALL_TOPICS_MAX, Event, Full, Level, Position, SUBSCRIBERS_MAX, Scope, Subscriber, TOPICS_MAX, Topic};
use crate::budget::Exhausted;
use crate::{Caller, ServiceError};
use heapstead_store::records::OpenedSession;
use heapstead_types::{ErrorCode, SessionId};
use std::time::Duration;

impl Events<'_> {
    /// Subscribes a scope to a topic. What is not the caller's is not found.
    pub async fn subscribe(&self, caller: &Caller, scope: &Scope, topic: Topic) -> Result<(), ServiceError> {
        let runs_elsewhere = match &topic {
            Topic::Head(id) => {
                let session = self.0.sessions().opened_audited(caller, *id).await?;
                self.0.hub.watch_head(session.id, session.head());
                false
            }
            Topic::Execution(id) | Topic::Output(id) => {
                let record = self.0.executions().get(caller, id.as_str(), Duration::ZERO).await?;
                !record.status.is_terminal()
            }
        };
        if let Scope::Session(id) = scope {
            // Its end has to be noticed, or its subscriptions would never be removed.
            self.0.hub.watch_head(*id, self.0.sessions().opened_audited(caller, *id).await?.head());
        }
        self.0.hub.subscribe(&caller.budget_holder(), scope, topic.clone()).map_err(too_many_topics)?;
        match topic {
            Topic::Head(id) => self.follow_all_in(id),
            Topic::Execution(id) | Topic::Output(id) => match self.0.running.find(&caller.principal, &id) {
                Some(execution) => self.follow(&execution),
                None if runs_elsewhere => self.follow_elsewhere(caller.principal.clone(), id),
                None => {}
            },
        }
        Ok(())
    }

    pub fn unsubscribe(&self, scope: &Scope, topic: &Topic) {
        self.0.hub.unsubscribe(scope, topic);
    }

    /// Receives the events of a session that was resolved before. Also returns whether events since `after` were lost.
    pub fn of_session(
        &self,
        caller: &Caller,
        session: &OpenedSession,
        after: Option<Position>,
    ) -> Result<(Subscriber, bool), ServiceError> {
        self.0.hub.watch_head(session.id, session.head());
        let subscriber = self.receive(caller, Scope::Session(session.id), after)?;
        self.follow_all_in(session.id);
        Ok(subscriber)
    }

    /// Receives the remaining events of a session of this caller that has ended.
    pub async fn of_ended_session(&self, caller: &Caller, id: SessionId, after: Position) -> Result<Option<Subscriber>, ServiceError> {
        match self.0.records.was_opened(&caller.principal, id).await? {
            true => self.0.hub.receive_rest(caller.budget_holder(), id, after).map_err(too_many_subscribers),
            false => Ok(None),
        }
    }

    /// Receives the events of a scope. Also returns whether events since `after` were lost.
    pub fn receive(&self, caller: &Caller, scope: Scope, after: Option<Position>) -> Result<(Subscriber, bool), ServiceError> {
        self.0.hub.receive(caller.budget_holder(), scope, after).map_err(too_many_subscribers)
    }

    /// The topics of a scope.
    pub fn topics(&self, scope: &Scope) -> Vec<Topic> {
        self.0.hub.topics(scope)
    }

    pub fn request_scope(&self) -> Scope {
        self.0.hub.request_scope()
    }

    /// Removes a scope that no subscriber will come back to.
    pub fn remove_scope(&self, scope: &Scope) {
        self.0.hub.remove(scope);
    }

    /// Sets the minimum level of log messages for this scope.
    pub fn set_log_level(&self, caller: &Caller, scope: &Scope, level: Level) {
        self.0.hub.set_level(&caller.budget_holder(), scope, level);
        if let Scope::Connection(connection) = scope {
            self.follow_all_of(connection);
        }
    }

    pub fn publish_to_session(&self, session: SessionId, event: Event) {
        self.0.hub.publish(session, event);
    }
}

fn too_many_subscribers(full: Full) -> ServiceError {
    let text = match full {
        Full::Shared(Exhausted::ByHolder) => "you have as many listeners as are left for other owners: close some".to_owned(),
        Full::Shared(Exhausted::ByAll) | Full::Scope => format!("there are {SUBSCRIBERS_MAX} listeners, which is the maximum"),
    };
    ServiceError::busy(ErrorCode::TooManySubscriptions, text)
}

fn too_many_topics(full: Full) -> ServiceError {
    let text = match full {
        Full::Scope => format!("{TOPICS_MAX} resources are subscribed to here, which is the maximum"),
        Full::Shared(Exhausted::ByHolder) => "you have as many subscriptions as are left for other owners: end some".to_owned(),
        Full::Shared(Exhausted::ByAll) => format!("there are {ALL_TOPICS_MAX} subscriptions, which is the maximum"),
    };
    ServiceError::busy(ErrorCode::TooManySubscriptions, text)
}
