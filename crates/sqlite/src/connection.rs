//! The settings of every connection.

use rusqlite::{Connection, ErrorCode};
use std::time::{Duration, Instant};

/// Pause before the journal mode is set again.
const RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Sets the journal mode WAL, temporary storage in memory, `synchronous`, and how long a statement waits for a lock that another connection holds.
pub fn configure(connection: &Connection, busy_timeout: Duration, synchronous: &str) -> rusqlite::Result<()> {
    connection.busy_timeout(busy_timeout)?;
    let deadline = Instant::now() + busy_timeout;
    // While two connections switch a new database to WAL, SQLite refuses one of them at once, whatever the timeout.
    while let Err(error) = connection.pragma_update(None, "journal_mode", "WAL") {
        if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || Instant::now() >= deadline {
            return Err(error);
        }
        std::thread::sleep(RETRY_PAUSE);
    }
    // What a statement that fails has to roll back: a few pages.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "synchronous", synchronous)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Regression: of two servers that were started at the same time on a new machine, one failed with `database is locked`.
    #[test]
    fn a_new_database_can_be_opened_by_several_at_once() {
        const OPENERS: usize = 8;
        for _ in 0..20 {
            let folder = tempfile::tempdir().expect("a folder");
            let (path, start) = (folder.path().join("new.db"), Barrier::new(OPENERS));
            std::thread::scope(|scope| {
                let open = || {
                    let connection = Connection::open(&path).expect("opened");
                    start.wait();
                    configure(&connection, Duration::from_secs(5), "NORMAL")?;
                    connection.execute_batch("BEGIN IMMEDIATE; CREATE TABLE IF NOT EXISTS t (x); COMMIT")
                };
                let opened: Vec<_> = (0..OPENERS).map(|_| scope.spawn(open)).collect();
                for opener in opened {
                    opener.join().expect("no panic").expect("configured");
                }
            });
        }
    }
}
