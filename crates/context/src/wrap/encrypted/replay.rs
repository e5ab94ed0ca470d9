//! Detects the replay of an older document, by remembering the version this process has seen of each recently used session.
//!
//! Every write increments a sequence number. Within one lifetime of a context it never decreases. A lifetime that this process saw end must
//! not return. A lifetime that began before the last one seen is older, as far as the clocks of the servers agree.

use super::envelope::Header;
use crate::SessionId;
use lru::LruCache;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

const SESSIONS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 16) - 1);
/// Maximum clock difference between two servers.
const CLOCKS_APART_MS_MAX: u64 = 60_000;

pub struct Seen(Mutex<LruCache<SessionId, Mark>>);

#[derive(Clone, Copy)]
struct Mark {
    header: Header,
    gone: bool,
}

/// The lowest version that is accepted.
#[derive(Clone, Copy)]
pub struct Floor(Option<Mark>);

impl Default for Seen {
    fn default() -> Self {
        Self(Mutex::new(LruCache::sparse(SESSIONS_MAX)))
    }
}

impl Seen {
    pub fn floor(&self, session: &SessionId) -> Floor {
        Floor(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(session).copied())
    }

    pub fn note(&self, session: &SessionId, header: Header) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = seen.get(session).is_none_or(|mark| mark.header.birth != header.birth || mark.header.sequence < header.sequence);
        if is_news {
            seen.put(*session, Mark { header, gone: false });
        }
    }

    /// Marks the lifetime that was seen before the removal as ended, unless a new one has begun since.
    pub fn gone(&self, session: &SessionId, Floor(before): Floor) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(mark), Some(before)) = (seen.get_mut(session), before) {
            mark.gone |= mark.header.birth == before.header.birth;
        }
    }

    /// The header of the next write of a flush, which does not read first.
    pub fn next(&self, session: &SessionId) -> Option<Header> {
        self.floor(session).0.filter(|mark| !mark.gone).map(|mark| mark.header.next())
    }
}

impl Floor {
    pub fn allows(&self, header: &Header) -> bool {
        let Some(mark) = self.0 else { return true };
        if mark.header.birth == header.birth {
            return !mark.gone && header.sequence >= mark.header.sequence;
        }
        header.born_at_ms.saturating_add(CLOCKS_APART_MS_MAX) >= mark.header.born_at_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SessionId = SessionId::from_bytes([1; 32]);

    fn header(life: u8, born_at_ms: u64, sequence: u64) -> Header {
        Header { born_at_ms, birth: [life; 8], sequence }
    }

    #[test]
    fn the_sequence_never_decreases_within_a_lifetime() {
        let seen = Seen::default();
        assert!(seen.floor(&ID).allows(&header(1, 0, 1)));
        seen.note(&ID, header(1, 0, 5));
        let allowed: Vec<u64> = (3..8).filter(|sequence| seen.floor(&ID).allows(&header(1, 0, *sequence))).collect();
        assert_eq!(allowed, [5, 6, 7]);
    }

    #[test]
    fn an_ended_lifetime_is_refused_and_a_new_one_accepted() {
        let seen = Seen::default();
        seen.note(&ID, header(1, 1_000_000, 5));
        seen.gone(&ID, seen.floor(&ID));
        assert!(!seen.floor(&ID).allows(&header(1, 1_000_000, 9)));
        assert!(seen.floor(&ID).allows(&header(2, 999_000, 1)), "another server's clock");
        assert!(!seen.floor(&ID).allows(&header(3, 900_000, 7)), "an even older life");
    }

    #[test]
    fn a_lifetime_that_began_while_another_ended_is_not_ended() {
        let seen = Seen::default();
        seen.note(&ID, header(1, 0, 5));
        let before = seen.floor(&ID);
        seen.note(&ID, header(2, 10, 1));
        seen.gone(&ID, before);
        assert!(seen.floor(&ID).allows(&header(2, 10, 2)));
    }
}
