//! The journal.

use crate::common::{
    Place, ann, anyone, bob, end, heap, hours, id, in_session, logged, logged_in, new, new_session, now, session_id, stored,
};
use crate::logical_sessions::{binding, execute, found, opened, run_in, uuid};
use heapstead_store::records::{Binding, ExecutionEnd, JournalEntry, LogRange, NewExecution, NewImport, RebuiltHeap, Records};
use heapstead_types::{ExecutionId, Limits, Principal, Status};

/// Of a run outside sessions.
pub fn entry() -> JournalEntry {
    JournalEntry {
        session: None,
        is_import: false,
        code: "Math.random() // é".into(),
        form: Some(vec![5, 0]),
        input_heap: Some(heap(7)),
        output_heap: Some(heap(8)),
        limits: Limits { heap_mb: 64, timeout_secs: 30, output_bytes_max: 1 << 40 },
        engine: "v8-1.0/x86_64/flags-00000000/natives-1-00000000".parse().expect("an engine"),
        seed: [7; 32],
        inputs: vec![0, 255, 1],
        output_sha256: [1; 32],
        result_sha256: [2; 32],
    }
}

/// Of a heap.
async fn producer(records: &dyn Records, owner: &Principal, number: u64) -> Option<ExecutionId> {
    records.links(owner, heap(number)).await.expect("read").into_iter().next().map(|link| link.execution)
}

pub async fn an_entry_is_written_with_the_end_of_its_run(place: &dyn Place) {
    let records = place.open();
    let of_ann = NewExecution { principal: ann(), ..new(&id(1)) };
    records.accept_execution(of_ann, None).await.expect("accepted");
    assert_eq!(records.journal_entry(&ann(), &id(1)).await.expect("read"), None, "it runs");
    records.end_execution(id(1), ExecutionEnd { journal: Some(entry()), ..end(Status::Failed) }).await.expect("ended");
    assert_eq!(records.journal_entry(&ann(), &id(1)).await.expect("read"), Some(entry()));
    assert_eq!(records.journal_entry(&bob(), &id(1)).await.expect("read"), None, "it is not theirs");
    let producer = async |owner, number| producer(&*records, &owner, number).await;
    assert_eq!((producer(ann(), 8).await, producer(ann(), 7).await, producer(bob(), 8).await), (Some(id(1)), None, None));
    let fresh = JournalEntry { input_heap: None, output_heap: None, inputs: Vec::new(), ..entry() };
    records.accept_execution(new(&id(2)), None).await.expect("accepted");
    records.end_execution(id(2), ExecutionEnd { journal: Some(fresh.clone()), ..logged(&id(2), 9) }).await.expect("ended");
    let other = ExecutionEnd { journal: Some(entry()), ..end(Status::Failed) };
    records.end_execution(id(2), other).await.expect("answered");
    assert_eq!(records.journal_entry(&anyone(), &id(2)).await.expect("read"), Some(fresh), "an end that was refused writes none");
}

pub async fn an_entry_goes_with_its_execution(place: &dyn Place) {
    let records = place.open();
    for number in [1, 2] {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
        let completed_at = now() - hours(48);
        let end = ExecutionEnd { completed_at, journal: Some(entry()), ..end(Status::Completed) };
        records.end_execution(id(number), end).await.expect("ended");
    }
    records.delete_execution(&anyone(), &id(1)).await.expect("deleted");
    assert_eq!(records.journal_entry(&anyone(), &id(1)).await.expect("read"), None);
    assert_eq!(records.delete_executions(now() - hours(24)).await.expect("deleted"), [id(2)]);
    assert_eq!(records.journal_entry(&anyone(), &id(2)).await.expect("read"), None);
    assert_eq!(records.usage(&anyone()).await.expect("read").other_bytes, 0, "it makes room");
}

pub async fn an_entry_of_a_session_stays_as_long_as_the_session(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    records.accept_execution(in_session(&id(1), 1), None).await.expect("accepted");
    let of_session = JournalEntry { session: Some(session_id(1)), ..entry() };
    records.end_execution(id(1), ExecutionEnd { journal: Some(of_session.clone()), ..logged_in(&id(1), 1, 9) }).await.expect("ended");
    records.delete_execution(&anyone(), &id(1)).await.expect("deleted");
    assert_eq!(records.journal_entry(&anyone(), &id(1)).await.expect("read"), Some(of_session), "the session needs it");
    records.end_session(&anyone(), session_id(1), now()).await.expect("ended");
    while records.delete_sessions(now() + hours(24)).await.expect("deleted") {}
    assert_eq!(records.journal_entry(&anyone(), &id(1)).await.expect("read"), None);
}

pub async fn the_first_producer_of_a_heap_leads_back_to_its_beginning(place: &dyn Place) {
    let records = place.open();
    // 1 → 2 → 1: the first heap was produced again by the third run.
    for (number, input, output) in [(1, None, 1), (2, Some(1), 2), (3, Some(2), 1), (4, Some(1), 1)] {
        records.accept_execution(new(&id(number)), None).await.expect("accepted");
        let entry = JournalEntry { input_heap: input.map(heap), output_heap: Some(heap(output)), ..entry() };
        records.end_execution(id(number), ExecutionEnd { journal: Some(entry), ..end(Status::Completed) }).await.expect("ended");
    }
    let producer = async |number| producer(&*records, &anyone(), number).await;
    assert_eq!((producer(1).await, producer(2).await), (Some(id(1)), Some(id(2))));
    let rebuilt = RebuiltHeap { execution: id(2), heap: stored(heap(22), 50), session: None, at: now() };
    assert!(records.add_rebuilt(&anyone(), rebuilt.clone()).await.expect("added"));
    assert_eq!((producer(22).await, producer(2).await), (Some(id(2)), Some(id(2))));
    assert_eq!(records.usage(&anyone()).await.expect("read").heap_bytes, 50, "it belongs to the owner");
    for (owner, execution) in [(bob(), id(2)), (anyone(), id(9))] {
        let rebuilt = RebuiltHeap { execution, heap: stored(heap(23), 50), ..rebuilt.clone() };
        assert!(!records.add_rebuilt(&owner, rebuilt).await.expect("answered"));
    }
    assert_eq!(producer(23).await, None, "what was refused leaves nothing");
}

pub async fn a_rebuilt_heap_becomes_the_head_of_its_session(place: &dyn Place) {
    let records = place.open();
    records.open_session(new_session(1), None).await.expect("opened");
    for number in [1, 2] {
        records.accept_execution(in_session(&id(number), 1), None).await.expect("accepted");
        let entry = JournalEntry { session: Some(session_id(1)), output_heap: Some(heap(number)), ..entry() };
        records.end_execution(id(number), ExecutionEnd { journal: Some(entry), ..logged_in(&id(number), 1, number) }).await.expect("ended");
    }
    assert_eq!(records.turn_of(session_id(1), &id(2)).await.expect("read"), Some(1));
    assert_eq!(records.turn_of(session_id(2), &id(2)).await.expect("read"), None);
    let rebuilt = RebuiltHeap { execution: id(2), heap: stored(heap(22), 50), session: Some(session_id(1)), at: now() };
    assert!(records.add_rebuilt(&anyone(), rebuilt.clone()).await.expect("added"));
    let session = records.opened_session(&anyone(), session_id(1), now()).await.expect("read").expect("open");
    assert_eq!((session.head, session.sequence), (Some(heap(22)), 2));
    let name = session_id(1).to_string().parse().expect("a name");
    let log = records.session_log(&anyone(), &name, LogRange::default()).await.expect("read").0;
    assert_eq!(log.iter().map(|entry| entry.after).collect::<Vec<_>>(), [heap(1), heap(22)]);
    records.end_session(&anyone(), session_id(1), now()).await.expect("ended");
    let late = RebuiltHeap { heap: stored(heap(23), 50), ..rebuilt };
    assert!(!records.add_rebuilt(&anyone(), late).await.expect("answered"), "the session has ended");
    assert_eq!(producer(&*records, &anyone(), 23).await, None);
}

/// An import is no execution: it is in the journal alone, as long as its session.
pub async fn an_import_is_recorded_with_its_binding_and_goes_with_its_session(place: &dyn Place) {
    let records = place.open();
    opened(&records, 1).await;
    let stored_bytes = async || records.usage(&ann()).await.expect("read").other_bytes;
    let before = stored_bytes().await;
    let entry = |input, output| JournalEntry {
        session: Some(session_id(1)),
        is_import: true,
        input_heap: input,
        output_heap: Some(heap(output)),
        ..entry()
    };
    let import = |number, input, output| Binding {
        head: Some(stored(heap(output), 10)),
        import: Some(NewImport { id: id(number), entry: entry(input, output) }),
        ..binding(1, execute(1))
    };
    records.bind(&ann(), import(1, None, 1), now()).await.expect("bound");
    assert_eq!(records.journal_entry(&ann(), &id(1)).await.expect("read"), Some(entry(None, 1)));
    assert_eq!(records.journal_entry(&bob(), &id(1)).await.expect("read"), None, "it is not theirs");
    assert_eq!(records.execution(&ann(), &id(1)).await.expect("read"), None, "it is no execution");
    assert_eq!(producer(&*records, &ann(), 1).await, Some(id(1)));
    let bytes = 512 + (entry(None, 1).code.len() + entry(None, 1).inputs.len() + entry(None, 1).form.map_or(0, |form| form.len())) as u64;
    assert_eq!(stored_bytes().await, before + bytes, "it counts towards the quota");

    // The end of a run binds what was imported for it, whatever becomes of the run.
    records.accept_execution(run_in(2, 1, now() + hours(1)), None).await.expect("accepted");
    let ended = ExecutionEnd { binding: Some(import(3, Some(heap(1)), 3)), ..end(Status::Failed) };
    records.end_execution(id(2), ended).await.expect("ended");
    let rebuilt = RebuiltHeap { execution: id(3), heap: stored(heap(33), 50), session: Some(session_id(1)), at: now() };
    assert!(records.add_rebuilt(&ann(), rebuilt).await.expect("added"));
    assert_eq!(found(&records, 1).await.head, Some(heap(33)));
    let input = async |session, number| records.import_input(session_id(session), heap(number)).await.expect("read");
    assert_eq!((input(1, 33).await, input(1, 3).await, input(1, 1).await), (Some(Some(heap(1))), Some(Some(heap(1))), Some(None)));
    assert_eq!((input(1, 7).await, input(2, 1).await), (None, None));

    assert!(records.forget_logical_session(&ann(), uuid(1), None, now()).await.expect("answered"));
    while records.delete_sessions(now() + hours(24)).await.expect("deleted") {}
    for number in [1, 3] {
        assert_eq!(records.journal_entry(&ann(), &id(number)).await.expect("read"), None);
    }
}

/// The turns that a new head does not contain stay in the log, as undone.
pub async fn an_import_into_an_earlier_state_undoes_the_turns_after_it(place: &dyn Place) {
    let records = place.open();
    opened(&records, 1).await;
    for number in 1..=3 {
        records.accept_execution(run_in(number, 1, now() + hours(1)), None).await.expect("accepted");
        records.end_execution(id(number), logged_in(&id(number), 1, number)).await.expect("ended");
    }
    let back = Binding { head: Some(stored(heap(9), 10)), undone_from: Some(1), ..binding(1, execute(1)) };
    records.bind(&ann(), back, now()).await.expect("bound");
    assert_eq!(found(&records, 1).await.head, Some(heap(9)));
    let turns = records.last_turns(session_id(1), 9).await.expect("read");
    assert_eq!(turns.iter().map(|turn| turn.index).collect::<Vec<_>>(), [0]);
}
