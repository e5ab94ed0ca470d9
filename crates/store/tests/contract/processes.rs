//! Several processes on the same heaps: this test program, started again with one test to run.

use crate::place::{Place, engine, heap, open_at};
use heapstead_types::HeapKey;
use std::process::{Child, Command, Stdio};

const PLACE: &str = "HEAPSTEAD_TEST_PLACE";
const PROCESSES: usize = 3;

pub fn heaps() -> impl Iterator<Item = (HeapKey, Vec<u8>)> {
    (0..8).map(heap)
}

pub fn put_and_get_from_several(place: &dyn Place) {
    let processes = [(); PROCESSES].map(|()| command(&place.address()).spawn().expect("process"));
    processes.into_iter().for_each(succeeds);
}

/// What puts and gets the heaps at this place.
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

/// What each of them does. In the first process, where nobody names a place, there is nothing to do.
#[test]
fn one_of_several() {
    let Ok(address) = std::env::var(PLACE) else { return };
    let store = open_at(&address);
    for (key, payload) in heaps() {
        store.put(&key, &payload, Some(&engine(1))).expect("put");
        assert!(store.get(&key).expect("get").payload() == payload);
    }
}
