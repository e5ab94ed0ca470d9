//! Several processes on the same heaps: runs this test binary again with one test.

use crate::place::{heap, label, open_at};
use heapstead_store::HeapStore;
use heapstead_types::HeapKey;
use std::process::{Child, Command, Stdio};

const PLACE: &str = "HEAPSTEAD_TEST_PLACE";
const PROCESSES: usize = 3;

pub fn heaps() -> impl Iterator<Item = (HeapKey, Vec<u8>)> {
    (0..8).map(heap)
}

pub fn put_and_get_from_several(address: &str) {
    let processes = [(); PROCESSES].map(|()| command(address).spawn().expect("process"));
    processes.into_iter().for_each(succeeds);
}

/// A command that puts and gets the heaps at this address.
pub fn command(address: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "processes::one_of_several"]).env(PLACE, address).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn succeeds(process: Child) {
    let output = process.wait_with_output().expect("output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The task of each process. Without an address in the environment it does nothing.
#[test]
fn one_of_several() {
    let Ok(address) = std::env::var(PLACE) else { return };
    let store = HeapStore::new(open_at(&address));
    for (key, payload) in heaps() {
        store.put(&key, &payload, &label(1)).expect("put");
        assert!(store.get(&key).expect("get").payload() == payload);
    }
}
