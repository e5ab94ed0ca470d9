//! Health of the context store, measured by a probe.

use crate::Contexts;
use crate::store::Stats;
use serde::Serialize;
use std::time::Duration;
use tokio::task::JoinHandle;

/// A store that takes longer counts as down.
const PROBE_DEADLINE: Duration = Duration::from_secs(3);
/// Memory use above this percentage is reported as degraded.
const PRESSURE_PCT_MAX: u64 = 90;

/// The `context_store` member of `health_check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoreHealth {
    pub backend: &'static str,
    /// Null until all keys in a shared Redis have been scanned once.
    pub session_count: Option<u64>,
    pub max_sessions: Option<u64>,
    /// Memory of the store, not of the process.
    pub heap_used_mb: u64,
    pub heap_pressure_pct: u64,
    /// True if Redis is not used.
    pub redis_ok: bool,
    /// The problems found; empty if healthy.
    #[serde(skip)]
    pub degraded: Vec<String>,
}

impl Contexts {
    pub async fn health(&self) -> StoreHealth {
        let store = &self.inner().store;
        let probe = async {
            store.check().await?;
            store.stats().await
        };
        let probed = tokio::time::timeout(PROBE_DEADLINE, probe).await;
        let (stats, failure) = match probed {
            Ok(Ok(stats)) => (stats, None),
            Ok(Err(error)) => (Stats::default(), Some(error.to_string())),
            Err(_) => (Stats::default(), Some(format!("the context store did not answer within {} s", PROBE_DEADLINE.as_secs()))),
        };
        describe(store.backend(), stats, failure)
    }

    /// Whether the store can be read and written now.
    pub async fn is_up(&self) -> bool {
        matches!(tokio::time::timeout(PROBE_DEADLINE, self.inner().store.check()).await, Ok(Ok(())))
    }

    /// Sessions, memory and evictions, for metrics.
    pub async fn stats(&self) -> Result<Stats, crate::StoreError> {
        self.inner().store.stats().await
    }

    /// Sweeps expired contexts at this interval until the returned value is dropped.
    pub fn keep_up(&self, interval: Duration) -> Upkeep {
        let contexts = self.clone();
        Upkeep(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(interval.max(Duration::from_millis(10)));
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                if let Err(error) = contexts.inner().store.sweep().await {
                    tracing::debug!(%error, "expired contexts could not be removed");
                }
            }
        }))
    }
}

fn describe(backend: &'static str, stats: Stats, failure: Option<String>) -> StoreHealth {
    let heap_pressure_pct = stats.memory_bytes_max.filter(|max| *max > 0).map_or(0, |max| stats.memory_bytes * 100 / max);
    let mut degraded: Vec<String> = failure.iter().cloned().collect();
    if heap_pressure_pct > PRESSURE_PCT_MAX {
        degraded.push(format!("contexts take {heap_pressure_pct} % of the memory they may take"));
    }
    if stats.sessions_max.is_some_and(|max| stats.sessions >= Some(max)) {
        degraded.push(format!("{} sessions are held, which is the most there may be", stats.sessions.unwrap_or_default()));
    }
    StoreHealth {
        backend,
        session_count: stats.sessions,
        max_sessions: stats.sessions_max,
        heap_used_mb: stats.memory_bytes >> 20,
        heap_pressure_pct,
        redis_ok: backend != "redis" || failure.is_none(),
        degraded,
    }
}

/// Stops the sweeps when dropped.
#[must_use = "upkeep ends when this is dropped"]
#[derive(Debug)]
pub struct Upkeep(JoinHandle<()>);

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_degrades_by_itself() {
        let stats = |sessions, memory_bytes| Stats {
            sessions: Some(sessions),
            sessions_max: Some(10),
            memory_bytes,
            memory_bytes_max: Some(100 << 20),
            ..Stats::default()
        };
        for (backend, stats, failure, problems, redis_ok) in [
            ("memory", stats(9, 90 << 20), None, 0, true),
            ("memory", stats(9, 91 << 20), None, 1, true),
            ("memory", stats(10, 0), None, 1, true),
            ("redis", Stats::default(), Some("down".to_owned()), 1, false),
            ("sqlite", Stats::default(), Some("locked".to_owned()), 1, true),
        ] {
            let health = describe(backend, stats, failure);
            assert_eq!((health.degraded.len(), health.redis_ok), (problems, redis_ok), "{health:?}");
        }
        let shown = serde_json::to_value(describe("memory", stats(3, 50 << 20), None)).expect("json");
        let expected = serde_json::json!({ "backend": "memory", "session_count": 3, "max_sessions": 10, "heap_used_mb": 50, "heap_pressure_pct": 50, "redis_ok": true });
        assert_eq!(shown, expected);
    }
}
