//! The turn in a session of a call that runs nothing of its caller's: nobody else runs or is told anything there until it is over.

use crate::Service;
use crate::end::{Begun, End};
use crate::execution::RETRY_PAUSE;
use crate::live::Live;
use crate::turns::MyTurn;
use heapstead_store::metadata::{ExecutionEnd, InSession, Logical, NewExecution};
use heapstead_store::outputs::Extent;
use heapstead_types::{Principal, Status};
use jiff::Timestamp;
use std::sync::Arc;

/// Over when it is dropped: whoever asked may leave, and the next one would wait for ever.
pub struct CallTurn {
    service: Service,
    pub live: Arc<Live>,
    pub turn: Option<MyTurn>,
}

impl CallTurn {
    pub fn new(service: &Service, principal: &Principal) -> Self {
        let live = Arc::new(Live::new(Begun::now(), principal.clone()));
        service.0.live.insert(live.clone());
        Self { service: service.clone(), live, turn: None }
    }

    /// As the table of executions has it while it lasts.
    pub fn row(&self, logical: &Logical) -> NewExecution {
        NewExecution {
            id: self.live.id().clone(),
            principal: self.live.principal.clone(),
            session: Some(InSession::Opened {
                id: logical.session,
                logical: Some(logical.id),
                kept_until: self.service.kept_until(Timestamp::now()),
            }),
            started_at: self.live.begun.started_at,
            input_heap: None,
            internal: true,
        }
    }
}

impl Drop for CallTurn {
    fn drop(&mut self) {
        let (service, live, turn) = (self.service.clone(), self.live.clone(), self.turn.take());
        // Without a runtime the process is ending, and the turn with it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            while let Err(error) = service.0.metadata.end_execution(live.id().clone(), ExecutionEnd::bare(Status::Completed)).await {
                tracing::warn!(%error, "a turn in a session can't be ended");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            live.end(live.told().ended_at(&End::Cancelled, Timestamp::now()), Extent::default());
            service.0.live.remove(live.id());
            drop(turn);
        });
    }
}
