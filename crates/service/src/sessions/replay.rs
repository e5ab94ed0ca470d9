//! Repeats the turns of a session from the journal, one after the other, each in the state after the one before, and compares.

use super::{Sessions, session_not_found};
use crate::executions::{KnownState, NotRecorded, RecordedRun, ReplayPoint, Replayer};
use crate::{Caller, Service, ServiceError};
use heapstead_engine::Engine;
use heapstead_store::records::{LogEntry, LogRange};
use heapstead_types::{ErrorCode, Failure, SessionName, Status};
use schemars::JsonSchema;
use serde::Serialize;

/// The most turns that one request repeats.
pub const REPLAY_TURNS_MAX: u32 = 1_000;

/// Which turns to repeat.
#[derive(Debug, Clone, Copy, Default)]
pub struct TurnRange {
    pub from: Option<u64>,
    pub to: Option<u64>,
}

/// How the turns of a session and their replays compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SessionReplay {
    /// Whether every turn was repeated, with the same result, output and status.
    pub identical: bool,
    /// In order.
    pub turns: Vec<ReplayedTurn>,
    /// The engine that repeated them.
    pub engine: String,
    /// The session has more turns: pass this as `from` to repeat them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_from: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReplayedTurn {
    /// Its number in the session: 0, 1, 2 …
    pub turn: u64,
    pub execution_id: String,
    pub outcome: TurnOutcome,
    /// What differs: `status`, `result`, `output`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differs: Vec<&'static str>,
    /// Why the replay failed, or why the turn was not repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    Identical,
    Differs,
    NotRepeated,
}

impl Service {
    /// See [`Sessions::replay`].
    pub async fn replay_session(&self, caller: &Caller, handle: &str, range: TurnRange) -> Result<SessionReplay, ServiceError> {
        self.refuse_while_closing()?;
        self.sessions().replay(&self.runtime.engine, caller, handle, range).await
    }
}

impl Sessions<'_> {
    /// Repeats turns of a session of the caller's. Nothing is stored or changed.
    pub async fn replay(&self, engine: &Engine, caller: &Caller, handle: &str, range: TurnRange) -> Result<SessionReplay, ServiceError> {
        let session = self.log_name(caller, Some(handle)).await?.ok_or_else(|| session_not_found(handle))?;
        let chain = Chain { replayer: Replayer::new(self.0, engine, &caller.principal, caller.budget_holder()).await, session };
        let from = range.from.unwrap_or_default();
        // A name exists because of its log, and an opened session without turns has nothing to repeat.
        chain.entry(0).await?.ok_or_else(|| session_not_found(handle))?;
        if let Some(to) = range.to.filter(|to| *to < from) {
            return Err(ServiceError::bad_value("to", to.to_string(), format!("expected a turn from {from}")));
        }
        if chain.entry(from).await?.is_none() {
            return Err(ServiceError::conflict(ErrorCode::Conflict, format!("`from` is {from}, and the session has no such turn yet")));
        }
        let (start, before) = chain.start(from).await?;
        let (entries, has_more) = chain.entries(start, range.to).await?;
        let next_from = entries.last().filter(|_| has_more).map(|last| last.index + 1);
        let mut turns = chain.repeat(&entries, before).await?;
        // Earlier ones were repeated only to get the state.
        turns.retain(|turn| turn.turn >= from);
        Ok(SessionReplay {
            identical: turns.iter().all(|turn| turn.outcome == TurnOutcome::Identical),
            next_from,
            turns,
            engine: engine.info().id.to_string(),
        })
    }
}

/// The turns of one session.
struct Chain<'a> {
    replayer: Replayer<'a>,
    session: SessionName,
}

impl Chain<'_> {
    /// The last turn at or before this one that starts fresh, or from a heap that this engine can load, with that heap; otherwise this one.
    async fn start(&self, from: u64) -> Result<(u64, Option<ReplayPoint>), ServiceError> {
        for turn in (0..=from).rev() {
            let Some(entry) = self.entry(turn).await? else { continue };
            let Ok(recorded) = self.replayer.recorded(&entry.execution_id).await? else { continue };
            let Some(key) = recorded.entry.input_heap else { return Ok((turn, None)) };
            // Kept, because a heap that was deleted may still be there for a moment.
            let heap_mb = recorded.entry.limits.heap_mb;
            if let Ok(image) = self.replayer.restore(key, heap_mb).await {
                let Some(recorded) = entry.before else { return Ok((turn, None)) };
                return Ok((turn, Some(self.replayer.point(Some(KnownState { recorded, image }), heap_mb).await?)));
            }
        }
        Ok((from, None))
    }

    async fn entry(&self, turn: u64) -> Result<Option<LogEntry>, ServiceError> {
        let range = LogRange { from: turn, limit: Some(1), code_bytes_each: Some(0), ..LogRange::default() };
        let (entries, _) = self.replayer.stores.records.session_log(self.replayer.principal, &self.session, range).await?;
        Ok(entries.into_iter().next().filter(|entry| entry.index == turn))
    }

    /// The log from this turn on, without code, and whether there is more.
    async fn entries(&self, from: u64, to: Option<u64>) -> Result<(Vec<LogEntry>, bool), ServiceError> {
        let asked = to.map_or(u64::from(REPLAY_TURNS_MAX), |to| to - from + 1);
        let limit = asked.min(REPLAY_TURNS_MAX.into()) as u32;
        let range = LogRange { from, limit: Some(limit), code_bytes_each: Some(0), ..LogRange::default() };
        Ok(self.replayer.stores.records.session_log(self.replayer.principal, &self.session, range).await?)
    }

    async fn repeat(&self, entries: &[LogEntry], mut before: Option<ReplayPoint>) -> Result<Vec<ReplayedTurn>, ServiceError> {
        let mut turns = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let turn = |outcome, differs, reason| ReplayedTurn {
                turn: entry.index,
                execution_id: entry.execution_id.to_string(),
                outcome,
                differs,
                reason,
            };
            match self.point_before(entry, before.take(), index == 0).await? {
                Err(why) => turns.push(turn(TurnOutcome::NotRepeated, Vec::new(), Some(why.to_string()))),
                Ok((recorded, point)) => {
                    let replayed = self.replayer.run(&recorded, point.kind()).await?;
                    // A session's log has completed runs only.
                    let differs = replayed.differences(Status::Completed, &recorded.entry);
                    let outcome = if differs.is_empty() { TurnOutcome::Identical } else { TurnOutcome::Differs };
                    turns.push(turn(outcome, differs, replayed.error.clone()));
                    // After a difference, the next turn is judged by the heap that it started from.
                    if outcome == TurnOutcome::Identical {
                        before = Some(point.after(replayed, entry.after).await?);
                    }
                }
            }
        }
        Ok(turns)
    }

    /// The recording of a turn and the state to repeat it in: that of the replay before, if the turn continued from there. If catalog entities
    /// were imported in between, the import is repeated, unless this engine can load its heap.
    async fn point_before(
        &self,
        entry: &LogEntry,
        before: Option<ReplayPoint>,
        is_first: bool,
    ) -> Result<Result<(RecordedRun, ReplayPoint), NotRecorded>, ServiceError> {
        let recorded = match self.replayer.recorded(&entry.execution_id).await? {
            Ok(recorded) => recorded,
            Err(why) => return Ok(Err(why)),
        };
        let heap_mb = recorded.entry.limits.heap_mb;
        let point = match (recorded.entry.input_heap, before) {
            (None, _) => Ok(self.replayer.point(None, heap_mb).await?),
            (Some(_), Some(before)) if before.serves(entry.before, heap_mb) => Ok(before),
            // After a difference, repeating what led to the turn differs too.
            (Some(key), None) if !is_first => match self.replayer.restore(key, heap_mb).await {
                Ok(image) => Ok(self.replayer.point(Some(KnownState { recorded: key, image }), heap_mb).await?),
                Err(Failure::StateLost) => Err(NotRecorded::NotReached),
                Err(failure) => Err(NotRecorded::Heap(failure)),
            },
            (Some(key), before) => self.replayer.point_at(key, heap_mb, before).await?,
        };
        Ok(point.map(|point| (recorded, point)))
    }
}
