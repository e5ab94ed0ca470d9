//! Execution records.

use crate::common::{
    Place, ann, anyone, bob, end, heap, hours, id, in_session, logged, logged_in, new, new_session, now, race, server, session, session_id,
    stored, tags,
};
use heapstead_store::outputs::Extent;
use heapstead_store::records::{
    Accepted, ContinuityReport, Cursor, DeletedExecution, EndedExecution, Execution, ExecutionEnd, ExecutionFilter, Head, LogRange,
    NewExecution, NewSession, RecordedTurn, RunSession, TextPart, TurnId,
};
use heapstead_types::{ErrorCode, Status};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// A short turn of a live session is accepted and ended in one transaction, if nothing else is ahead of it or has moved the head.
pub async fn a_turn_that_has_ended_is_recorded_at_once(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(7), None).await.expect("opened");
    let record = async |number, from, output| {
        let execution = id(number);
        one.record_turn(in_session(&execution, 7), from, logged_in(&execution, 7, output), Some(1)).await.expect("recorded")
    };
    let head = |sequence, heap| RecordedTurn::Ended { head: Some(Head { sequence, heap: Some(heap) }) };
    assert_eq!(record(1, None, 5).await, head(1, heap(5)));
    assert_eq!(record(2, Some(heap(5)), 6).await, head(2, heap(6)));
    let stored = two.execution(&anyone(), &id(2)).await.expect("read").expect("recorded");
    assert_eq!((stored.status, stored.server, stored.output.bytes), (Status::Completed, server(1), 5));
    assert_eq!(two.end_execution(id(2), end(Status::Failed)).await.expect("answered"), EndedExecution::EndedBefore);
    let moved = record(3, Some(heap(5)), 9).await;
    assert_eq!(moved, RecordedTurn::NotEnded(Accepted::InSession { head: Some(Some(heap(6))) }), "the head was moved: it is only accepted");
    assert_eq!(two.execution(&anyone(), &id(3)).await.expect("read").expect("accepted").status, Status::Running);
    assert_eq!(record(4, Some(heap(6)), 9).await, RecordedTurn::NotEnded(Accepted::TooMany), "nothing is written");
    assert_eq!(two.execution(&anyone(), &id(4)).await.expect("read"), None);
    let behind = one.record_turn(in_session(&id(5), 7), Some(heap(6)), logged_in(&id(5), 7, 9), None).await.expect("recorded");
    assert_eq!(behind, RecordedTurn::NotEnded(Accepted::InSession { head: None }), "a turn is ahead: it is only accepted");
    let ahead = two.turn(session_id(7), &TurnId::of_execution(&id(5))).await.expect("read").expect("open").ahead;
    assert_eq!(ahead, Some((TurnId::of_execution(&id(3)), server(1))));
    assert!(one.end_session(&anyone(), session_id(7), Timestamp::now()).await.expect("ended"));
    let ended = one.record_turn(in_session(&id(6), 7), Some(heap(6)), logged_in(&id(6), 7, 9), None).await.expect("answered");
    assert_eq!(ended, RecordedTurn::NotEnded(Accepted::SessionEnded));
}

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
    let log = records.session_log(&anyone(), &session("s"), LogRange::default()).await.expect("read").0;
    assert_eq!(log.len(), 1, "an end that was refused adds no entry");
}

pub async fn executions_are_listed_newest_first_in_pages(place: &dyn Place) {
    let records = place.open();
    for number in 0..10 {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
    }
    for number in 0..5 {
        let status = if number % 2 == 0 { Status::Completed } else { Status::Failed };
        let long_ago = now() - hours(48);
        let completed_at = if number < 2 { long_ago } else { now() };
        records.end_execution(id(number), ExecutionEnd { completed_at, ..end(status) }).await.expect("ended");
    }
    let list = async |filter: ExecutionFilter| {
        let (found, next) = records.executions(&anyone(), filter).await.expect("read");
        (found.into_iter().map(|summary| summary.id).collect::<Vec<_>>(), next)
    };
    let ids = |numbers: &[u64]| numbers.iter().map(|number| id(*number)).collect::<Vec<_>>();
    assert_eq!(list(ExecutionFilter::default()).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]));
    let recent = ExecutionFilter { ended_since: Some(now() - hours(24)), ..Default::default() };
    assert_eq!(list(recent).await.0, ids(&[9, 8, 7, 6, 5, 4, 3, 2]));
    let failed = ExecutionFilter { status: Some(Status::Failed), ..Default::default() };
    assert_eq!(list(failed).await.0, ids(&[3, 1]));
    let (page, next) = list(ExecutionFilter { limit: Some(4), ..Default::default() }).await;
    assert_eq!(page, ids(&[9, 8, 7, 6]));
    let (page, next) = list(ExecutionFilter { limit: Some(6), before: next, ..Default::default() }).await;
    assert_eq!((page, next), (ids(&[5, 4, 3, 2, 1, 0]), None), "exactly what is left is the last page");
    assert!(list(ExecutionFilter { before: Some(Cursor(0)), ..Default::default() }).await.0.is_empty());
    let after = records.cursor_after(&anyone(), &id(2)).await.expect("read");
    assert_eq!(list(ExecutionFilter { before: after, ..Default::default() }).await.0, ids(&[1, 0]));
    assert_eq!(records.cursor_after(&anyone(), &id(99)).await.expect("read"), None);
    // Executions that are accepted while a caller pages do not shift its pages.
    records.accept_execution(new(&id(10)), None).await.expect("accepted");
    assert_eq!(list(ExecutionFilter { before: after, ..Default::default() }).await.0, ids(&[1, 0]));
}

pub async fn executions_past_their_retention_are_deleted(place: &dyn Place) {
    let records = place.open();
    for number in 0..3 {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
    }
    let long_ago = now() - hours(48);
    records.end_execution(id(0), ExecutionEnd { completed_at: long_ago, ..end(Status::Completed) }).await.expect("ended");
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    let yesterday = now() - hours(24);
    assert_eq!(records.delete_executions(yesterday).await.expect("deleted"), [id(0)]);
    assert_eq!(records.delete_executions(yesterday).await.expect("deleted"), []);
    assert!(records.execution(&anyone(), &id(0)).await.expect("read").is_none());
    for number in [1, 2] {
        assert!(records.execution(&anyone(), &id(number)).await.expect("read").is_some(), "{number} ended later or runs");
    }
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

pub async fn an_execution_is_stored_with_every_field(place: &dyn Place) {
    let records = place.open_as(&server(3));
    let (accepted_at, started_at, completed_at) = (now() - hours(3), now() - hours(2), now() - hours(1));
    records.accept_execution(NewExecution { started_at: accepted_at, ..new(&id(1)) }, None).await.expect("accepted");
    records.accept_execution(NewExecution { started_at: accepted_at, ..new(&id(2)) }, None).await.expect("accepted");
    let full = ExecutionEnd {
        status: Status::Completed,
        started_at: Some(started_at),
        completed_at,
        result: Some("result".into()),
        warnings: vec!["one".into(), "two".into()],
        output: Extent { bytes: 1 << 40, lines: 1 << 33 },
        heap: Some(stored(heap(1), 10)),
        tags: Some(tags(&[("a", "1")])),
        continuity: Some(ContinuityReport { json: "{}".into(), is_delivered: true }),
        ..ExecutionEnd::bare(Status::Completed)
    };
    records.end_execution(id(1), full).await.expect("ended");
    records.end_execution(id(2), ExecutionEnd { completed_at, ..ExecutionEnd::bare(Status::Cancelled) }).await.expect("ended");
    drop(records);
    let records = place.open();
    let expected = Execution {
        id: id(1),
        server: server(3),
        status: Status::Completed,
        started_at,
        completed_at: Some(completed_at),
        state_heap: None,
        heap_error: None,
        heap: Some(heap(1)),
        error: None,
        error_code: None,
        warnings: vec!["one".into(), "two".into()],
        output: Extent { bytes: 1 << 40, lines: 1 << 33 },
        continuity: Some("{}".into()),
        result: Some("result".into()),
        result_bytes: 6,
    };
    assert_eq!(records.execution(&anyone(), &id(1)).await.expect("read"), Some(expected.clone()), "after reopening");
    let without = Execution { result: None, ..expected };
    assert_eq!(records.execution_with_part(&anyone(), &id(1), 0).await.expect("read"), Some(without));
    assert_eq!(records.tags(&anyone(), heap(1)).await.expect("read"), tags(&[("a", "1")]));
    assert_eq!(records.used_bytes(&anyone()).await.expect("read"), 10);
    let cancelled = records.execution(&anyone(), &id(2)).await.expect("read").expect("known");
    assert_eq!((cancelled.status, cancelled.started_at), (Status::Cancelled, accepted_at), "its code did not start");
}

pub async fn an_execution_that_several_servers_end_ends_once(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    for round in 0..10 {
        records.accept_execution(in_session(&id(round), 1), None).await.expect("accepted");
        let ended = race(place, 4, move |number, records| async move {
            records.end_execution(id(round), logged_in(&id(round), 1, u64::from(number))).await.expect("answered")
        })
        .await;
        let winner = ended.iter().position(|ended| matches!(ended, EndedExecution::Ended { .. })).expect("one ended it");
        assert_eq!(ended.iter().filter(|ended| **ended == EndedExecution::EndedBefore).count(), 3);
        let stored = records.execution(&anyone(), &id(round)).await.expect("read").expect("known");
        assert_eq!(stored.heap, Some(heap(winner as u64)));
    }
    let log = records.session_log(&anyone(), &session(&session_id(1).to_string()), LogRange::default()).await.expect("read").0;
    assert_eq!(log.len(), 10, "one entry each");
}

pub async fn executions_of_another_owner_do_not_exist(place: &dyn Place) {
    let records = place.open();
    let of_ann = NewExecution { principal: ann(), session: Some(RunSession::Named(session("s"))), ..new(&id(1)) };
    records.accept_execution(of_ann, None).await.expect("accepted");
    records.accept_execution(NewExecution { principal: bob(), ..new(&id(2)) }, None).await.expect("accepted");
    assert!(records.execution(&ann(), &id(1)).await.expect("read").is_some());
    for other in [bob(), anyone()] {
        assert_eq!(records.execution(&other, &id(1)).await.expect("read"), None);
        assert_eq!(records.execution_with_part(&other, &id(1), 0).await.expect("read"), None);
        assert_eq!(records.result_part(&other, &id(1), TextPart { offset: 0, bytes_max: 9 }).await.expect("read"), None);
        assert_eq!(records.delete_execution(&other, &id(1)).await.expect("answered"), DeletedExecution::Unknown);
        assert_eq!(records.cursor_after(&other, &id(1)).await.expect("read"), None);
        let by_name = ExecutionFilter { session: Some(session("s")), ..Default::default() };
        assert_eq!(records.executions(&other, by_name).await.expect("read"), (vec![], None));
    }
    let (of_bob, _) = records.executions(&bob(), ExecutionFilter::default()).await.expect("read");
    assert_eq!(of_bob.into_iter().map(|summary| summary.id).collect::<Vec<_>>(), [id(2)]);
    assert_eq!(records.executions(&anyone(), ExecutionFilter::default()).await.expect("read"), (vec![], None));
}

pub async fn executions_are_listed_by_session(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    let named = |number, name| NewExecution { session: Some(RunSession::Named(session(name))), ..new(&id(number)) };
    for new in [named(1, "a"), named(2, "b"), in_session(&id(3), 1), named(4, "a"), new(&id(5))] {
        records.accept_execution(new, None).await.expect("accepted");
    }
    let list = async |name: &str, status| {
        let filter = ExecutionFilter { session: Some(session(name)), status, ..Default::default() };
        let (found, _) = records.executions(&anyone(), filter).await.expect("read");
        found.into_iter().map(|summary| summary.id).collect::<Vec<_>>()
    };
    assert_eq!(list("a", None).await, [id(4), id(1)]);
    assert_eq!(list(&session_id(1).to_string(), None).await, [id(3)]);
    assert_eq!(list("none", None).await, []);
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert_eq!(list("a", Some(Status::Running)).await, [id(4)]);
}

/// Story: a run in a session of another owner was accepted, moved its head and wrote to its log.
pub async fn an_execution_in_a_session_of_another_owner_is_refused(place: &dyn Place) {
    let records = place.open();
    records.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    let before = records.opened_session(&ann(), session_id(1), now()).await.expect("read");
    let of_bob = NewExecution { principal: bob(), ..in_session(&id(1), 1) };
    assert_eq!(records.accept_execution(of_bob, None).await.expect("answered"), Accepted::SessionEnded, "as if it did not exist");
    assert_eq!(records.execution(&bob(), &id(1)).await.expect("read"), None, "nothing was written");
    assert_eq!(records.opened_session(&ann(), session_id(1), now()).await.expect("read"), before, "its TTL is not refreshed");
}

pub async fn a_quota_holds_when_servers_accept_at_once(place: &dyn Place) {
    let accepted = race(place, 4, |number, records| async move {
        let mut accepted = 0;
        for round in 0..5 {
            let new = new(&id(u64::from(number) * 100 + round));
            accepted += u32::from(records.accept_execution(new, Some(7)).await.expect("answered") == Accepted::Alone);
        }
        accepted
    })
    .await;
    assert_eq!(accepted.iter().sum::<u32>(), 7);
    let records = place.open();
    assert_eq!(records.running_executions().await.expect("read").len(), 7);
    let of_ann = NewExecution { principal: ann(), ..new(&id(1000)) };
    assert_eq!(records.accept_execution(of_ann, Some(1)).await.expect("answered"), Accepted::Alone, "each owner has a quota");
}

pub async fn running_executions_are_found_by_session(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(NewSession { principal: ann(), ..new_session(1) }, None).await.expect("opened");
    let in_ann = |number| NewExecution { principal: ann(), ..in_session(&id(number), 1) };
    one.accept_execution(in_ann(1), None).await.expect("accepted");
    two.accept_execution(in_ann(2), None).await.expect("accepted");
    // Another owner may have a named session with the same text as its name.
    let same_name = RunSession::Named(session(&session_id(1).to_string()));
    let of_bob = NewExecution { principal: bob(), session: Some(same_name), ..new(&id(3)) };
    one.accept_execution(of_bob, None).await.expect("accepted");
    let mut running = one.executions_running_in(session_id(1)).await.expect("read");
    running.sort();
    assert_eq!(running, [(id(1), server(1)), (id(2), server(2))]);
    one.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert_eq!(two.executions_running_in(session_id(1)).await.expect("read"), [(id(2), server(2))]);
    assert_eq!(one.executions_running_in(session_id(2)).await.expect("read"), []);
}

pub async fn an_end_by_another_server_releases_the_turn(place: &dyn Place) {
    let (one, two) = (place.open_as(&server(1)), place.open_as(&server(2)));
    one.open_session(new_session(1), None).await.expect("opened");
    one.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    drop(one);
    two.accept_execution(in_session(&id(2), 1), None).await.expect("accepted");
    two.end_execution(id(1), end(Status::Failed)).await.expect("ended");
    let turn = two.turn(session_id(1), &TurnId::of_execution(&id(2))).await.expect("read").expect("open");
    assert_eq!(turn.ahead, None);
    let lost = two.execution(&anyone(), &id(1)).await.expect("read").expect("known");
    assert_eq!((lost.server, lost.status), (server(1), Status::Failed), "it keeps the server that ran it");
}

pub async fn servers_that_delete_at_once_delete_each_execution_once(place: &dyn Place) {
    const COUNT: u64 = 1200;
    race(place, 4, |number, records| async move {
        let tasks: Vec<_> = (0..COUNT)
            .filter(|execution| execution % 4 == u64::from(number))
            .map(|execution| {
                let records = records.clone();
                tokio::spawn(async move {
                    records.accept_execution(new(&id(execution)), None).await.expect("accepted");
                    let end = ExecutionEnd { completed_at: now() - hours(2), ..ExecutionEnd::bare(Status::Completed) };
                    records.end_execution(id(execution), end).await.expect("ended");
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("no panic");
        }
    })
    .await;
    let deleted = race(place, 3, |_, records| async move {
        let mut deleted = Vec::new();
        loop {
            let batch = records.delete_executions(now() - hours(1)).await.expect("deleted");
            if batch.is_empty() {
                return deleted;
            }
            assert!((batch.len() as u64) < COUNT, "a batch is bounded");
            deleted.extend(batch);
        }
    })
    .await
    .concat();
    assert_eq!(deleted.len() as u64, COUNT);
    assert_eq!(deleted.into_iter().collect::<BTreeSet<_>>(), (0..COUNT).map(id).collect());
}

pub async fn a_long_result_is_read_in_parts(place: &dyn Place) {
    let records = place.open();
    let result = "aé€😀".repeat(1000);
    for number in [1, 2] {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
    }
    records.end_execution(id(1), ExecutionEnd { result: Some(result.clone()), ..end(Status::Completed) }).await.expect("ended");
    for bytes_max in [1, 2, 5, 4096, 9_999, 10_000, usize::MAX] {
        let read = records.execution_with_part(&anyone(), &id(1), bytes_max).await.expect("read").expect("known");
        let expected = &result[..result.floor_char_boundary(bytes_max)];
        assert_eq!((read.result.as_deref(), read.result_bytes), (Some(expected), 10_000), "{bytes_max}");
        let part = records.result_part(&anyone(), &id(1), TextPart { offset: 3, bytes_max }).await.expect("read").expect("a part");
        assert_eq!(part, result[3..result.floor_char_boundary(bytes_max.saturating_add(3))], "{bytes_max}");
    }
    let past = TextPart { offset: 10_001, bytes_max: 9 };
    assert_eq!(records.result_part(&anyone(), &id(1), past).await.expect("read").as_deref(), Some(""));
    assert_eq!(records.result_part(&anyone(), &id(2), past).await.expect("read"), None, "it has none yet");
}

pub async fn an_execution_is_deleted_once_it_has_ended(place: &dyn Place) {
    let records = place.open();
    records.accept_execution(new(&id(1)), None).await.expect("accepted");
    assert_eq!(records.delete_execution(&anyone(), &id(1)).await.expect("answered"), DeletedExecution::IsRunning);
    records.end_execution(id(1), end(Status::Completed)).await.expect("ended");
    assert!(records.usage(&anyone()).await.expect("read").other_bytes > 0);
    assert_eq!(records.delete_execution(&anyone(), &id(1)).await.expect("answered"), DeletedExecution::Deleted);
    assert_eq!(records.delete_execution(&anyone(), &id(1)).await.expect("answered"), DeletedExecution::Unknown);
    assert_eq!(records.execution(&anyone(), &id(1)).await.expect("read"), None);
    assert_eq!(records.usage(&anyone()).await.expect("read").other_bytes, 0, "it makes room at once");
}
