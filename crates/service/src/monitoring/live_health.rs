//! Live sessions in the health document.

use super::metrics::check_may_watch;
use crate::live::{LivePolicy, LiveStatus};
use crate::{Caller, Service};
use heapstead_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;

/// How the problems of live sessions begin. They are not needed to serve calls.
pub const LIVE_SESSIONS: &str = "live sessions";

/// Opened sessions whose heap is in memory: of all owners for operators, of the caller for others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LiveHealth {
    /// Whether sessions can be live: `on`, `off` (`--live`), or `unavailable` with the reason; then every turn restores a heap and stores one.
    pub state: String,
    pub sessions: u64,
    /// As it was measured last.
    pub memory_mb: u64,
    /// Sessions whose last checkpoint could not be written. Their turns are in the journal.
    pub checkpoints_failing: u64,
    /// Why that of one of them could not be. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_failure: Option<String>,
}

impl LiveHealth {
    /// Of a stateless server.
    pub fn none() -> Self {
        Self { state: "off".into(), sessions: 0, memory_mb: 0, checkpoints_failing: 0, checkpoint_failure: None }
    }

    fn of(state: String, status: LiveStatus) -> Self {
        Self {
            state,
            sessions: status.sessions,
            memory_mb: status.memory_bytes >> 20,
            checkpoints_failing: status.failing,
            checkpoint_failure: status.failure,
        }
    }
}

impl Service {
    /// Also the problem, if checkpoints fail because of the server. Code that keeps a value which can't be stored is not one: anybody could
    /// degrade the server with it.
    pub(super) fn live_health(&self, caller: &Caller) -> (LiveHealth, Option<String>) {
        let live = &self.runtime.live;
        let problem = live
            .failure_of_server()
            .map(|(sessions, why)| format!("{LIVE_SESSIONS}: the heaps of {sessions} can't be stored, for example because: {why}"));
        let owner = check_may_watch(&caller.principal).is_err().then_some(&caller.principal);
        (LiveHealth::of(state(self.engine(), &self.policy().live), live.status(owner)), problem)
    }
}

fn state(engine: &Engine, policy: &LivePolicy) -> String {
    match engine.live() {
        _ if !policy.is_on => "off".into(),
        Ok(()) => "on".into(),
        Err(why) => format!("unavailable: {why}"),
    }
}
