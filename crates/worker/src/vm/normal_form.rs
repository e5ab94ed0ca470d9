//! Normalises a snapshot: clears the bytes that differ between processes and have no meaning, so that the same heap always has the same bytes.
//!
//! V8 copies its read-only objects from memory and replaces the low half of every pointer by page and offset. The high half of the address
//! remains, and is never read again. The checksums in the header, which V8 verifies only in debug builds, cover it.
//!
//! Typed arrays have two words that V8 never sets and never reads: they contain the address of `undefined`, with two flags in the lowest bits.
//!
//! ```text
//! header      0 contexts | 4 rehashable | 8 checksum | 12 read-only checksum | 16 version (64) | 80 read-only offset | 84 shared offset | …
//! read-only   0 magic | 4 length | 8 bytecodes:  0/1 page  · 2 segment: page, offset, size, bytes · 3 one bit per word: is it a pointer? · 4 roots
//! ```

use memchr::memmem;
use std::ops::Range;

const CHECKSUMS: Range<usize> = 8..16;
const READ_ONLY_OFFSET: usize = 80;
const SECTION_HEADER_BYTES: usize = 8;
const WORD_BYTES: usize = 8;

const ALLOCATE_PAGE: u8 = 0;
const SEGMENT: u8 = 2;
const RELOCATE_SEGMENT: u8 = 3;
const ROOTS: u8 = 4;

/// The flag bits of such a word.
const FLAGS: u8 = 3;

/// The address of `undefined` in this process, which is the value of words that V8 never set.
#[derive(Clone, Copy)]
pub struct UndefinedAddress(u64);

impl UndefinedAddress {
    pub fn of(scope: &mut v8::PinScope<'_, '_>) -> Self {
        let undefined = v8::undefined(scope);
        // SAFETY: a `Local` is a pointer to the word that refers to the object.
        Self(unsafe { *std::mem::transmute::<v8::Local<'_, v8::Primitive>, *const u64>(undefined) })
    }
}

/// Normalises a snapshot. If its layout is not as expected, its checksums and some addresses remain.
pub fn normalize(snapshot: &mut [u8], unset: UndefinedAddress) {
    clear_unset(snapshot, unset);
    if clear_addresses(snapshot).is_some()
        && let Some(checksums) = snapshot.get_mut(CHECKSUMS)
    {
        checksums.fill(0);
    }
}

fn clear_unset(snapshot: &mut [u8], unset: UndefinedAddress) {
    let [low, high @ ..] = unset.0.to_le_bytes();
    let mut from = 1;
    while let Some(found) = snapshot.get(from..).and_then(|rest| memmem::find(rest, &high)) {
        let at = from + found;
        if snapshot[at - 1] & !FLAGS == low & !FLAGS {
            snapshot[at - 1] &= FLAGS;
            snapshot[at..at + high.len()].fill(0);
        }
        from = at + high.len();
    }
}

fn clear_addresses(snapshot: &mut [u8]) -> Option<()> {
    let offset = snapshot.get(READ_ONLY_OFFSET..READ_ONLY_OFFSET + 4)?.try_into().ok().map(u32::from_le_bytes)? as usize;
    let mut reader = Reader { bytes: snapshot, at: offset + SECTION_HEADER_BYTES };
    loop {
        match reader.byte()? {
            ALLOCATE_PAGE => {
                reader.number()?;
                reader.number()?;
            }
            SEGMENT => {
                reader.number()?;
                reader.number()?;
                let length = reader.number()?;
                let contents = reader.take(length)?;
                if reader.byte()? != RELOCATE_SEGMENT {
                    return None;
                }
                let words = length / WORD_BYTES;
                let pointers = reader.take(words.div_ceil(8))?;
                for word in 0..words {
                    let is_pointer = reader.bytes[pointers.start + word / 8] >> (word % 8) & 1 == 1;
                    if is_pointer {
                        let end = contents.start + (word + 1) * WORD_BYTES;
                        reader.bytes[end - WORD_BYTES / 2..end].fill(0);
                    }
                }
            }
            ROOTS => return Some(()),
            _ => return None,
        }
    }
}

struct Reader<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads one of V8's variable-length integers: the two low bits are the number of bytes after the first.
    fn number(&mut self) -> Option<usize> {
        let first = self.byte()?;
        let mut value = u32::from(first);
        for index in 1..=u32::from(first & 3) {
            value |= u32::from(self.byte()?) << (8 * index);
        }
        Some((value >> 2) as usize)
    }

    fn take(&mut self, length: usize) -> Option<Range<usize>> {
        let range = self.at..self.at.checked_add(length)?;
        self.bytes.get(range.clone())?;
        self.at = range.end;
        Some(range)
    }
}
