//! Tests of the order of messages: which are accepted, which are refused and why, and that both sides agree.

use heapstead_types::Failure;
use heapstead_wire::{CallNumber, FromWorker, Open, RunNumber, RunSettings, ServerState, ToWorker, WorkerState, Written};
use proptest::prelude::*;
use std::borrow::Cow;

fn number(number: u64) -> RunNumber {
    RunNumber::new(number).expect("not 0")
}

fn open() -> ToWorker<'static> {
    ToWorker::Open(Open { heap_mb: 8, heap_bytes: None, identity_seed: 0, stateful: true })
}

fn run(run: u64) -> ToWorker<'static> {
    let settings = RunSettings { output_bytes_max: 0, seed: [0; 32], headers: vec![] };
    ToWorker::Run { run: number(run), settings: Cow::Owned(settings), replay: None, code: Cow::Borrowed("1") }
}

fn commit(run: u64) -> ToWorker<'static> {
    ToWorker::Commit { run: number(run) }
}

fn snapshot(run: u64) -> ToWorker<'static> {
    ToWorker::Snapshot { run: number(run) }
}

fn reply(run: u64) -> ToWorker<'static> {
    ToWorker::Reply { run: number(run), call: CallNumber(1), outcome: Ok(vec![]) }
}

/// Passes requests to a worker whose runs complete immediately. Returns the first refusal, if there is one.
fn requests(all: &[ToWorker<'_>]) -> Result<(), String> {
    let mut state = WorkerState::default();
    all.iter().try_for_each(|request| {
        state.accept(request).map_err(|error| error.to_string())?;
        state.complete();
        Ok(())
    })
}

#[test]
fn requests_out_of_order_are_refused() {
    for (all, refusal) in [
        (vec![open(), run(1), snapshot(1), ToWorker::Close], None),
        (vec![open(), run(1), ToWorker::Close], None),
        (vec![ToWorker::Close], None),
        (vec![open(), run(1), commit(1), snapshot(1), run(2), snapshot(2), commit(2), run(7)], None),
        (vec![open(), ToWorker::Fork, run(1), commit(1), ToWorker::Fork, ToWorker::Fork, run(2)], None),
        (vec![ToWorker::Fork], Some("`Fork` before `Open`")),
        (vec![open(), run(1), ToWorker::Fork], Some("`Fork` before `Commit`")),
        (vec![open(), run(1), commit(1), snapshot(1), ToWorker::Fork], Some("`Fork` that was not asked for")),
        (vec![run(1)], Some("`Run` before `Open`")),
        (vec![snapshot(1)], Some("`Snapshot` before `Open`")),
        (vec![open(), open()], Some("`Open` a second time")),
        (vec![open(), commit(1)], Some("`Commit` for run 1, which has not completed")),
        (vec![open(), snapshot(1)], Some("`Snapshot` for run 1, which has not completed")),
        (vec![open(), run(1), snapshot(2)], Some("`Snapshot` for run 2, which has not completed")),
        (vec![open(), run(1), snapshot(1), snapshot(1)], Some("`Snapshot` a second time")),
        (vec![open(), run(1), commit(1), commit(1)], Some("`Commit` a second time")),
        (vec![open(), run(1), run(2)], Some("`Run` before `Commit`")),
        (vec![open(), run(2), commit(2), run(2)], Some("`Run` 2, which is not higher than the run before")),
        (vec![open(), reply(1)], Some("`Reply` that was not asked for")),
        (vec![open(), run(1), reply(1)], Some("`Reply` that was not asked for")),
    ] {
        assert_eq!(requests(&all).err().as_deref(), refusal, "{all:?}");
    }
    let mut running = WorkerState::default();
    running.accept(&open()).and_then(|()| running.accept(&run(1))).expect("in order");
    assert_eq!(running.accept(&run(2)).expect_err("refused").to_string(), "`Run` before `Ended`");
    assert_eq!(running.accept(&snapshot(1)).expect_err("refused").to_string(), "`Snapshot` for run 1, which has not completed");
}

fn started(run: u64) -> FromWorker {
    FromWorker::Started { run: number(run) }
}

fn parsing(run: u64) -> FromWorker {
    FromWorker::Parsing { run: number(run) }
}

fn javascript(run: u64) -> FromWorker {
    FromWorker::Javascript { run: number(run), text: String::new(), form: None }
}

fn inputs(run: u64, bytes: usize) -> FromWorker {
    FromWorker::Inputs { run: number(run), part: vec![0; bytes] }
}

fn output(run: u64) -> FromWorker {
    FromWorker::Output { run: number(run), text: vec![] }
}

fn dropped(run: u64) -> FromWorker {
    FromWorker::OutputDropped { run: number(run) }
}

fn call(run: u64, call: u64) -> FromWorker {
    FromWorker::Call { run: number(run), call: CallNumber(call), kind: 0, payload: vec![] }
}

fn completed(run: u64) -> FromWorker {
    FromWorker::Ended { run: number(run), outcome: Ok(String::new()) }
}

fn failed(run: u64) -> FromWorker {
    FromWorker::Ended { run: number(run), outcome: Err(Failure::NeverSettles) }
}

fn committed(run: u64) -> FromWorker {
    FromWorker::Committed { run: number(run) }
}

fn written(run: u64) -> FromWorker {
    FromWorker::Snapshot { run: number(run), outcome: Ok(Written { length: 0, sha256: [0; 32] }) }
}

/// Passes messages to a server that has sent these requests. Returns the first refusal, if there is one.
fn messages(sent: &[ToWorker<'_>], all: &[FromWorker]) -> Result<(), String> {
    let mut state = ServerState::default();
    sent.iter().for_each(|request| state.sent(request));
    all.iter().try_for_each(|message| state.accept(message).map_err(|error| error.to_string()))
}

#[test]
fn messages_out_of_order_are_refused() {
    let opened = || FromWorker::Opened;
    let one_shot = [open(), run(1), snapshot(1), ToWorker::Close];
    for (all, refusal) in [
        (vec![opened(), started(1), output(1), dropped(1), completed(1), written(1)], None),
        (vec![opened(), started(1), parsing(1), started(1), call(1, 1), call(1, 2), completed(1), written(1)], None),
        (vec![opened(), parsing(1), started(1), completed(1), written(1)], None),
        (vec![opened(), started(1), output(1), javascript(1), completed(1), written(1)], None),
        (vec![opened(), started(1), output(1), inputs(1, 9), inputs(1, (1 << 20) - 9), javascript(1), completed(1), written(1)], None),
        (vec![opened(), inputs(1, 9), failed(1)], None),
        (vec![opened(), started(1), inputs(1, 9), javascript(1), failed(1)], None),
        (vec![opened(), started(1), inputs(1, 9), inputs(1, 1 << 20)], Some("`Inputs` of more than 1048576 bytes")),
        (vec![opened(), started(1), javascript(1), inputs(1, 9)], Some("`Inputs` between `Javascript` and `Ended`")),
        (vec![opened(), javascript(1)], Some("`Javascript` before `Started`")),
        (vec![opened(), started(1), javascript(1), javascript(1)], Some("`Javascript` a second time")),
        (vec![opened(), started(1), javascript(1), output(1)], Some("`Output` between `Javascript` and `Ended`")),
        (vec![opened(), failed(1)], None),
        (vec![FromWorker::Unfit { why: String::new() }], None),
        (vec![started(1)], Some("`Started` before `Opened`")),
        (vec![completed(1)], Some("`Ended` before `Opened`")),
        (vec![opened(), opened()], Some("`Opened` a second time")),
        (vec![opened(), completed(1)], Some("`Ended` before `Started`")),
        (vec![opened(), output(1)], Some("`Output` before `Started`")),
        (vec![opened(), call(1, 1)], Some("`Call` before `Started`")),
        (vec![opened(), started(1), started(1)], Some("`Started` a second time")),
        (vec![opened(), parsing(1), started(1), parsing(1)], Some("`Parsing` a second time")),
        (vec![opened(), started(1), parsing(1), output(1)], Some("`Output` before `Started`")),
        (vec![opened(), started(1), dropped(1), output(1)], Some("`Output` after `OutputDropped`")),
        (vec![opened(), started(1), dropped(1), dropped(1)], Some("`OutputDropped` a second time")),
        (vec![opened(), started(1), call(1, 2)], Some("call number 2, expected 1")),
        (vec![opened(), started(1), call(1, 1), call(1, 1)], Some("call number 1, expected 2")),
        (vec![opened(), started(2)], Some("`Started` for run 2, which is not the run in progress")),
        (vec![opened(), started(1), completed(2)], Some("`Ended` for run 2, which is not the run in progress")),
        (vec![opened(), started(1), completed(1), completed(1)], Some("`Ended` for run 1, which has ended")),
        (vec![opened(), started(1), completed(1), output(1)], Some("`Output` for run 1, which has ended")),
        (vec![opened(), started(1), completed(1), output(2)], Some("`Output` for run 2, which is not the run in progress")),
        (vec![opened(), written(1)], Some("`Snapshot` before `Ended`")),
        (vec![opened(), started(1), completed(1), written(2)], Some("`Snapshot` that was not asked for")),
        (vec![opened(), started(1), completed(1), written(1), written(1)], Some("`Snapshot` that was not asked for")),
        (vec![opened(), failed(1), written(1)], Some("`Snapshot` that was not asked for")),
        (vec![opened(), started(1), completed(1), committed(1)], Some("`Committed` that was not asked for")),
    ] {
        assert_eq!(messages(&one_shot, &all).err().as_deref(), refusal, "{all:?}");
    }
    assert_eq!(messages(&[], &[opened()]).expect_err("refused"), "`Opened` that was not asked for");
}

/// A snapshot that is written after the answer arrives during the next run.
#[test]
fn a_snapshot_may_arrive_during_the_next_run() {
    let sent = [open(), run(1), commit(1), snapshot(1), run(2), commit(2)];
    let all = [
        FromWorker::Opened,
        started(1),
        completed(1),
        committed(1),
        started(2),
        output(2),
        written(1),
        output(2),
        completed(2),
        committed(2),
    ];
    assert_eq!(messages(&sent, &all), Ok(()));
}

/// A conversation with a worker that follows the protocol: requests and the answers to each.
#[derive(Debug, Default)]
struct Conversation {
    requests: Vec<ToWorker<'static>>,
    answers: Vec<FromWorker>,
}

/// One run of a conversation: how much it prints and calls, and which requests follow.
#[derive(Debug, Clone)]
struct Turn {
    outputs: usize,
    calls: u64,
    typescript: bool,
    snapshot: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    (0..4_usize, 0..3_u64, any::<bool>(), any::<bool>()).prop_map(|(outputs, calls, typescript, snapshot)| Turn {
        outputs,
        calls,
        typescript,
        snapshot,
    })
}

impl Conversation {
    fn of(turns: &[Turn]) -> Self {
        let mut conversation = Self { requests: vec![open()], answers: vec![FromWorker::Opened] };
        for (turn, n) in turns.iter().zip(1..) {
            conversation.requests.push(run(n));
            conversation.answers.push(started(n));
            if turn.typescript {
                conversation.answers.extend([parsing(n), started(n)]);
            }
            conversation.answers.extend((0..turn.outputs).map(|_| output(n)));
            conversation.answers.extend((1..=turn.calls).map(|number| call(n, number)));
            if turn.typescript {
                conversation.answers.push(javascript(n));
            }
            conversation.answers.push(completed(n));
            if turn.snapshot {
                conversation.requests.push(snapshot(n));
                conversation.answers.push(written(n));
            }
            conversation.requests.push(commit(n));
            conversation.answers.push(committed(n));
        }
        conversation.requests.push(ToWorker::Close);
        conversation
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_that_follows_the_protocol_is_accepted_by_both_sides(turns in prop::collection::vec(turn(), 0..6)) {
        let Conversation { requests: sent, answers } = Conversation::of(&turns);
        prop_assert_eq!(requests(&sent), Ok(()));
        prop_assert_eq!(messages(&sent, &answers), Ok(()));
    }

    /// Except for output and inputs, every message may be sent only once.
    #[test]
    fn a_repeated_message_is_refused(turns in prop::collection::vec(turn(), 1..6), index in any::<prop::sample::Index>()) {
        let Conversation { requests: sent, mut answers } = Conversation::of(&turns);
        let at = index.index(answers.len());
        let message = answers[at].clone();
        if !matches!(message, FromWorker::Output { .. } | FromWorker::Inputs { .. }) {
            answers.insert(at, message);
            prop_assert!(messages(&sent, &answers).is_err(), "{:?}", answers);
        }
    }

    /// A wrong run number is refused in every message.
    #[test]
    fn a_wrong_run_number_is_refused(
        turns in prop::collection::vec(turn(), 1..6),
        index in any::<prop::sample::Index>(),
        other in 1..u64::MAX,
    ) {
        let Conversation { requests: sent, mut answers } = Conversation::of(&turns);
        let at = index.index(answers.len());
        let other = number(other);
        prop_assume!(answers[at].run().is_some_and(|run| run != other));
        match &mut answers[at] {
            FromWorker::Parsing { run }
            | FromWorker::Started { run }
            | FromWorker::Inputs { run, .. }
            | FromWorker::Javascript { run, .. }
            | FromWorker::Output { run, .. }
            | FromWorker::OutputDropped { run }
            | FromWorker::Call { run, .. }
            | FromWorker::Ended { run, .. }
            | FromWorker::Committed { run }
            | FromWorker::Snapshot { run, .. } => *run = other,
            FromWorker::Opened | FromWorker::Unfit { .. } => {}
        }
        prop_assert!(messages(&sent, &answers).is_err(), "{:?}", answers);
    }
}
