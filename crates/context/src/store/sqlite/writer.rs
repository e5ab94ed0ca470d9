//! The one thread of this process that writes: whatever waits together is one transaction, and is answered once that is committed.

use super::{BACKEND, unavailable};
use crate::StoreError;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

/// Writes that wait; whoever comes later waits for a place.
const WAITING_MAX: usize = 1024;
/// Writes that share a commit: enough to share its cost, few enough to be answered soon.
const TOGETHER_MAX: usize = 128;

pub struct Writer(mpsc::Sender<Box<dyn Write>>);

trait Write: Send {
    /// False when it failed, and nothing of it may be kept.
    fn run(&mut self, db: &Connection) -> bool;
    fn answer(self: Box<Self>, committed: &Result<(), StoreError>);
}

struct Waiting<T, F> {
    work: Option<F>,
    done: Option<rusqlite::Result<T>>,
    reply: Option<oneshot::Sender<Result<T, StoreError>>>,
}

impl<T: Send, F: FnOnce(&Connection) -> rusqlite::Result<T> + Send> Write for Waiting<T, F> {
    fn run(&mut self, db: &Connection) -> bool {
        self.done = self.work.take().map(|work| work(db));
        matches!(self.done, Some(Ok(_)))
    }

    fn answer(self: Box<Self>, committed: &Result<(), StoreError>) {
        let answer = match (self.done, committed) {
            (_, Err(error)) => Err(error.clone()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (Some(Err(error)), Ok(())) => Err(unavailable(&error)),
            (None, Ok(())) => Err(stopped()),
        };
        if let Some(reply) = self.reply {
            // Whoever asked may have left.
            let _ = reply.send(answer);
        }
    }
}

impl Writer {
    pub fn start(connection: Connection) -> Result<Self, StoreError> {
        let (sender, waiting) = mpsc::channel(WAITING_MAX);
        let thread = std::thread::Builder::new().name("context-writer".into());
        thread
            .spawn(move || serve(&connection, waiting))
            .map_err(|error| StoreError::Unavailable { backend: BACKEND, why: format!("no thread to write with: {error}") })?;
        Ok(Self(sender))
    }

    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let waiting = Waiting { work: Some(work), done: None, reply: Some(reply) };
        self.0.send(Box::new(waiting)).await.map_err(|_| stopped())?;
        answer.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// For what may as well not happen, when there is no place to wait.
    pub fn send_and_forget(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static) {
        let _ = self.0.try_send(Box::new(Waiting { work: Some(work), done: None, reply: None }));
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable { backend: BACKEND, why: "its writer has stopped".into() }
}

fn serve(db: &Connection, mut waiting: mpsc::Receiver<Box<dyn Write>>) {
    while let Some(first) = waiting.blocking_recv() {
        let mut together = vec![first];
        while together.len() < TOGETHER_MAX
            && let Ok(next) = waiting.try_recv()
        {
            together.push(next);
        }
        let committed = commit(db, &mut together).map_err(|error| unavailable(&error));
        if committed.is_err() && !db.is_autocommit() {
            let _ = db.execute_batch("ROLLBACK");
        }
        together.into_iter().for_each(|write| write.answer(&committed));
    }
}

fn commit(db: &Connection, together: &mut [Box<dyn Write>]) -> rusqlite::Result<()> {
    db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    for write in together {
        db.prepare_cached("SAVEPOINT one")?.execute([])?;
        if !write.run(db) {
            db.prepare_cached("ROLLBACK TO one")?.execute([])?;
        }
        db.prepare_cached("RELEASE one")?.execute([])?;
    }
    db.prepare_cached("COMMIT")?.execute([]).map(drop)
}
