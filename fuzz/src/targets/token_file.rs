//! Token files: what is read is written in a form that is read as the same.

use heapstead_server::fuzzing::token_file;

pub fn run(text: &str) {
    let Ok(written) = token_file(text) else { return };
    assert_eq!(token_file(&written).as_ref(), Ok(&written));
}
