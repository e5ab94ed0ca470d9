//! What is counted of live sessions since the process started.

use crate::sessions::{Continuity, Reason};
use prometheus::{IntCounter, IntCounterVec, Opts};

/// Why a session is not live any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvictionReason {
    Idle,
    /// Live sessions take more than they may.
    Memory,
    /// Its owner has more live sessions than it may.
    OwnerLimit,
    /// The machine runs out of memory.
    Pressure,
    /// The session has ended or expired.
    Ended,
}

impl EvictionReason {
    const ALL: [Self; 5] = [Self::Idle, Self::Memory, Self::OwnerLimit, Self::Pressure, Self::Ended];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Memory => "memory",
            Self::OwnerLimit => "owner_limit",
            Self::Pressure => "pressure",
            Self::Ended => "ended",
        }
    }
}

/// Cheap to clone: clones count together.
#[derive(Debug, Clone)]
pub struct LiveMeter {
    evictions: IntCounterVec,
    checkpoints: IntCounterVec,
    resumes: IntCounter,
    replayed_turns: IntCounter,
    divergences: IntCounter,
}

const WRITTEN: &str = "written";
const FAILED: &str = "failed";

impl Default for LiveMeter {
    fn default() -> Self {
        let reasons = EvictionReason::ALL.map(EvictionReason::as_str);
        Self {
            evictions: labelled("heapstead_live_evictions_total", "Sessions that are not live any more, by reason.", "reason", &reasons),
            checkpoints: labelled(
                "heapstead_live_checkpoints_total",
                "Checkpoints of live sessions by result.",
                "result",
                &[WRITTEN, FAILED],
            ),
            resumes: counter("heapstead_live_resumes_total", "Sessions with a state that became live."),
            replayed_turns: counter("heapstead_replayed_turns_total", "Turns that were repeated to resume a session."),
            divergences: counter(
                "heapstead_replay_divergences_total",
                "Sessions that were resumed from an earlier state, because a turn could not be repeated.",
            ),
        }
    }
}

impl LiveMeter {
    pub fn evicted(&self, reason: EvictionReason) {
        self.evictions.with_label_values(&[reason.as_str()]).inc();
    }

    pub fn checkpoint(&self, is_written: bool) {
        self.checkpoints.with_label_values(&[if is_written { WRITTEN } else { FAILED }]).inc();
    }

    pub fn resumed(&self) {
        self.resumes.inc();
    }

    /// Turns were repeated to resume a session.
    pub fn replayed(&self, turns: u64) {
        self.replayed_turns.inc_by(turns);
    }

    /// Counts sessions that continue from an earlier state, because a turn did something else when it was repeated.
    pub fn continued(&self, continuity: &Continuity) {
        if continuity.reason == Some(Reason::ReplayDiverged) {
            self.divergences.inc();
        }
    }

    pub fn labelled_counters(&self) -> [IntCounterVec; 2] {
        [self.evictions.clone(), self.checkpoints.clone()]
    }

    pub fn counters(&self) -> [IntCounter; 3] {
        [self.resumes.clone(), self.replayed_turns.clone(), self.divergences.clone()]
    }
}

/// With all values of its label, so that each is exported from the start.
fn labelled(name: &str, help: &str, label: &str, values: &[&str]) -> IntCounterVec {
    let counters = IntCounterVec::new(Opts::new(name, help), &[label]).expect("the name and the label are valid constants");
    for value in values {
        counters.with_label_values(&[value]);
    }
    counters
}

fn counter(name: &str, help: &str) -> IntCounter {
    IntCounter::new(name, help).expect("the name is a valid constant")
}
