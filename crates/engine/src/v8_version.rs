//! Reads the version of V8 that wrote a snapshot from its header.
//!
//! ```text
//! 0                                    16                                        80
//! | contexts, rehashable, two checksums | version, ASCII, zero bytes to the end | …
//! ```
//! V8 aborts the process if the version is not its own, so it is checked here first.

const VERSION_AT: usize = 16;
const VERSION_BYTES: usize = 64;

/// None if there is no version at the place where V8 writes it.
pub fn read(snapshot: &[u8]) -> Option<&str> {
    let field = snapshot.get(VERSION_AT..VERSION_AT + VERSION_BYTES)?;
    let length = field.iter().position(|byte| *byte == 0)?;
    let (version, rest) = field.split_at(length);
    let is_text = !version.is_empty() && version.iter().all(u8::is_ascii_graphic);
    (is_text && rest.iter().all(|byte| *byte == 0)).then(|| str::from_utf8(version).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(version: &[u8]) -> Vec<u8> {
        let mut bytes = vec![7; 200];
        bytes[16..80].fill(0);
        bytes[16..16 + version.len()].copy_from_slice(version);
        bytes
    }

    #[test]
    fn a_version_is_read_where_v8_writes_it() {
        assert_eq!(read(&snapshot(b"14.6.202.34-node.34")), Some("14.6.202.34-node.34"));
        assert_eq!(read(&snapshot(b"15.0.1")), Some("15.0.1"));
    }

    #[test]
    fn bytes_without_a_version_are_rejected() {
        for bytes in [snapshot(b""), snapshot(b"14.6\0x"), snapshot(b"14.\xff"), snapshot(&[b'1'; 64]), vec![b'1'; 20], vec![7; 200]] {
            assert_eq!(read(&bytes), None, "{bytes:?}");
        }
    }
}
