//! Cursors of lists, on a small database: a text that no answer returned is refused or continues a list, but never begins it again, and no page
//! shows what another owner has.

use heapstead_service::{Caller, EntryField, ListRequest, LogRequest, NamesRequest, Policy, Stores};
use heapstead_store::records::{ExecutionEnd, NewExecution, NewLogEntry, RunSession};
use heapstead_store::{Database, HeapStore, Owner};
use heapstead_types::{ExecutionId, HeapKey, SessionName, Status};
use std::collections::BTreeSet;
use std::sync::LazyLock;
use tokio::runtime::Runtime;

/// Rows of each kind and owner.
const ROWS: u8 = 5;
const LOG: &str = "log";

struct Fixture {
    runtime: Runtime,
    stores: Stores,
    caller: Caller,
    /// Everything that belongs to the other owner.
    foreign: BTreeSet<String>,
    _folder: tempfile::TempDir,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let _entered = runtime.enter();
    let database = Database::open(&folder.path().join("sessions"), Owner::Anyone).expect("a database");
    let heaps = HeapStore::in_folder(&folder.path().join("heaps"), Owner::Anyone).expect("a folder for heaps");
    let records = database.records.clone();
    let stores = Stores::open(heaps, database, Policy::default());
    let [caller, other] =
        ["acme/ann", "other/bob"].map(|owner| Caller { principal: owner.parse().expect("an owner"), ..Caller::default() });
    let foreign = runtime.block_on(async {
        let mut foreign = BTreeSet::new();
        for (number, owner) in [&caller, &other].into_iter().enumerate() {
            for row in 0..ROWS {
                let session = stores.sessions().open(owner).await.expect("a session");
                let id = ExecutionId::from_random([number as u8 * ROWS + row; 16]);
                let now = jiff::Timestamp::now();
                let session_of_run = RunSession::Named(LOG.parse().expect("a name"));
                let run = Some(session_of_run.clone());
                let new =
                    NewExecution { id: id.clone(), principal: owner.principal.clone(), session: run, started_at: now, input_heap: None };
                records.accept_execution(new, None).await.expect("accepted");
                let heap = HeapKey::from_digest([row; 32]);
                let entry = NewLogEntry {
                    instead_of: None,
                    session: session_of_run,
                    input_heap: None,
                    output_heap: heap,
                    code: row.to_string().into(),
                    timestamp: now,
                    execution_id: id.clone(),
                };
                let end = ExecutionEnd { log: Some(entry), ..ExecutionEnd::bare(Status::Completed) };
                records.end_execution(id.clone(), end).await.expect("ended");
                if number == 1 {
                    foreign.extend([session.id.to_string(), id.to_string()]);
                }
            }
        }
        foreign
    });
    drop(_entered);
    Fixture { runtime, stores, caller, foreign, _folder: folder }
});

pub fn run(input: (u8, &str)) {
    let (limit, cursor) = (u32::from(input.0 % ROWS) + 1, input.1.to_owned());
    let Fixture { runtime, stores, caller, .. } = &*FIXTURE;
    runtime.block_on(async {
        let (sessions, executions) = (stores.sessions(), stores.executions());
        let opened = async |cursor: Option<&str>| {
            let page = sessions.list_opened(caller, cursor, Some(limit)).await.ok()?;
            Some(page.sessions.iter().map(|session| session.session_id.to_string()).collect::<Vec<_>>())
        };
        check(opened(None).await, opened(Some(&cursor)).await);
        let ran = async |cursor: Option<String>| {
            let page = executions.list(caller, ListRequest { limit: Some(limit), cursor, ..ListRequest::default() }).await.ok()?;
            Some(page.executions.iter().map(|execution| execution.execution_id.to_string()).collect::<Vec<_>>())
        };
        check(ran(None).await, ran(Some(cursor.clone())).await);
        let logged = async |cursor: Option<String>| {
            let (session, fields) = (LOG.parse::<SessionName>().expect("a name"), vec![EntryField::Index, EntryField::ExecutionId]);
            let page = sessions.log(caller, LogRequest { session, fields: Some(fields), limit: Some(limit), cursor }).await.ok()?;
            Some(page.entries.iter().map(|entry| entry.execution_id.clone().unwrap_or_default()).collect::<Vec<_>>())
        };
        // The first entry of a log has a cursor, 0.
        if cursor.trim_start_matches(['0', '+']).len() > 0 {
            check(logged(None).await, logged(Some(cursor.clone())).await);
        }
        let _ = sessions.list_names(caller, NamesRequest { limit: Some(limit), cursor: Some(cursor) }).await;
    });
}

/// A page after a cursor does not begin as the list does, and shows nothing of the other owner.
fn check(first: Option<Vec<String>>, page: Option<Vec<String>>) {
    let Some(page) = page else { return };
    assert!(page.is_empty() || first.and_then(|first| first.first().cloned()) != page.first().cloned(), "the list begins again");
    assert!(page.iter().all(|id| !FIXTURE.foreign.contains(id)), "a row of another owner");
}
