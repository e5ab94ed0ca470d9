//! Eviction of live sessions: those that were not used for long, and the least recently used ones if they take too much memory or their owner has
//! too many. If the newest state of such a session is not stored, that is done first. If the machine runs out of memory there is no time for it.

use super::{LiveSession, LiveSessions};
use crate::Service;
use crate::monitoring::EvictionReason;
use heapstead_types::{BudgetHolder, SessionId};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// How often idle sessions and the memory of the machine are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often the memory of sessions is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(5);
/// How often sessions are looked for that were ended, or continued, by another process on the same database.
const ENDED_INTERVAL: Duration = Duration::from_secs(5);
/// How long an eviction waits for a checkpoint.
const CHECKPOINT_MAX: Duration = Duration::from_secs(60);
/// Sessions of one owner above its limit, which wait for their checkpoint.
const LEAVING_MAX: usize = 8;

/// Evicts in the background until the service is dropped.
pub fn start(service: &Service) {
    let (stores, runtime, policy) = (service.stores.downgrade(), Arc::downgrade(&service.runtime), service.policy().live);
    tokio::spawn(async move {
        let (mut measured, mut checked) = (Instant::now(), Instant::now());
        loop {
            tokio::time::sleep(INTERVAL).await;
            let (Some(stores), Some(runtime)) = (stores.upgrade(), Weak::upgrade(&runtime)) else { return };
            let service = Service { stores, runtime };
            let live = &service.runtime.live;
            if live.count() == 0 {
                continue;
            }
            live.evict_under_pressure(super::pressure::shortage_kib());
            live.idle(policy.idle).into_iter().for_each(|session| service.evict(session, EvictionReason::Idle));
            live.to_retry().into_iter().for_each(|session| service.checkpoint(session));
            if measured.elapsed() >= MEASURE_INTERVAL {
                measured = Instant::now();
                let memory = live.memory_kib().await;
                live.over(&memory, policy.memory_mb_max << 10)
                    .into_iter()
                    .for_each(|session| service.evict(session, EvictionReason::Memory));
            }
            if checked.elapsed() >= ENDED_INTERVAL {
                checked = Instant::now();
                service.drop_ended().await;
            }
        }
    });
}

impl Service {
    /// Makes room for so many more sessions of an owner: evicts its least recently used ones.
    pub(crate) fn make_room(&self, holder: &BudgetHolder, coming: usize) {
        for (session, is_urgent) in self.runtime.live.over_per_owner(holder, self.policy().live.per_owner_max, coming) {
            match is_urgent {
                true => self.runtime.live.evict(session, EvictionReason::OwnerLimit),
                false => self.evict(session, EvictionReason::OwnerLimit),
            }
        }
    }

    /// Evicts a session, unless it is used meanwhile. Its newest state is stored first, if it can be.
    fn evict(&self, session: SessionId, reason: EvictionReason) {
        let Some(used) = self.runtime.live.begin_to_leave(session, reason) else { return };
        let service = self.clone();
        tokio::spawn(async move {
            service.checkpoint(session);
            let _ = tokio::time::timeout(CHECKPOINT_MAX, service.runtime.checkpoints.idle(session)).await;
            service.runtime.live.leave(session, used, reason);
        });
    }

    /// Sessions that another process has ended or continued need no worker.
    async fn drop_ended(&self) {
        let before: HashMap<_, _> = self.runtime.live.sessions().iter().map(|(session, live)| (*session, live.state)).collect();
        let Ok(heads) = self.stores.records.heads(before.keys().copied().collect(), Timestamp::now()).await else { return };
        for (session, head) in heads {
            match head {
                None => self.runtime.live.end(session),
                Some(head) if before.get(&session).is_some_and(|state| *state != head.heap) => {
                    self.runtime.live.end_if_idle(session, before.get(&session).copied().flatten());
                }
                Some(_) => {}
            }
        }
    }
}

impl LiveSessions {
    /// Sessions that were not used for so long.
    fn idle(&self, idle: Duration) -> Vec<SessionId> {
        self.sessions().iter().filter(|(_, live)| !live.in_turn && live.used.elapsed() >= idle).map(|(session, _)| *session).collect()
    }

    /// The least recently used sessions, without which the others fit.
    fn over(&self, memory: &HashMap<SessionId, u64>, kib_max: u64) -> Vec<SessionId> {
        let mut total = 0;
        let mut over = |session: &SessionId| {
            total += memory.get(session).copied().unwrap_or(0);
            total > kib_max
        };
        self.by_use().into_iter().rev().filter(|session| over(session)).collect()
    }

    /// The sessions of an owner that are too many if there are so many more, and whether they can't wait for a checkpoint.
    fn over_per_owner(&self, holder: &BudgetHolder, per_owner_max: usize, coming: usize) -> Vec<(SessionId, bool)> {
        let sessions = self.sessions();
        if sessions.len() + coming <= per_owner_max {
            return Vec::new();
        }
        let mut own: Vec<(Instant, SessionId)> = sessions
            .iter()
            .filter(|(_, live)| live.holder == *holder && !live.in_turn)
            .map(|(session, live)| (live.used, *session))
            .collect();
        own.sort_unstable_by_key(|(used, _)| *used);
        let in_turn = sessions.values().filter(|live| live.holder == *holder && live.in_turn).count();
        let excess = (own.len() + in_turn + coming).saturating_sub(per_owner_max.max(1));
        own.into_iter().take(excess).enumerate().map(|(index, (_, session))| (session, index + LEAVING_MAX < excess)).collect()
    }

    /// Evicts the least recently used sessions that take so much together, at once.
    fn evict_under_pressure(&self, shortage_kib: u64) {
        let mut freed_kib = 0;
        for session in self.by_use() {
            if freed_kib >= shortage_kib {
                break;
            }
            freed_kib += self.sessions().get(&session).filter(|live| !live.in_turn).map_or(0, |live| live.memory_bytes() >> 10);
            self.evict(session, EvictionReason::Pressure);
        }
    }

    /// The least recently used one first.
    fn by_use(&self) -> Vec<SessionId> {
        let mut used: Vec<_> = self.sessions().iter().map(|(session, live)| (live.used, *session)).collect();
        used.sort_unstable_by_key(|(used, _)| *used);
        used.into_iter().map(|(_, session)| session).collect()
    }

    /// Evicts a session unless it is in a turn.
    fn evict(&self, session: SessionId, reason: EvictionReason) {
        let mut sessions = self.sessions();
        if sessions.get(&session).is_some_and(|live| !live.in_turn) {
            sessions.remove(&session);
            self.meter.evicted(reason);
        }
    }

    /// When the session was used last, if it needs a checkpoint before it is evicted. One that needs none, or can't have one, is evicted now.
    fn begin_to_leave(&self, session: SessionId, reason: EvictionReason) -> Option<Instant> {
        let mut sessions = self.sessions();
        let live = sessions.get_mut(&session).filter(|live| !live.in_turn && !live.is_leaving)?;
        if live.unstored_turns() > 0 && live.failure.is_none() {
            live.is_leaving = true;
            return Some(live.used);
        }
        sessions.remove(&session);
        self.meter.evicted(reason);
        None
    }

    /// Evicts a session that was to have a checkpoint before, unless it was used since.
    fn leave(&self, session: SessionId, used: Instant, reason: EvictionReason) {
        let mut sessions = self.sessions();
        let Some(live) = sessions.get_mut(&session) else { return };
        live.is_leaving = false;
        if !live.in_turn && live.used == used {
            sessions.remove(&session);
            self.meter.evicted(reason);
        }
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
