//! Detects whether a file may have changed since the last check, without a `stat` per request.
//!
//! The kernel queues an inotify event whenever anything in the file's folder is written or renamed, so a check after a change always sees
//! it. File systems without events (network file systems) are checked once a second.
//!
//! The `notify` crate is not used: it delivers events from its own thread, so a check right after a change could miss the change.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
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
        let events = self.events.as_ref().map_or(Events::None, |events| drain(events, self.path.file_name()));
        if events == Events::None && self.looked_at.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked_at = Instant::now();
        let now = stamp(&self.path);
        // An event of the file is enough: two changes within a tick of the file system's clock have the same stamp.
        let changed = events == Events::OfTheFile || now != self.seen;
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

/// What happened in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Events {
    None,
    /// The file may be reached through something else in the folder, such as a link.
    OfOthers,
    OfTheFile,
}

/// Reads all pending events.
fn drain(events: &OwnedFd, name: Option<&OsStr>) -> Events {
    let (mut found, mut buffer) = (Events::None, [MaybeUninit::uninit(); EVENT_BYTES]);
    let mut reader = inotify::Reader::new(events, &mut buffer);
    loop {
        match reader.next() {
            Ok(event) => {
                // An event without a name is about the folder, or says that events were lost.
                let is_it = event.file_name().is_none_or(|of| Some(OsStr::from_bytes(of.to_bytes())) == name);
                found = found.max(if is_it { Events::OfTheFile } else { Events::OfOthers });
            }
            Err(Errno::INTR) => {}
            Err(_) => return found,
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

    /// Story: a file that is rewritten in place twice within a tick of the file system's clock has the same stamp after both.
    #[test]
    fn a_second_change_within_a_tick_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.toml");
        fs::write(&path, "one").expect("a file");
        let mut watch = Watch::new(&path);
        for text in ["two", "six", "ten"].into_iter().cycle().take(1000) {
            fs::write(&path, text).expect("rewritten");
            assert!(watch.has_changed());
        }
    }
}
