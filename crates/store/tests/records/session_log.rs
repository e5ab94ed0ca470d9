//! Session logs.

use crate::common::{
    Place, ann, anyone, bob, heap, id, in_session, logged, logged_in, new, new_session, now, race, server, session, session_id,
};
use heapstead_store::Records;
use heapstead_store::records::{
    EndedExecution, ExecutionEnd, Head, LastTurn, LogEntry, LogRange, NameRange, NewExecution, NewLogEntry, NewSession, OpenedOn,
    RunSession, TextPart,
};
use heapstead_types::{Principal, Status};
use std::sync::Arc;

/// Runs this code in a named session of an owner.
async fn run_in(records: &Arc<dyn Records>, owner: &Principal, name: &str, number: u64, code: &str) {
    records.accept_execution(NewExecution { principal: owner.clone(), ..new(&id(number)) }, None).await.expect("accepted");
    let entry = NewLogEntry {
        instead_of: None,
        session: RunSession::Named(session(name)),
        input_heap: Some(heap(number + 1000)),
        output_heap: heap(number),
        code: code.into(),
        timestamp: now(),
        execution_id: id(number),
    };
    records.end_execution(id(number), ExecutionEnd { log: Some(entry), ..ExecutionEnd::bare(Status::Completed) }).await.expect("ended");
}

fn indices(log: &[LogEntry]) -> Vec<u64> {
    log.iter().map(|entry| entry.index).collect()
}

pub async fn concurrent_servers_number_entries_without_gaps(place: &dyn Place) {
    race(place, 3, |server, records| async move {
        let tasks: Vec<_> = (0..200)
            .filter(|number| number % 3 == u64::from(server))
            .map(|number| {
                let records = records.clone();
                tokio::spawn(async move {
                    records.accept_execution(new(&id(number)), None).await.expect("accepted");
                    let ended = records.end_execution(id(number), logged(&id(number), number)).await.expect("ended");
                    assert!(matches!(ended, EndedExecution::Ended { .. }));
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    })
    .await;
    let log = place.open().session_log(&anyone(), &session("s"), LogRange::default()).await.expect("read").0;
    assert_eq!(indices(&log), (0..200).collect::<Vec<_>>());
    let mut numbers: Vec<u64> = log.iter().map(|entry| entry.code.parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>(), "each once");
}

pub async fn a_log_is_read_in_pages(place: &dyn Place) {
    let records = place.open();
    for number in 0..5 {
        run_in(&records, &anyone(), "s", number, &"x".repeat(10)).await;
    }
    let page = async |from, limit, code_bytes_max| {
        let range = LogRange { from, limit, code_bytes_max, ..LogRange::default() };
        indices(&records.session_log(&anyone(), &session("s"), range).await.expect("read").0)
    };
    assert_eq!(page(0, None, None).await, [0, 1, 2, 3, 4]);
    assert_eq!(page(1, Some(2), None).await, [1, 2]);
    assert_eq!(page(5, None, None).await, [0; 0]);
    // Story: this was taken for -1, so the list began again.
    assert_eq!(page(u64::MAX, None, None).await, [0; 0]);
    assert_eq!(page(0, None, Some(25)).await, [0, 1], "the entry that exceeds the limit is not read");
    assert_eq!(page(0, None, Some(30)).await, [0, 1, 2], "exactly the limit does not exceed it");
    assert_eq!(page(0, None, Some(1)).await, [0], "one entry at least");
    assert_eq!(page(0, Some(1), Some(1)).await, [0]);
    drop(records);
    let log = place.open().session_log(&anyone(), &session("s"), LogRange { from: 3, ..LogRange::default() }).await.expect("read").0;
    let fields = (log[0].input_heap, log[0].output_heap, log[0].code.len(), log[0].execution_id.clone());
    assert_eq!(fields, (Some(heap(1003)), Some(heap(3)), 10, id(3)), "after reopening");
}

pub async fn logs_of_another_owner_do_not_exist(place: &dyn Place) {
    let records = place.open();
    run_in(&records, &ann(), "s", 1, "1").await;
    run_in(&records, &bob(), "s", 2, "2").await;
    run_in(&records, &ann(), "of ann", 3, "3").await;
    let log = records.session_log(&bob(), &session("s"), LogRange::default()).await.expect("read").0;
    assert_eq!(log.iter().map(|entry| (entry.index, entry.code.as_str())).collect::<Vec<_>>(), [(0, "2")], "numbered per owner");
    assert!(records.session_log(&bob(), &session("of ann"), LogRange::default()).await.expect("read").0.is_empty());
    let names = records.session_names(&bob(), OpenedOn::Any, NameRange::default(), now()).await.expect("read");
    assert_eq!(names, ["s"]);
    assert!(records.session_names(&anyone(), OpenedOn::Any, NameRange::default(), now()).await.expect("read").is_empty());
}

pub async fn sessions_with_entries_are_listed_by_name(place: &dyn Place) {
    let records = place.open();
    for (number, connection) in [(1, Some("here")), (2, Some("there")), (3, None), (4, None)] {
        let connection = connection.map(str::to_owned);
        records.open_session(NewSession { connection, ..new_session(number) }, None).await.expect("opened");
    }
    for number in [1, 2, 3] {
        let execution = id(number.into());
        records.accept_execution(in_session(&execution, number), None).await.expect("accepted");
        records.end_execution(execution.clone(), logged_in(&execution, number, 1)).await.expect("ended");
    }
    records.end_session(&anyone(), session_id(3), now()).await.expect("ended");
    records.named_session(&anyone(), &session("empty"), true).await.expect("created");
    run_in(&records, &anyone(), "b", 11, "").await;
    run_in(&records, &anyone(), "a", 12, "").await;
    let (here, there) = (session_id(1).to_string(), session_id(2).to_string());
    let list = async |opened, after: Option<&str>, limit| {
        let range = NameRange { after: after.map(str::to_owned), limit };
        records.session_names(&anyone(), opened, range, now()).await.expect("read")
    };
    assert_eq!(list(OpenedOn::Any, None, None).await, [&here, &there, "a", "b"], "neither empty nor ended sessions");
    assert_eq!(list(OpenedOn::Connection("here".into()), None, None).await, [&here, "a", "b"]);
    assert_eq!(list(OpenedOn::Connection("elsewhere".into()), None, None).await, ["a", "b"]);
    assert_eq!(list(OpenedOn::None, None, None).await, ["a", "b"]);
    assert_eq!(list(OpenedOn::Any, Some(&here), Some(2)).await, [&there, "a"]);
    assert_eq!(list(OpenedOn::Any, Some("b"), Some(2)).await, [""; 0]);
    let later = now() + crate::common::hours(9);
    let expired = records.session_names(&anyone(), OpenedOn::Any, NameRange::default(), later).await.expect("read");
    assert_eq!(expired, ["a", "b"], "opened sessions that have expired are not listed");
}

pub async fn a_log_has_the_heaps_that_its_runs_used_and_produced(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    records.open_session(new_session(2), None).await.expect("opened");
    records.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    let mut end = logged_in(&id(1), 1, 5);
    if let Some(entry) = &mut end.log {
        entry.input_heap = Some(heap(4));
    }
    records.end_execution(id(1), end).await.expect("ended");
    for (session, number, expected) in [(1, 4, true), (1, 5, true), (1, 6, false), (2, 5, false), (3, 5, false)] {
        assert_eq!(records.log_has_heap(session_id(session), heap(number)).await.expect("read"), expected, "{session} {number}");
    }
}

pub async fn the_turn_of_an_execution_is_its_number_in_its_session(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    records.open_session(new_session(2), None).await.expect("opened");
    for (number, session) in [(1, 1), (2, 2), (3, 1)] {
        records.accept_execution(in_session(&id(number), session), None).await.expect("accepted");
        records.end_execution(id(number), logged_in(&id(number), session, number)).await.expect("ended");
    }
    for (session, number, turn) in [(1, 1, Some(0)), (1, 3, Some(1)), (2, 2, Some(0)), (1, 2, None), (1, 9, None), (3, 1, None)] {
        assert_eq!(records.turn_of(session_id(session), &id(number)).await.expect("read"), turn, "{session} {number}");
    }
}

pub async fn undone_turns_stay_in_the_log(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    let run = async |number: u64, before: Option<u64>, instead_of: Option<Option<u64>>| {
        records.accept_execution(in_session(&id(number), 1), None).await.expect("accepted");
        let mut end = logged_in(&id(number), 1, number);
        if let Some(entry) = &mut end.log {
            (entry.input_heap, entry.instead_of) = (before.map(heap), instead_of.map(|head| head.map(heap)));
        }
        records.end_execution(id(number), end).await.expect("ended");
    };
    run(1, None, None).await;
    run(2, Some(1), None).await;
    // It started from another heap than the head.
    run(3, Some(77), Some(Some(2))).await;
    run(4, None, Some(Some(3))).await;
    let turn = |index, before: Option<u64>, after| LastTurn { index, before: before.map(heap), after: heap(after) };
    let last = records.last_turns(session_id(1), 3).await.expect("read");
    assert_eq!(last, [turn(3, Some(3), 4), turn(2, Some(2), 3), turn(1, Some(1), 2)]);

    let head = records.undo_turns(session_id(1), 2, Some(heap(2))).await.expect("undone");
    assert_eq!(head, Some(Head { sequence: 4, heap: Some(heap(2)) }));
    assert_eq!(records.last_turns(session_id(1), 9).await.expect("read"), [turn(1, Some(1), 2), turn(0, None, 1)]);
    run(5, Some(2), None).await;
    let (log, _) = records.session_log(&anyone(), &session(&session_id(1).to_string()), LogRange::default()).await.expect("read");
    assert_eq!(
        log.iter().map(|entry| (entry.index, entry.is_undone)).collect::<Vec<_>>(),
        [(0, false), (1, false), (2, true), (3, true), (4, false)]
    );
    assert_eq!(records.last_turns(session_id(1), 1).await.expect("read"), [turn(4, Some(2), 5)]);
    assert!(records.undo_turns(session_id(1), 0, None).await.expect("undone").is_some(), "back to a fresh heap");
    assert_eq!(records.last_turns(session_id(1), 9).await.expect("read"), []);
    assert!(records.end_session(&anyone(), session_id(1), now()).await.expect("ended"));
    assert_eq!(records.undo_turns(session_id(1), 0, None).await.expect("undone"), None);
    assert_eq!(records.undo_turns(session_id(2), 0, None).await.expect("undone"), None);
}

pub async fn a_run_that_outlives_its_session_adds_no_entry(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(1), None).await.expect("opened");
    one.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    assert!(two.end_session(&anyone(), session_id(1), now()).await.expect("ended"));
    let ended = one.end_execution(id(1), logged_in(&id(1), 1, 5)).await.expect("ended");
    assert_eq!(ended, EndedExecution::Ended { head: None });
    let name = session(&session_id(1).to_string());
    assert!(one.session_log(&anyone(), &name, LogRange::default()).await.expect("read").0.is_empty());
    assert!(!one.log_has_heap(session_id(1), heap(5)).await.expect("read"));
}

pub async fn long_code_is_read_in_parts(place: &dyn Place) {
    let records = place.open();
    let code = "é".repeat(5_000);
    for number in 0..3 {
        run_in(&records, &ann(), "s", number, &code).await;
    }
    let read = async |code_bytes_each, code_bytes_max| {
        let range = LogRange { code_bytes_each, code_bytes_max, ..LogRange::default() };
        let log = records.session_log(&ann(), &session("s"), range).await.expect("read").0;
        assert!(log.iter().all(|entry| entry.code_bytes == 10_000));
        log.iter().map(|entry| entry.code.len()).collect::<Vec<_>>()
    };
    assert_eq!(read(None, None).await, [10_000; 3]);
    assert_eq!(read(Some(0), None).await, [0; 3]);
    assert_eq!(read(Some(101), None).await, [100; 3], "no character is split");
    assert_eq!(read(None, Some(15_000)).await, [10_000], "an entry that does not fit is not read");
    let part = async |owner, index, offset, bytes_max| {
        records.logged_code(&owner, &session("s"), index, TextPart { offset, bytes_max }).await.expect("read")
    };
    assert_eq!(part(ann(), 1, 9_990, 100).await.as_deref(), Some("ééééé"));
    assert_eq!(part(ann(), 3, 0, 100).await, None);
    assert_eq!(part(bob(), 1, 0, 100).await, None, "of another owner");
}
