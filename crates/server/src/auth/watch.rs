//! Detects whether a file may have changed since the last check, without a `stat` per request.
//!
//! The kernel queues an inotify event whenever anything in the file's folder is written or renamed, so a check after a change always sees
//! it. File systems without events (network file systems) are checked once a second.
//!
//! The `notify` crate is not used: it delivers events from its own thread, so a check right after a change could miss the change.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A few dozen events. The rest is read on the next check.
const EVENT_BYTES: usize = 4 << 10;

pub struct Watch {
    path: PathBuf,
    /// `None` if the kernel's limit of watches is reached.
    events: Option<OwnedFd>,
    seen: Option<Stamp>,
    looked_at: Instant,
}

/// Identifies a version of a file: a replaced file has a different inode, a rewritten one a different time.
type Stamp = (u64, u64, i64, i64, u64);

impl Watch {
    pub fn new(path: &Path) -> Self {
        let events = watch_folder(path)
            .inspect_err(|error| tracing::warn!(%error, "changes of the token file are noticed within a second, not immediately"));
        Self { path: path.into(), events: events.ok(), seen: stamp(path), looked_at: Instant::now() }
    }

    pub fn has_changed(&mut self) -> bool {
        let has_events = self.events.as_ref().is_some_and(drain);
        if !has_events && self.looked_at.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked_at = Instant::now();
        let now = stamp(&self.path);
        let changed = now != self.seen;
        self.seen = now;
        changed
    }
}

fn watch_folder(path: &Path) -> rustix::io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let kinds = WatchFlags::MODIFY
        | WatchFlags::CLOSE_WRITE
        | WatchFlags::ATTRIB
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO;
    inotify::add_watch(&events, folder, kinds)?;
    Ok(events)
}

/// Reads all pending events. Returns whether there were any.
fn drain(events: &OwnedFd) -> bool {
    let (mut any, mut bytes) = (false, [0u8; EVENT_BYTES]);
    loop {
        match rustix::io::read(events, &mut bytes) {
            Ok(count) if count > 0 => any = true,
            Err(Errno::INTR) => {}
            _ => return any,
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::metadata(path).ok()?;
    Some((file.dev(), file.ino(), file.ctime(), file.ctime_nsec(), file.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_immediately_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.toml");
        fs::write(&path, "one").expect("a file");
        let mut watch = Watch::new(&path);
        assert!(!watch.has_changed());
        fs::write(folder.path().join("another"), "").expect("a file");
        assert!(!watch.has_changed(), "a change of another file is ignored");
        let new = folder.path().join("new");
        fs::write(&new, "two").expect("a file");
        fs::rename(&new, &path).expect("replaced");
        assert!(watch.has_changed());
        assert!(!watch.has_changed());
        fs::remove_file(&path).expect("removed");
        assert!(watch.has_changed());
    }
}
