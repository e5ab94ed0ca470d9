//! Progress notifications while a call waits: on new output, and at least every few seconds.

use super::session_metadata::Era;
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

/// The maximum time between notifications.
const INTERVAL_MAX: Duration = Duration::from_secs(3);
/// The minimum time between notifications.
const INTERVAL_MIN: Duration = Duration::from_millis(200);

pub struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    started: Instant,
    era: Era,
    /// Publishes the progress to the subscribers of the execution's session.
    service: Option<Service>,
    /// Its subscribers skip the published event, because they receive the notification itself.
    connection: Option<String>,
}

/// The execution that the call waits for.
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

    /// Waits for `work` and reports the progress of `execution` meanwhile.
    pub async fn during<T>(&self, execution: Option<Arc<RunningExecution>>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut watched = execution.map(|execution| Watched { progress: execution.watch(), session: execution.session });
        // Report output that was written before the watch started.
        if let Some(watched) = watched.as_mut().filter(|watched| watched.progress.borrow().output.bytes > 0) {
            watched.progress.mark_changed();
        }
        loop {
            tokio::select! {
                biased;
                answer = &mut work => return answer,
                () = next_report(&mut watched) => self.report(watched.as_ref()).await,
            }
            tokio::select! {
                biased;
                answer = &mut work => return answer,
                () = tokio::time::sleep(INTERVAL_MIN) => {}
            }
        }
    }

    async fn report(&self, watched: Option<&Watched>) {
        // MCP requires progress to increase, which elapsed time does.
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
        // An error means that the client has disconnected.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// Waits for new output or the maximum interval.
async fn next_report(watched: &mut Option<Watched>) {
    let Some(execution) = watched else { return tokio::time::sleep(INTERVAL_MAX).await };
    if let Ok(Err(_)) = tokio::time::timeout(INTERVAL_MAX, execution.progress.changed()).await {
        *watched = None;
    }
}
