//! Computes the length of a value as JSON without building the text.

use std::io::{self, Write};

pub fn json_bytes(value: &impl serde::Serialize) -> usize {
    struct Counted(usize);
    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // Records always serialise. A value that does not counts as too large for every limit.
    serde_json::to_writer(&mut counted, value).map_or(usize::MAX, |()| counted.0)
}
