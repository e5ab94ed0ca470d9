//! How long something is as JSON, without writing it down.

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
    // Records and their parts are always JSON; what could not be written would be too large for any bound.
    serde_json::to_writer(&mut counted, value).map_or(usize::MAX, |()| counted.0)
}
