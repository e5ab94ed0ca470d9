//! Signs of life while a call waits: whenever there is new output, and every few seconds anyway.

use super::session_meta::Era;
use heapstead_service::{Caller, Event, Progress, RunningExecution, Service};
use heapstead_types::SessionId;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The longest silence.
const INTERVAL: Duration = Duration::from_secs(3);
/// The shortest interval: faster output is reported together.
const PAUSE: Duration = Duration::from_millis(200);

pub struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    started: Instant,
    era: Era,
    /// Tells the listeners of the execution's session, and those of this connection not again.
    service: Option<Service>,
    connection: Option<String>,
}

/// The execution that is waited for.
struct Watched {
    progress: watch::Receiver<Progress>,
    session: Option<SessionId>,
}

impl Reporter {
    pub fn new(context: &RequestContext<RoleServer>, token: ProgressToken, service: Option<&Service>, caller: &Caller) -> Self {
        Self {
            peer: context.peer.clone(),
            token,
            started: Instant::now(),
            era: Era::of(context),
            service: service.cloned(),
            connection: caller.connection.as_ref().map(|connection| connection.id.clone()),
        }
    }

    /// Waits for the work, and tells of the execution it waits for meanwhile.
    pub async fn during<T>(&self, execution: Option<Arc<RunningExecution>>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut watched = execution.map(|execution| Watched { progress: execution.watch(), session: execution.session });
        // What was written before anybody watched is news too.
        if let Some(watched) = watched.as_mut().filter(|watched| watched.progress.borrow().output.bytes > 0) {
            watched.progress.mark_changed();
        }
        loop {
            tokio::select! {
                biased;
                answer = &mut work => return answer,
                () = news(&mut watched) => self.tell(watched.as_ref()).await,
            }
            tokio::select! {
                biased;
                answer = &mut work => return answer,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    async fn tell(&self, watched: Option<&Watched>) {
        // Time only grows, as progress has to.
        let secs = self.started.elapsed().as_secs_f64();
        let message = match watched.map(|watched| watched.progress.borrow().output) {
            Some(output) => format!("running for {secs:.1} s, {} bytes of output so far", output.bytes),
            None => format!("running for {secs:.1} s"),
        };
        let mut progress = ProgressNotificationParam::new(self.token.clone(), secs).with_message(message.clone());
        if let (Some(service), Some(session)) = (&self.service, watched.and_then(|watched| watched.session)) {
            let token = serde_json::to_value(&self.token).unwrap_or_default();
            service.events().publish_to_session(session, Event::Progress { token, secs, message, connection: self.connection.clone() });
            progress.meta.get_or_insert_default().insert(self.era.key().into(), json!({ "sessionId": session }));
        }
        // Whoever no longer listens misses nothing.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// Output, or the time after which silence is too long.
async fn news(watched: &mut Option<Watched>) {
    let Some(execution) = watched else { return tokio::time::sleep(INTERVAL).await };
    if let Ok(Err(_)) = tokio::time::timeout(INTERVAL, execution.progress.changed()).await {
        *watched = None;
    }
}
