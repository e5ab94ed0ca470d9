//! The file of a heap: how it is written, and everything that can be wrong with one. Pure functions, no I/O.
//!
//! ```text
//! 0             10                        42
//! | MCPV8SNAP \0 | SHA-256 of the payload | payload: V8's snapshot, at least 100 KiB |
//! ```
//! The checksum is also the heap's key, so a file tells whether it is whole and whether it is the one that was asked for.

use heapstead_types::HeapKey;
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 10] = b"MCPV8SNAP\0";
const DIGEST_BYTES: usize = 32;
/// Magic and checksum: where the payload begins.
pub const HEADER_BYTES: usize = MAGIC.len() + DIGEST_BYTES;
/// The smallest snapshot V8 makes is several times this; less is a fragment.
pub const PAYLOAD_BYTES_MIN: usize = 100 << 10;
/// V8 counts the bytes of a snapshot in a signed 32-bit number.
pub const PAYLOAD_BYTES_MAX: usize = i32::MAX as usize;

/// What is wrong with bytes that should be a heap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it does not begin with the mark of a heap file")]
    Magic,
    #[error("its payload has {bytes} bytes, at least {PAYLOAD_BYTES_MIN} are expected")]
    TooShort { bytes: u64 },
    #[error("its payload has {bytes} bytes, at most {PAYLOAD_BYTES_MAX} are expected")]
    TooLong { bytes: u64 },
    #[error("its payload does not match its checksum")]
    Checksum,
    #[error("it holds another heap, {holds}")]
    AnotherHeap { holds: HeapKey },
    #[error("its sidecar can't be understood: {why}")]
    Sidecar { why: String },
}

/// The key that a payload is kept under, if it can be a heap's at all.
pub fn key_of(payload: &[u8]) -> Result<HeapKey, Defect> {
    check_length(payload.len() as u64)?;
    Ok(HeapKey::from_digest(Sha256::digest(payload).into()))
}

/// The header in front of the payload in the file of the heap `key`.
pub fn header(key: &HeapKey) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let (magic, digest) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(MAGIC);
    digest.copy_from_slice(key.digest());
    header
}

/// The payload of a file that was read as the heap `asked`: only if magic, length, checksum and key are all right.
pub fn verify<'a>(file: &'a [u8], asked: &HeapKey) -> Result<&'a [u8], Defect> {
    if !file.starts_with(MAGIC) {
        return Err(Defect::Magic);
    }
    let Some((header_found, payload)) = file.split_at_checked(HEADER_BYTES) else {
        return Err(Defect::TooShort { bytes: 0 });
    };
    let key = key_of(payload)?;
    if *header_found != header(&key) {
        return Err(Defect::Checksum);
    }
    if key != *asked {
        return Err(Defect::AnotherHeap { holds: key });
    }
    Ok(payload)
}

/// As [`verify`], for a file that is read piece by piece.
#[derive(Default)]
pub(super) struct Verification {
    header: Vec<u8>,
    hasher: Sha256,
    payload_bytes: u64,
}

impl Verification {
    pub fn update(&mut self, piece: &[u8]) {
        let (header, payload) = piece.split_at(piece.len().min(HEADER_BYTES - self.header.len()));
        self.header.extend_from_slice(header);
        self.hasher.update(payload);
        self.payload_bytes += payload.len() as u64;
    }

    pub fn finish(self, asked: &HeapKey) -> Result<(), Defect> {
        check_magic(&self.header)?;
        check_length(self.payload_bytes)?;
        let key = HeapKey::from_digest(self.hasher.finalize().into());
        match key {
            _ if self.header != header(&key) => Err(Defect::Checksum),
            _ if key != *asked => Err(Defect::AnotherHeap { holds: key }),
            _ => Ok(()),
        }
    }
}

/// Whether a file that begins with these bytes can be a heap's.
pub(super) fn check_beginning(bytes: &[u8]) -> Result<(), Defect> {
    let length = bytes.len().min(MAGIC.len());
    if bytes.get(..length) == MAGIC.get(..length) { Ok(()) } else { Err(Defect::Magic) }
}

/// Whether a file has the mark of a heap file.
pub(super) fn check_magic(bytes: &[u8]) -> Result<(), Defect> {
    if bytes.starts_with(MAGIC) { Ok(()) } else { Err(Defect::Magic) }
}

/// How long the payload of the heap `asked` is, by the length of its file and the bytes it begins with: all that can be told without reading it.
pub fn check_start(start: &[u8], file_bytes: u64, asked: &HeapKey) -> Result<u64, Defect> {
    let Some(digest) = start.strip_prefix(MAGIC) else { return Err(Defect::Magic) };
    let Some(digest) = digest.first_chunk::<DIGEST_BYTES>() else { return Err(Defect::TooShort { bytes: 0 }) };
    let payload_bytes = file_bytes.saturating_sub(HEADER_BYTES as u64);
    check_length(payload_bytes)?;
    let holds = HeapKey::from_digest(*digest);
    if holds != *asked {
        return Err(Defect::AnotherHeap { holds });
    }
    Ok(payload_bytes)
}

/// Whether a payload of this length can be a heap.
pub(super) fn check_length(bytes: u64) -> Result<(), Defect> {
    match bytes {
        _ if bytes < PAYLOAD_BYTES_MIN as u64 => Err(Defect::TooShort { bytes }),
        _ if bytes > PAYLOAD_BYTES_MAX as u64 => Err(Defect::TooLong { bytes }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any fixed number: a failure names the bit, so it can be looked at without the seed.
    const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
    const RANDOM_FLIPS: usize = 10_000;

    fn valid() -> (HeapKey, Vec<u8>) {
        let payload: Vec<u8> = (0..PAYLOAD_BYTES_MIN + 7).map(|at| ((at * 31) >> 3) as u8).collect();
        let key = key_of(&payload).expect("a heap");
        (key, [&header(&key)[..], &payload].concat())
    }

    /// Numbers that look random, and are the same in every run.
    fn numbers(mut state: u64) -> impl Iterator<Item = usize> {
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        })
    }

    #[test]
    fn a_file_gives_back_its_payload() {
        let (key, file) = valid();
        assert_eq!(verify(&file, &key), Ok(&file[HEADER_BYTES..]));
        assert_eq!(file[..10], *b"MCPV8SNAP\0");
        assert_eq!(file[10..42], *key.digest());
    }

    #[test]
    fn every_bit_of_the_header_and_thousands_of_the_payload_are_guarded() {
        let (key, mut file) = valid();
        let header_bits = 0..HEADER_BYTES * 8;
        let bits = file.len() * 8;
        for bit in header_bits.chain(numbers(SEED).map(|number| number % bits).take(RANDOM_FLIPS)) {
            let (byte, mask) = (bit / 8, 1 << (bit % 8));
            file[byte] ^= mask;
            let expected = if byte < MAGIC.len() { Defect::Magic } else { Defect::Checksum };
            assert_eq!(verify(&file, &key), Err(expected), "bit {bit}");
            file[byte] ^= mask;
        }
        assert!(verify(&file, &key).is_ok(), "the file is whole again");
    }

    #[test]
    fn every_truncation_and_any_addition_is_refused() {
        let (key, file) = valid();
        let whole = file.len();
        let piecewise = |file: &[u8]| {
            let mut verification = Verification::default();
            file.chunks(1000).for_each(|piece| verification.update(piece));
            verification.finish(&key)
        };
        assert_eq!(piecewise(&file), Ok(()));
        for length in (0..whole).filter(|length| *length <= HEADER_BYTES || length % 997 == 0) {
            assert_eq!(piecewise(&file[..length]), verify(&file[..length], &key).map(drop), "cut to {length} bytes");
        }
        for length in 0..whole {
            let expected = match length {
                _ if length < MAGIC.len() => Defect::Magic,
                _ if length < HEADER_BYTES => Defect::TooShort { bytes: 0 },
                _ if length < HEADER_BYTES + PAYLOAD_BYTES_MIN => Defect::TooShort { bytes: (length - HEADER_BYTES) as u64 },
                _ => Defect::Checksum,
            };
            assert_eq!(verify(&file[..length], &key), Err(expected), "cut to {length} bytes");
        }
        for more in [&b"\0"[..], b"MCPV8SNAP\0"] {
            assert_eq!(verify(&[&file, more].concat(), &key), Err(Defect::Checksum));
        }
    }

    #[test]
    fn a_whole_file_under_another_key_is_refused() {
        let (key, file) = valid();
        let asked = HeapKey::from_digest([7; 32]);
        assert_eq!(verify(&file, &asked), Err(Defect::AnotherHeap { holds: key }));
    }

    #[test]
    fn the_start_of_a_file_tells_its_length_and_whose_it_is() {
        let (key, file) = valid();
        let (start, bytes) = (&file[..HEADER_BYTES], file.len() as u64);
        assert_eq!(check_start(start, bytes, &key), Ok(bytes - HEADER_BYTES as u64));
        assert_eq!(check_start(start, bytes, &HeapKey::from_digest([7; 32])), Err(Defect::AnotherHeap { holds: key }));
        assert_eq!(check_start(&start[..20], 20, &key), Err(Defect::TooShort { bytes: 0 }));
        assert_eq!(check_start(start, 43, &key), Err(Defect::TooShort { bytes: 1 }));
        assert_eq!(check_start(start, 3 << 30, &key), Err(Defect::TooLong { bytes: (3 << 30) - 42 }));
        assert_eq!(check_start(b"", 0, &key), Err(Defect::Magic));
    }

    #[test]
    fn lengths_are_bounded_on_both_sides() {
        assert_eq!(check_length(PAYLOAD_BYTES_MIN as u64 - 1), Err(Defect::TooShort { bytes: PAYLOAD_BYTES_MIN as u64 - 1 }));
        assert_eq!(check_length(PAYLOAD_BYTES_MIN as u64), Ok(()));
        assert_eq!(check_length(PAYLOAD_BYTES_MAX as u64), Ok(()));
        assert_eq!(check_length(PAYLOAD_BYTES_MAX as u64 + 1), Err(Defect::TooLong { bytes: PAYLOAD_BYTES_MAX as u64 + 1 }));
    }
}
