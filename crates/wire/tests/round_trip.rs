//! Tests that messages are decoded as sent, in chunks of any size, and that no input makes a reader panic or buffer more than a frame.

use heapstead_types::Failure;
use heapstead_wire::{
    CallNumber, Decoder, Derivation, FromWorker, InputRecorder, Open, Reader, RefusedScript, Replay, RunNumber, RunSettings, ScriptForm,
    ToWorker, Written, send_with_descriptors,
};
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::borrow::Cow;

fn run_number() -> impl Strategy<Value = RunNumber> {
    prop_oneof![1..5_u64, Just(u64::MAX), 1..u64::MAX].prop_map(|number| RunNumber::new(number).expect("not 0"))
}

fn call_number() -> impl Strategy<Value = CallNumber> {
    any::<u64>().prop_map(CallNumber)
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![
        ".*".prop_map(Failure::Exception),
        ".*".prop_map(Failure::Syntax),
        any::<u32>().prop_map(|heap_mb| Failure::MemoryCap { heap_mb }),
        Just(Failure::NeverSettles),
        Just(Failure::ResultTooLarge),
        ".*".prop_map(Failure::Unsaveable),
        ".*".prop_map(Failure::NoWorker),
    ]
}

fn from_worker() -> impl Strategy<Value = FromWorker> {
    let ended = prop_oneof![".*".prop_map(Ok), failure().prop_map(Err)];
    let written = (any::<u64>(), any::<[u8; 32]>()).prop_map(|(length, sha256)| Written { length, sha256 });
    let snapshot = prop_oneof![written.prop_map(Ok), failure().prop_map(Err)];
    prop_oneof![
        Just(FromWorker::Opened),
        run_number().prop_map(|run| FromWorker::Parsing { run }),
        run_number().prop_map(|run| FromWorker::Started { run }),
        (run_number(), ".*", script_form()).prop_map(|(run, text, form)| FromWorker::Javascript { run, text, form }),
        (run_number(), bytes()).prop_map(|(run, text)| FromWorker::Output { run, text }),
        run_number().prop_map(|run| FromWorker::OutputDropped { run }),
        (run_number(), bytes()).prop_map(|(run, part)| FromWorker::Inputs { run, part }),
        (run_number(), call_number(), any::<u16>(), bytes()).prop_map(|(run, call, kind, payload)| FromWorker::Call {
            run,
            call,
            kind,
            payload
        }),
        (run_number(), ended).prop_map(|(run, outcome)| FromWorker::Ended { run, outcome }),
        run_number().prop_map(|run| FromWorker::Committed { run }),
        (run_number(), snapshot).prop_map(|(run, outcome)| FromWorker::Snapshot { run, outcome }),
        ".*".prop_map(|why| FromWorker::Unfit { why }),
    ]
}

fn script_form() -> impl Strategy<Value = Option<ScriptForm>> {
    let positions = || proptest::option::of(vec(any::<[i32; 4]>(), 0..20).prop_map(|groups| groups.concat()));
    let refused = proptest::option::of(positions().prop_map(|positions| RefusedScript { positions }));
    let derivation = (any::<bool>(), any::<bool>(), refused, positions())
        .prop_map(|(is_typescript, keeps_result, refused, positions)| Derivation { is_typescript, keeps_result, refused, positions });
    proptest::option::of(derivation.prop_map(|derivation| ScriptForm::new(&derivation).expect("short")))
}

fn to_worker() -> impl Strategy<Value = ToWorker<'static>> {
    let open = (any::<u32>(), any::<Option<u64>>(), any::<u64>(), any::<bool>())
        .prop_map(|(heap_mb, heap_bytes, identity_seed, stateful)| Open { heap_mb, heap_bytes, identity_seed, stateful });
    let settings = (any::<u64>(), any::<[u8; 32]>(), vec((".*", ".*"), 0..4)).prop_map(|(output_bytes_max, seed, headers)| RunSettings {
        output_bytes_max,
        seed,
        headers,
    });
    let inputs = proptest::option::of(vec(0..1_000_000_u64, 0..100).prop_map(|mut readings| {
        let mut recorder = InputRecorder::new(7);
        readings.sort();
        readings.into_iter().for_each(|reading| recorder.reading(reading));
        recorder.finish()
    }));
    let code = prop_oneof![".*", "[é ]{1000,20000}"];
    let outcome = prop_oneof![bytes().prop_map(Ok), ".*".prop_map(Err)];
    prop_oneof![
        open.prop_map(ToWorker::Open),
        (run_number(), settings, inputs, script_form(), code).prop_map(|(run, settings, inputs, form, code)| ToWorker::Run {
            run,
            settings: Cow::Owned(settings),
            replay: inputs.map(|inputs| Replay { inputs: Cow::Owned(inputs), form: form.map(Cow::Owned) }),
            code: Cow::Owned(code)
        }),
        run_number().prop_map(|run| ToWorker::Commit { run }),
        run_number().prop_map(|run| ToWorker::Snapshot { run }),
        (run_number(), call_number(), outcome).prop_map(|(run, call, outcome)| ToWorker::Reply { run, call, outcome }),
        Just(ToWorker::Close),
        Just(ToWorker::Fork),
    ]
}

fn sockets() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("socketpair")
}

/// Sends all of `bytes` in chunks of at most `piece_bytes`.
fn send_all(socket: &OwnedFd, bytes: &[u8], piece_bytes: usize) {
    for piece in bytes.chunks(piece_bytes) {
        let mut sent = 0;
        while sent < piece.len() {
            sent += send_with_descriptors(socket, &piece[sent..], &[]).expect("send");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn messages_of_a_worker_are_decoded_as_sent(messages in vec(from_worker(), 0..12), piece_bytes in 1..300_usize) {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| message.write_to(&mut bytes).expect("write to memory"));
        let (mut decoder, mut seen) = (Decoder::default(), Vec::new());
        for piece in bytes.chunks(piece_bytes) {
            decoder.push(piece);
            while let Some(message) = decoder.next_message().expect("a message") {
                seen.push(message);
            }
        }
        prop_assert_eq!(seen, messages);
        prop_assert!(!decoder.is_partial());
    }

    #[test]
    fn messages_of_the_server_are_decoded_as_sent(messages in vec(to_worker(), 1..6), piece_bytes in 1..100_000_usize) {
        let (near, far) = sockets();
        let mut reader = Reader::default();
        std::thread::scope(|threads| -> Result<(), TestCaseError> {
            threads.spawn(|| {
                for message in &messages {
                    let mut bytes = Vec::new();
                    message.write_to(&mut bytes).expect("write to memory");
                    // Messages that need a descriptor get one, attached to the first byte.
                    let (first, rest) = bytes.split_at(1);
                    send_with_descriptors(&near, first, &vec![near.as_fd(); message.descriptors()]).expect("send");
                    send_all(&near, rest, piece_bytes);
                }
            });
            for message in &messages {
                let (seen, descriptor) = reader.next_message(&far).expect("a message");
                prop_assert_eq!(&seen, message);
                prop_assert_eq!(usize::from(descriptor.is_some()), message.descriptors());
            }
            Ok(())
        })?;
        prop_assert!(!reader.has_more());
    }

    /// A message with changed bytes is decoded as another message or refused, without a panic.
    #[test]
    fn damaged_bytes_are_decoded_or_refused(
        sent in (from_worker(), to_worker()),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let damaged = |mut bytes: Vec<u8>| {
            damage.iter().for_each(|(index, byte)| { let at = index.index(bytes.len()); bytes[at] = *byte });
            bytes
        };
        let (mut up, mut down) = (Vec::new(), Vec::new());
        sent.0.write_to(&mut up).expect("write to memory");
        sent.1.write_to(&mut down).expect("write to memory");
        let mut decoder = Decoder::default();
        decoder.push(&damaged(up));
        while let Ok(Some(_)) = decoder.next_message() {}
        let (near, far) = sockets();
        let down = damaged(down);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                send_all(&near, &down, usize::MAX);
                rustix::net::shutdown(&near, rustix::net::Shutdown::Write).expect("shutdown");
            });
            let mut reader = Reader::default();
            while reader.next_message(&far).is_ok() {}
            // So that the sender does not block after the reader has stopped.
            while let Ok(1..) = rustix::io::read(&far, &mut [0; 4096][..]) {}
        });
    }
}
