//! What owners have stored. It is counted while records are written and deleted; here it is computed anew from all tables and compared.

use crate::common::{Place, ann, bob, end, heap, hours, id, in_session, logged, new, new_session, now, session, session_id, tags};
use crate::journal::entry;
use crate::sqlite::Folder;
use heapstead_store::records::{
    Binding, ExecuteSession, ExecutionEnd, JournalEntry, NewExecution, NewLogicalSession, NewSession, NewTurn, Records, RunSession, TurnId,
    Usage,
};
use heapstead_types::{Principal, Status};
use std::sync::Arc;
use uuid::Uuid;

/// Heaps, and everything else, of an owner.
const COMPUTED: &str = "SELECT (SELECT coalesce(sum(bytes), 0) FROM heaps WHERE principal = ?1)
      + (SELECT coalesce(sum(bytes), 0) FROM heap_reservations WHERE principal = ?1),
    (SELECT coalesce(sum(512 + output_bytes + octet_length(coalesce(result, '')) + octet_length(coalesce(error, ''))
       + octet_length(coalesce(warnings, '')) + octet_length(coalesce(continuity, ''))), 0) FROM executions WHERE principal = ?1)
    + (SELECT coalesce(sum(512 + octet_length(code) + octet_length(coalesce(form, '')) + octet_length(inputs)), 0) FROM journal WHERE principal = ?1)
    + (SELECT coalesce(sum(512 + octet_length(code)), 0) FROM log WHERE session IN (SELECT id FROM sessions WHERE principal = ?1))
    + (SELECT coalesce(sum(512 + octet_length(name)), 0) FROM sessions WHERE principal = ?1)
    + (SELECT coalesce(sum(512 + octet_length(key) + octet_length(value)), 0) FROM tags WHERE principal = ?1)
    + (SELECT coalesce(sum(512 + octet_length(intent)), 0) FROM logical_sessions WHERE principal = ?1)
    + (SELECT coalesce(sum(512 + octet_length(symbols)), 0) FROM execute_sessions
       WHERE logical IN (SELECT id FROM logical_sessions WHERE principal = ?1))";

fn computed(place: &Folder, owner: &Principal) -> Usage {
    let read = |row: &rusqlite::Row<'_>| {
        let (heap_bytes, other_bytes) = (row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64);
        Ok(Usage { heap_bytes, other_bytes, elsewhere_bytes: 0 })
    };
    place.database().query_row(COMPUTED, [owner.as_str()], read).expect("computed")
}

async fn check(place: &Folder, records: &Arc<dyn Records>, when: &str) {
    for owner in [ann(), bob()] {
        assert_eq!(records.usage(&owner).await.expect("read"), computed(place, &owner), "{owner} after {when}");
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn text(&mut self, bound: u64) -> String {
        "é".repeat(self.below(bound) as usize)
    }
}

async fn run(records: &Arc<dyn Records>, random: &mut Random, number: u64, owner: &Principal) {
    let opened = random.below(3) == 0;
    let named = RunSession::Named(session(&format!("notes {}", random.below(4))));
    let in_opened = in_session(&id(number), random.below(8) as u8).session.expect("a session");
    let run_session = if opened { in_opened } else { named };
    let run = NewExecution { principal: owner.clone(), session: Some(run_session.clone()), ..new(&id(number)) };
    if records.accept_execution(run, None).await.is_err() || random.below(5) == 0 {
        return;
    }
    let mut ended = if random.below(3) == 0 { end(Status::Failed) } else { logged(&id(number), random.below(20)) };
    ended.result = Some(random.text(3_000));
    ended.error = Some(random.text(50));
    if let Some(entry) = &mut ended.log {
        (entry.session, entry.code) = (run_session.clone(), random.text(2_000).into());
    }
    ended.journal = (random.below(2) == 0).then(|| JournalEntry {
        session: run_session.opened(),
        code: random.text(2_000).into(),
        form: (random.below(2) == 0).then(|| random.text(500).into_bytes()),
        inputs: random.text(500).into_bytes(),
        ..entry()
    });
    ended.tags = (random.below(3) == 0).then(|| tags(&[("k", &random.text(9))]));
    records.end_execution(id(number), ExecutionEnd { heap: ended.heap.filter(|_| random.below(2) == 0), ..ended }).await.expect("ended");
}

async fn open_logical(records: &Arc<dyn Records>, random: &mut Random, number: u8, owner: &Principal) {
    let symbols = random.text(400);
    let logical = Uuid::from_u128(number.into());
    let execute = ExecuteSession {
        id: format!("{:032x}", random.below(40)),
        reuse_key: String::new(),
        prompt_hash: String::new(),
        symbols,
        revision: 0,
        head: None,
        expires_at: now() + hours(1),
        lost: None,
    };
    let session = NewSession { principal: owner.clone(), expires_at: None, ..new_session(number) };
    let new = NewLogicalSession { id: logical, session, scope: String::new(), intent: format!("plan {}", random.below(6)) };
    let turn = NewTurn { id: TurnId::new(), session: session_id(number) };
    let binding = Binding { logical, execute, replaces: None, head: None, import: None, undone_from: None, pending_notice: None };
    // Ids and intents that are taken are refused.
    let _ = records.open_logical_session(new, binding, turn, None).await;
}

#[tokio::test]
async fn what_is_counted_is_what_is_stored_after_any_work() {
    let (place, seed) = (Folder::new(), u64::from(std::process::id()));
    println!("seed {seed}");
    let (records, mut random) = (place.open(), Random(seed));
    for number in 0..400 {
        let owner = if random.below(2) == 0 { ann() } else { bob() };
        let soon = now() + hours(9);
        match random.below(16) {
            0 => drop(records.open_session(NewSession { principal: owner, ..new_session(random.below(8) as u8) }, None).await),
            1 => drop(records.end_session(&owner, session_id(random.below(8) as u8), now()).await),
            2 => open_logical(&records, &mut random, 100 + (number % 100) as u8, &owner).await,
            3 => drop(records.forget_logical_session(&owner, Uuid::from_u128(100 + u128::from(random.below(100))), None, now()).await),
            4 => drop(records.set_tags(&owner, heap(random.below(20)), tags(&[("a", &random.text(100)), ("b", "2")])).await),
            5 => drop(records.remove_tags(&owner, heap(random.below(20)), vec!["a".into()]).await),
            6 => drop(records.delete_stray_tags(vec![(owner, heap(random.below(20)))], soon).await),
            7 => drop(records.delete_execution(&owner, &id(random.below(number + 1))).await),
            8 => {
                if let Some(id) = records.named_session(&owner, &session("notes 1"), random.below(2) == 0).await.expect("answered") {
                    records.end_named_session(&owner, id, None, now()).await.expect("ended");
                    while records.delete_ended_log(id).await.expect("deleted") {}
                }
            }
            9 if random.below(9) == 0 => while !records.delete_executions(soon).await.expect("deleted").is_empty() {},
            10 if random.below(9) == 0 => while records.delete_sessions(soon).await.expect("deleted") {},
            11 => drop(records.delete_execute_sessions(soon).await),
            12 => drop(records.delete_ended_log(session_id(random.below(8) as u8)).await),
            _ => run(&records, &mut random, number, &owner).await,
        }
    }
    check(&place, &records, "any work").await;
    for unused in records.unused_sessions(now() + hours(9)).await.expect("read") {
        match unused.logical {
            None => records.end_named_session(&unused.principal, unused.id, None, now()).await.expect("ended"),
            Some(logical) => records.forget_logical_session(&unused.principal, logical, None, now()).await.expect("forgotten"),
        };
    }
    check(&place, &records, "ending all sessions").await;
}

/// Databases of earlier versions did not count.
#[tokio::test]
async fn a_database_of_version_5_is_counted_when_it_is_migrated() {
    let place = Folder::of_version(5);
    place
        .database()
        .execute_batch(&format!(
            "INSERT INTO executions (id, principal, process, status, started_at, completed_at, result, output_bytes, error)
               VALUES ('a', 'acme/ann', 'p', 'failed', 1, 2, 'four', 1000, 'é');
             INSERT INTO sessions (id, sid, name, principal, next_index, created_at) VALUES (1, '{sid}', 'notes', 'acme/ann', 1, 5);
             INSERT INTO log (session, idx, output_heap, timestamp, execution_id, code) VALUES (1, 0, 'h', 7, 'a', 'code');
             INSERT INTO tags (principal, heap, key, value) VALUES ('acme/bob', 'h', 'k', 'v');
             INSERT INTO heaps (principal, key, bytes, last_used_at) VALUES ('acme/bob', 'h', 700, 1);",
            sid = "07".repeat(32),
        ))
        .expect("version 5");
    let records = place.open();
    check(&place, &records, "the migration").await;
    assert_eq!(records.usage(&ann()).await.expect("read").other_bytes, 512 + 1_006 + 512 + 5 + 512 + 4);
    assert_eq!(records.usage(&bob()).await.expect("read"), Usage { heap_bytes: 700, other_bytes: 514, elsewhere_bytes: 0 });
    assert_eq!(records.stray_tags(now() - hours(1)).await.expect("read"), [], "tags are retained from now on");
    assert_eq!(records.unused_sessions(now()).await.expect("read").len(), 1, "the log says when it was used");
}
