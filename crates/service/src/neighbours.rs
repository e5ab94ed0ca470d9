//! Other server processes on the same database: each listens on a socket beside its lock, and does for the others what only it can.
//!
//! ```text
//! <database>/processes/<process>.sock, 0600; one question and one answer per connection, a line each
//!   cancel <id>           → ok   its worker is dead and its end is `cancelled`; `no` when it does not run here or ended otherwise
//!   ended <id>            → ok   once it has ended, or when it does not run here
//!   lines <id> <number>   → ok   the same, or once there is such a line of output
//!   bytes <id> <number>   → ok   the same, or once there is more output than this
//! ```
//! Whoever may open the database may ask; whose execution it is was looked up there before. A connection that closes without an answer says
//! that the process is gone.

use crate::Archive;
use crate::executions::reaches;
use crate::live::{Live, Stop};
use heapstead_store::outputs::PageRequest;
use heapstead_types::{ExecutionId, Status};
use rustix::fs::{Mode, OFlags};
use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// The longest line: a word, an id and a number.
const LINE_BYTES_MAX: u64 = 128;
/// Questions answered at once; further ones wait in the socket's queue.
const QUESTIONS_MAX: usize = 1024;
/// After an error that is not one connection's, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const YES: &str = "ok\n";
const NO: &str = "no\n";

/// What one process asks another about an execution that runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub id: ExecutionId,
    pub about: About,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    Cancel,
    Ended,
    /// Output with something at this line (the first is 1), or past this byte.
    Line(u64),
    Byte(u64),
}

impl About {
    pub fn output(page: PageRequest) -> Self {
        match page {
            PageRequest::Lines { offset, .. } => Self::Line(offset),
            PageRequest::Bytes { offset, .. } => Self::Byte(offset),
        }
    }
}

/// Answers the questions of others from now on. A process that can't is alone, and says so in its log.
pub fn listen(archive: &Archive) {
    let metadata = &archive.0.metadata;
    let listener = match bind(&metadata.processes_folder(), metadata.process_name()) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::warn!(%error, "other processes on this database can't reach this one");
            return;
        }
    };
    let kept = Arc::downgrade(&archive.0);
    let places = Arc::new(Semaphore::new(QUESTIONS_MAX));
    tokio::spawn(async move {
        while let Ok(place) = places.clone().acquire_owned().await {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a question from another process can't be taken in");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Some(kept) = kept.upgrade() else { return };
            tokio::spawn(async move {
                // Whoever asked and went away again wants no answer.
                let _ = answer(&Archive(kept), stream).await;
                drop(place);
            });
        }
    });
}

/// Asks another process, and waits for its answer. An error says that it could not be reached or has died.
pub async fn ask(archive: &Archive, process: &str, question: &Question) -> io::Result<bool> {
    let folder = Folder::open(&archive.0.metadata.processes_folder())?;
    let mut stream = UnixStream::connect(folder.socket(process)).await?;
    stream.write_all(format!("{question}\n").as_bytes()).await?;
    let mut line = String::new();
    stream.take(LINE_BYTES_MAX).read_to_string(&mut line).await?;
    match line.as_str() {
        YES => Ok(true),
        NO => Ok(false),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn answer(archive: &Archive, mut stream: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(LINE_BYTES_MAX));
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let found = Question::parse(&line).map(|question| (archive.0.live.get(&question.id), question.about));
    let yes = match found {
        None => false,
        Some((None, about)) => about != About::Cancel,
        Some((Some(live), about)) => tokio::select! {
            yes = when(&live, about) => yes,
            // The other side says nothing more, so this is its leaving.
            left = reader.read_u8() => return left.map(drop),
        },
    };
    writer.write_all(if yes { YES } else { NO }.as_bytes()).await
}

async fn when(live: &Live, about: About) -> bool {
    let page = match about {
        About::Cancel => {
            live.stop(Stop::Caller);
            return live.ended().await.status == Status::Cancelled;
        }
        About::Ended => {
            live.ended().await;
            return true;
        }
        About::Line(offset) => PageRequest::lines(offset, 1),
        About::Byte(offset) => PageRequest::Bytes { offset, limit: 1 },
    };
    let mut progress = live.watch();
    progress.wait_for(|progress| progress.ended.is_some() || reaches(progress.output, page)).await.is_ok()
}

impl Question {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.strip_suffix('\n')?.split(' ');
        let (word, id) = (words.next()?, words.next()?.parse().ok()?);
        let about = match (word, words.next()) {
            ("cancel", None) => About::Cancel,
            ("ended", None) => About::Ended,
            ("lines", Some(number)) => About::Line(number.parse().ok()?),
            ("bytes", Some(number)) => About::Byte(number.parse().ok()?),
            _ => return None,
        };
        words.next().is_none().then_some(Self { id, about })
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.about {
            About::Cancel => write!(f, "cancel {}", self.id),
            About::Ended => write!(f, "ended {}", self.id),
            About::Line(number) => write!(f, "lines {} {number}", self.id),
            About::Byte(number) => write!(f, "bytes {} {number}", self.id),
        }
    }
}

fn bind(folder: &Path, process: &str) -> io::Result<UnixListener> {
    let folder = Folder::open(folder)?;
    // Under a name that nobody looks at until only we may use it.
    let (unready, ready) = (folder.socket(&format!(".{process}")), folder.socket(process));
    let listener = UnixListener::bind(&unready)?;
    std::fs::set_permissions(&unready, Permissions::from_mode(0o600))?;
    std::fs::rename(unready, ready)?;
    Ok(listener)
}

/// The folder of the sockets. The address of a socket has 108 bytes at most, which the path of a folder may exceed, so it is named by a descriptor.
struct Folder(OwnedFd);

impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    fn socket(&self, process: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{process}{}", self.0.as_raw_fd(), heapstead_store::metadata::SOCKET_SUFFIX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_what_is_heard() {
        let id = ExecutionId::from_random([7; 16]);
        for about in [About::Cancel, About::Ended, About::Line(1), About::Byte(u64::MAX)] {
            let question = Question { id: id.clone(), about };
            let line = format!("{question}\n");
            assert!(line.len() as u64 <= LINE_BYTES_MAX);
            assert_eq!(Question::parse(&line), Some(question));
        }
    }

    #[test]
    fn anything_else_is_no_question() {
        let id = ExecutionId::from_random([7; 16]);
        for line in [
            String::new(),
            format!("cancel {id}"),
            format!("cancel {id} 1\n"),
            format!("lines {id}\n"),
            format!("lines {id} x\n"),
            format!("bytes {id} 1 2\n"),
            format!("sing {id}\n"),
            "cancel ../x\n".to_owned(),
        ] {
            assert_eq!(Question::parse(&line), None, "{line:?}");
        }
    }
}
