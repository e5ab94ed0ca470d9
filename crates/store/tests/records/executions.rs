//! Execution records and session logs.

use crate::common::{Place, anyone, end, heap, id, logged, new, server, session};
use heapstead_store::outputs::Extent;
use heapstead_store::records::{Accepted, Cursor, EndedExecution, ExecutionEnd, ExecutionFilter, LogRange, NameRange, OpenedOn};
use heapstead_types::{ErrorCode, Status};
use jiff::{SignedDuration, Timestamp};

pub async fn an_end_is_set_once(place: &dyn Place) {
    let records = place.open();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    let running = records.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((running.status, running.result, running.completed_at), (Status::Running, None, None));
    let end = async |number: u64, heap: u64| records.end_execution(id(number), logged(&id(number), heap)).await.expect("answered");
    assert_eq!(end(1, 9).await, EndedExecution::Ended { head: None });
    assert_eq!(end(1, 8).await, EndedExecution::EndedBefore, "it has ended");
    assert_eq!(end(2, 8).await, EndedExecution::EndedBefore, "it was never accepted");
    let ended = records.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((ended.status, ended.result.as_deref(), ended.heap), (Status::Completed, Some("1"), Some(heap(9))));
    assert_eq!((ended.output, ended.warnings), (Extent { bytes: 5, lines: 2 }, vec!["careful".to_owned()]));
    let log = records.session_log(&anyone(), &session("s"), LogRange::default()).await.expect("read");
    assert_eq!(log.len(), 1, "an end that did not count leaves no entry");
}

pub async fn logs_have_no_gaps_however_many_end_at_once_in_however_many_processes(place: &dyn Place) {
    let records = place.open();
    // Separate connections, like those of other processes.
    let others: Vec<_> = (0..3).map(|number| place.open_as(&server(number))).collect();
    let ends = (0..200).map(|number| {
        let records = others[number as usize % others.len()].clone();
        tokio::spawn(async move {
            records.accept_execution(new(&id(number)), None).await.expect("begun");
            let ended = records.end_execution(id(number), logged(&id(number), number)).await.expect("ended");
            assert!(matches!(ended, EndedExecution::Ended { .. }));
        })
    });
    for ended in ends.collect::<Vec<_>>() {
        ended.await.expect("no panic");
    }
    let log = records.session_log(&anyone(), &session("s"), LogRange::default()).await.expect("read");
    assert_eq!(log.iter().map(|entry| entry.index).collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
    let mut numbers: Vec<u64> = log.iter().map(|entry| entry.code.parse().expect("a number")).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>(), "each once");
    assert_eq!(records.session_names(&anyone(), OpenedOn::Any, NameRange::default(), Timestamp::now()).await.expect("read"), ["s"]);
    let part =
        records.session_log(&anyone(), &session("s"), LogRange { from: 150, limit: Some(10), ..LogRange::default() }).await.expect("read");
    assert_eq!(part.iter().map(|entry| entry.index).collect::<Vec<_>>(), (150..160).collect::<Vec<_>>());
    assert!(records.session_log(&anyone(), &session("other"), LogRange::default()).await.expect("read").is_empty());
}

pub async fn executions_are_listed_newest_first_and_page_by_page(place: &dyn Place) {
    let records = place.open();
    for number in 0..10 {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
    }
    for number in 0..5 {
        let status = if number % 2 == 0 { Status::Completed } else { Status::Failed };
        let long_ago = Timestamp::now() - SignedDuration::from_hours(48);
        let completed_at = if number < 2 { long_ago } else { Timestamp::now() };
        records.end_execution(id(number), ExecutionEnd { completed_at, ..end(status) }).await.expect("ended");
    }
    let list = async |filter: ExecutionFilter| {
        let (found, next) = records.executions(&anyone(), filter).await.expect("read");
        (found.into_iter().map(|summary| summary.id).collect::<Vec<_>>(), next)
    };
    let ids = |numbers: &[u64]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    assert_eq!(list(ExecutionFilter::default()).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]));
    let recent = ExecutionFilter { ended_since: Some(Timestamp::now() - SignedDuration::from_hours(24)), ..Default::default() };
    assert_eq!(list(recent).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2]));
    let failed = ExecutionFilter { status: Some(Status::Failed), ..Default::default() };
    assert_eq!(list(failed).await.0, ids(&[3, 1]));
    let (page, next) = list(ExecutionFilter { limit: Some(4), ..Default::default() }).await;
    assert_eq!(page, ids(&[9, 8, 7, 6]));
    let (page, next) = list(ExecutionFilter { limit: Some(6), before: next, ..Default::default() }).await;
    assert_eq!((page, next), (ids(&[5, 4, 3, 2, 1, 0]), None), "exactly what is left is the last page");
    assert!(list(ExecutionFilter { before: Some(Cursor(0)), ..Default::default() }).await.0.is_empty());
}

pub async fn executions_past_their_time_are_forgotten(place: &dyn Place) {
    let records = place.open();
    for number in 0..3 {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
    }
    let long_ago = Timestamp::now() - SignedDuration::from_hours(48);
    records.end_execution(id(0), ExecutionEnd { completed_at: long_ago, ..end(Status::Completed) }).await.expect("ended");
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    assert_eq!(records.delete_executions(yesterday).await.expect("forgotten"), [id(0)]);
    assert_eq!(records.delete_executions(yesterday).await.expect("forgotten"), []);
    assert!(records.execution(&anyone(), &id(0)).await.expect("read").is_none());
}

pub async fn a_quota_bounds_the_running_executions_of_an_owner(place: &dyn Place) {
    let records = place.open();
    assert_eq!(records.accept_execution(new(&id(1)), Some(1)).await.expect("answered"), Accepted::Alone);
    assert_eq!(records.accept_execution(new(&id(2)), Some(1)).await.expect("answered"), Accepted::TooMany);
    assert!(records.execution(&anyone(), &id(2)).await.expect("read").is_none(), "nothing was written");
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert_eq!(records.accept_execution(new(&id(2)), Some(1)).await.expect("answered"), Accepted::Alone);
}

pub async fn the_error_code_is_stored_with_the_error(place: &dyn Place) {
    let records = place.open();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    let failed = ExecutionEnd { error: Some("boo".into()), error_code: Some(ErrorCode::Exception), ..ExecutionEnd::bare(Status::Failed) };
    records.end_execution(id(1), failed).await.expect("ended");
    let ended = records.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((ended.error.as_deref(), ended.error_code), (Some("boo"), Some(ErrorCode::Exception)));
}

pub async fn running_executions_name_their_server(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.accept_execution(new(&id(1)), None).await.expect("accepted");
    two.accept_execution(new(&id(2)), None).await.expect("accepted");
    let mut running = one.running_executions().await.expect("read");
    running.sort();
    assert_eq!(running, [(id(1), server(1)), (id(2), server(2))]);
    two.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert_eq!(one.running_executions().await.expect("read"), [(id(2), server(2))]);
}
