//! Eviction of live sessions: those that were not used for long, and the least recently used ones if they take too much memory.

use super::{LiveSession, LiveSessions};
use crate::Service;
use heapstead_types::SessionId;
use std::collections::HashMap;
use std::sync::Weak;
use std::time::{Duration, Instant};

/// How often memory and idle sessions are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// Evicts in the background until the service is dropped.
pub fn start(service: &Service) {
    let (runtime, policy) = (std::sync::Arc::downgrade(&service.runtime), service.policy().live);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(INTERVAL.min(policy.idle.max(Duration::from_millis(100)))).await;
            let Some(live) = Weak::upgrade(&runtime).map(|runtime| runtime.live.clone()) else { return };
            live.evict_idle(policy.idle);
            live.evict_over(policy.memory_mb_max << 10).await;
        }
    });
}

impl LiveSessions {
    fn evict_idle(&self, idle: Duration) {
        self.sessions().retain(|_, live| live.in_turn || live.used.elapsed() < idle);
    }

    /// Evicts the least recently used sessions until the others fit.
    async fn evict_over(&self, kib_max: u64) {
        let memory = self.memory_kib().await;
        let mut used: Vec<_> = self.sessions().iter().map(|(session, live)| (live.used, *session)).collect();
        used.sort_unstable_by_key(|(used, _)| std::cmp::Reverse(*used));
        let mut total = 0;
        for (_, session) in used {
            total += memory.get(&session).copied().unwrap_or(0);
            if total > kib_max {
                self.evict(session);
            }
        }
    }

    /// Evicts a session unless it is in a turn.
    fn evict(&self, session: SessionId) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|live| !live.in_turn) {
            sessions.remove(&session);
        }
    }

    /// Makes room for another session of an owner: evicts its least recently used ones.
    pub fn make_room(&self, holder: &heapstead_types::BudgetHolder, per_owner_max: usize) {
        let mut sessions = self.sessions();
        let mut own: Vec<(Instant, SessionId)> = sessions
            .iter()
            .filter(|(_, live)| live.holder == *holder && !live.in_turn)
            .map(|(session, live)| (live.used, *session))
            .collect();
        own.sort_unstable_by_key(|(used, _)| *used);
        let excess = (own.len() + 1).saturating_sub(per_owner_max.max(1));
        for (_, session) in own.into_iter().take(excess) {
            sessions.remove(&session);
        }
    }

    /// Evicts all sessions that are not in a turn.
    pub fn evict_all(&self) {
        self.sessions().retain(|_, live| live.in_turn);
    }

    /// Memory of each session, in KiB. Only what was used since is measured again, because that takes a millisecond.
    pub async fn memory_kib(&self) -> HashMap<SessionId, u64> {
        let is_old = |live: &LiveSession| live.memory.is_none_or(|(measured, _)| measured < live.used);
        let old: Vec<_> =
            self.sessions().iter().filter(|(_, live)| is_old(live)).map(|(session, live)| (*session, live.worker.clone())).collect();
        for (session, worker) in old {
            let measured = Instant::now();
            let kib = worker.memory_kib().await;
            if let Some(live) = self.sessions().get_mut(&session) {
                live.memory = Some((measured, kib));
            }
        }
        self.sessions().iter().map(|(session, live)| (*session, live.memory.map_or(0, |(_, kib)| kib))).collect()
    }
}
