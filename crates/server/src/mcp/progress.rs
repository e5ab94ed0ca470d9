//! Signs of life while a call waits: whenever there is new output, and every few seconds anyway.

use heapstead_service::{Caller, Event, Live, Progress, Service};
use heapstead_types::SessionId;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The longest silence.
const INTERVAL: Duration = Duration::from_secs(3);
/// The shortest: output that comes faster is told of together.
const PAUSE: Duration = Duration::from_millis(200);

pub struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    started: Instant,
    /// Whose listeners are told too, and the connection that asked.
    session: Option<(Service, SessionId, Option<String>)>,
}

impl Reporter {
    pub fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self { peer, token, started: Instant::now(), session: None }
    }

    /// The listeners of the caller's session hear of it too.
    pub fn heard_by_session(mut self, service: Option<&Service>, caller: &Caller) -> Self {
        if let (Some(service), Some(session)) = (service, caller.within) {
            self.session = Some((service.clone(), session, caller.connection.as_ref().map(|connection| connection.id.clone())));
        }
        self
    }

    /// Waits for the work, and tells of the execution it waits for meanwhile.
    pub async fn during<T>(&self, execution: Option<Arc<Live>>, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut watched = execution.map(|live| live.watch());
        // What was written before anybody watched is news too.
        if let Some(watched) = watched.as_mut().filter(|watched| watched.borrow().output.bytes > 0) {
            watched.mark_changed();
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

    async fn tell(&self, watched: Option<&watch::Receiver<Progress>>) {
        // Time only grows, as progress has to.
        let secs = self.started.elapsed().as_secs_f64();
        let message = match watched.map(|watched| watched.borrow().output) {
            Some(output) => format!("running for {secs:.1} s, {} bytes of output so far", output.bytes),
            None => format!("running for {secs:.1} s"),
        };
        if let Some((service, session, connection)) = &self.session {
            let token = serde_json::to_value(&self.token).unwrap_or_default();
            service.tell_session(*session, Event::Progress { token, secs, message: message.clone(), connection: connection.clone() });
        }
        let progress = ProgressNotificationParam::new(self.token.clone(), secs).with_message(message);
        // Whoever no longer listens misses nothing.
        let _ = self.peer.notify_progress(progress).await;
    }
}

/// Output, or the time after which silence is too long.
async fn news(watched: &mut Option<watch::Receiver<Progress>>) {
    let Some(receiver) = watched else { return tokio::time::sleep(INTERVAL).await };
    if let Ok(Err(_)) = tokio::time::timeout(INTERVAL, receiver.changed()).await {
        *watched = None;
    }
}
