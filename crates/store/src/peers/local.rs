//! Servers of one machine: a locked file per server is its lease, which the kernel releases when the process dies, and a Unix socket beside
//! it takes questions.
//!
//! ```text
//! <database>/processes/<server>        locked while the server lives
//! <database>/processes/<server>.sock   0600; one question and one answer (`ok` or `no`) per connection, a line each
//! ```
//! A process that may open the database may ask; the asking server has checked whose execution it is. A connection that closes without an
//! answer means that the server has died.

use super::question::LINE_BYTES_MAX;
use super::{Leases, PeerError, Peers, Question, Responder};
use async_trait::async_trait;
use heapstead_types::ServerId;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};

const FOLDER: &str = "processes";
const SOCKET_SUFFIX: &str = ".sock";
/// Questions answered at once; further ones wait in the socket's queue.
const QUESTIONS_MAX: usize = 1024;
/// Pause after an error that is not one connection's, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const YES: &str = "ok\n";
const NO: &str = "no\n";

pub struct LocalPeers {
    server: ServerId,
    folder: PathBuf,
    /// The lease.
    _lock: File,
    listener: Mutex<Option<AbortHandle>>,
}

impl LocalPeers {
    /// Takes a lease for this process, under a new id.
    pub fn join(database: &Path) -> io::Result<Self> {
        let folder = database.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let server = ServerId::from_random(heapstead_types::random_bytes());
        // Locked under a hidden name first, so that no other server sees it unlocked.
        let hidden = folder.join(format!(".{server}"));
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&hidden)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        std::fs::rename(hidden, folder.join(server.as_str()))?;
        Ok(Self { server, folder, _lock: lock, listener: Mutex::default() })
    }

    fn error(&self, server: &ServerId, error: &io::Error) -> PeerError {
        PeerError { server: server.clone(), why: error.to_string() }
    }

    async fn try_ask(&self, server: &ServerId, question: &Question) -> io::Result<bool> {
        let folder = SocketFolder::open(&self.folder)?;
        let mut stream = UnixStream::connect(folder.socket(server.as_str())).await?;
        stream.write_all(format!("{question}\n").as_bytes()).await?;
        let mut line = String::new();
        stream.take(LINE_BYTES_MAX).read_to_string(&mut line).await?;
        match line.as_str() {
            YES => Ok(true),
            NO => Ok(false),
            _ => Err(ErrorKind::UnexpectedEof.into()),
        }
    }

    fn files(&self) -> impl Iterator<Item = (PathBuf, String)> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().into_string().ok().filter(|name| !name.starts_with('.')).map(|name| (file.path(), name)))
    }
}

impl Leases for LocalPeers {
    fn server(&self) -> &ServerId {
        &self.server
    }

    fn is_alive(&self, server: &ServerId) -> bool {
        if *server == self.server {
            return true;
        }
        match File::open(self.folder.join(server.as_str())) {
            // A shared lock: an exclusive one would look like the lease to a server that checks at the same time.
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockShared).is_err(),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    fn has_others(&self) -> bool {
        self.files().any(|(_, name)| !name.starts_with(self.server.as_str()))
    }

    fn remove_dead(&self) {
        for (path, name) in self.files() {
            let is_dead = |server: ServerId| !self.is_alive(&server);
            if name.strip_suffix(SOCKET_SUFFIX).unwrap_or(&name).parse().is_ok_and(is_dead) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

#[async_trait]
impl Peers for LocalPeers {
    fn respond(&self, responder: Arc<dyn Responder>) -> Result<(), PeerError> {
        let listener = bind(&self.folder, &self.server).map_err(|error| self.error(&self.server, &error))?;
        let task = tokio::spawn(listen(listener, responder)).abort_handle();
        let previous = self.listener.lock().unwrap_or_else(PoisonError::into_inner).replace(task);
        if let Some(previous) = previous {
            previous.abort();
        }
        Ok(())
    }

    async fn ask(&self, server: &ServerId, question: &Question) -> Result<bool, PeerError> {
        self.try_ask(server, question).await.map_err(|error| self.error(server, &error))
    }
}

impl Drop for LocalPeers {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listener.abort();
        }
        let _ = std::fs::remove_file(self.folder.join(self.server.as_str()));
        let _ = std::fs::remove_file(self.folder.join(format!("{}{SOCKET_SUFFIX}", self.server)));
    }
}

/// Accepts questions until it is dropped, which closes the connections of all questions that have no answer yet.
async fn listen(listener: UnixListener, responder: Arc<dyn Responder>) {
    let slots = Arc::new(Semaphore::new(QUESTIONS_MAX));
    let mut answers = JoinSet::new();
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "a question from another server can't be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        while answers.try_join_next().is_some() {}
        let responder = responder.clone();
        answers.spawn(async move {
            // A peer that stopped waiting needs no answer.
            let _ = answer(&*responder, stream).await;
            drop(slot);
        });
    }
}

async fn answer(responder: &dyn Responder, mut stream: UnixStream) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader.take(LINE_BYTES_MAX));
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let yes = match Question::parse(&line) {
        None => false,
        Some(question) => tokio::select! {
            yes = responder.answer(question) => yes,
            // The peer sends nothing more, so this is the end of its connection.
            closed = reader.read_u8() => return closed.map(drop),
        },
    };
    writer.write_all(if yes { YES } else { NO }.as_bytes()).await
}

fn bind(folder: &Path, server: &ServerId) -> io::Result<UnixListener> {
    let folder = SocketFolder::open(folder)?;
    // Under a hidden name until only this user may connect to it.
    let (hidden, ready) = (folder.socket(&format!(".{server}")), folder.socket(server.as_str()));
    let listener = UnixListener::bind(&hidden)?;
    std::fs::set_permissions(&hidden, Permissions::from_mode(0o600))?;
    std::fs::rename(hidden, ready)?;
    Ok(listener)
}

/// The folder of the sockets, addressed through a descriptor: a socket address has 108 bytes at most, and the folder's path may be longer.
struct SocketFolder(OwnedFd);

impl SocketFolder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?))
    }

    fn socket(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}{SOCKET_SUFFIX}", self.0.as_raw_fd()))
    }
}
