//! What the suites share: a place where records are stored, values to store, and races between servers.

use heapstead_store::Tags;
use heapstead_store::outputs::Extent;
use heapstead_store::records::{
    ExecutionEnd, NewExecution, NewHeap, NewHeapEngine, NewLogEntry, NewReservation, NewSession, Records, ReservationId, ReservedHeap,
    RunSession,
};
use heapstead_types::{ExecutionId, HeapKey, Principal, ServerId, SessionId, SessionName, Status};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// An implementation of the record traits, empty at first. Every server that opens it sees the same records.
pub trait Place: Send + Sync {
    fn open_as(&self, server: &ServerId) -> Arc<dyn Records>;

    fn open(&self) -> Arc<dyn Records> {
        self.open_as(&server(1))
    }
}

/// Runs this at once on several servers, each with connections of its own, and returns their answers.
pub async fn race<T, F>(place: &dyn Place, servers: u8, work: impl Fn(u8, Arc<dyn Records>) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let opened: Vec<_> = (0..servers).map(|number| place.open_as(&server(number))).collect();
    let tasks: Vec<_> = (0..servers).zip(opened).map(|(number, records)| tokio::spawn(work(number, records))).collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("no panic"));
    }
    answers
}

pub fn server(number: u8) -> ServerId {
    ServerId::from_random([number; 8])
}

pub fn session_id(number: u8) -> SessionId {
    SessionId::from_random([number; 32])
}

/// The time, as precise as records are.
pub fn now() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::now().as_microsecond()).expect("a time")
}

pub fn hours(number: i64) -> SignedDuration {
    SignedDuration::from_hours(number)
}

/// An opened session that expires in an hour.
pub fn new_session(number: u8) -> NewSession {
    let at = now();
    let expires_at = Some(at + hours(1));
    NewSession { id: session_id(number), principal: anyone(), connection: None, head: None, at, expires_at }
}

/// A run in that session.
pub fn in_session(id: &ExecutionId, number: u8) -> NewExecution {
    let expires_at = now() + hours(2);
    NewExecution { session: Some(RunSession::Opened { id: session_id(number), logical: None, expires_at }), ..new(id) }
}

pub fn id(number: u64) -> ExecutionId {
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&number.to_be_bytes());
    ExecutionId::from_random(bits)
}

pub fn heap(number: u64) -> HeapKey {
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&number.to_be_bytes());
    HeapKey::from_digest(digest)
}

/// A heap to record, without a reservation and an engine.
pub fn stored(key: HeapKey, bytes: u64) -> NewHeap {
    NewHeap { key, bytes, engine: NewHeapEngine::Named(None), reservation: None }
}

/// Room for a heap that was not in the store before.
pub fn reservation(principal: Principal, number: u64, bytes: u64) -> NewReservation {
    let heap = Some(ReservedHeap { key: heap(number), is_new: Some(true) });
    NewReservation { id: ReservationId::new(), principal, bytes, heap, at: now() }
}

pub fn anyone() -> Principal {
    Principal::anonymous()
}

pub fn ann() -> Principal {
    "acme/ann".parse().expect("an owner")
}

pub fn bob() -> Principal {
    "acme/bob".parse().expect("an owner")
}

pub fn session(name: &str) -> SessionName {
    name.parse().expect("a name")
}

pub fn new(id: &ExecutionId) -> NewExecution {
    NewExecution { id: id.clone(), principal: anyone(), session: None, started_at: now(), input_heap: None }
}

pub fn end(status: Status) -> ExecutionEnd {
    ExecutionEnd {
        result: Some("1".into()),
        warnings: vec!["careful".into()],
        output: Extent { bytes: 5, lines: 2 },
        ..ExecutionEnd::bare(status)
    }
}

pub fn logged(id: &ExecutionId, number: u64) -> ExecutionEnd {
    let entry = NewLogEntry {
        instead_of: None,
        session: RunSession::Named(session("s")),
        input_heap: None,
        output_heap: heap(number),
        code: format!("{number}").into(),
        timestamp: now(),
        execution_id: id.clone(),
    };
    ExecutionEnd { heap: Some(stored(heap(number), 700)), log: Some(entry), ..end(Status::Completed) }
}

pub fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// The end of a run in an opened session.
pub fn logged_in(id: &ExecutionId, session: u8, number: u64) -> ExecutionEnd {
    let mut end = logged(id, number);
    if let (Some(entry), Some(session)) = (&mut end.log, in_session(id, session).session) {
        entry.session = session;
    }
    end
}
