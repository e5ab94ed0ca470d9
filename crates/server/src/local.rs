//! Engine and heap store of this machine, opened for a command that runs code itself.

use crate::cli::FlagError;
use heapstead_engine::{Artifacts, ArtifactsError, Config, Engine, StartError};
use heapstead_store::{Database, HeapStore, HeapStoreError, Owner, RecordsError};
use heapstead_types::Failure;
use std::path::Path;
use std::time::Duration;

/// Where heaps are kept when nobody says otherwise.
pub const HEAP_FOLDER_DEFAULT: &str = "/tmp/mcp-v8-heaps";
/// Where the metadata database is when nobody says otherwise.
pub const DATABASE_FOLDER_DEFAULT: &str = "/tmp/mcp-v8-sessions";
/// A start that takes longer than this says what it is doing.
const START_NOTICE_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error(transparent)]
    Flags(#[from] FlagError),
    #[error(transparent)]
    Parts(#[from] ArtifactsError),
    #[error(transparent)]
    Engine(#[from] StartError),
    #[error(transparent)]
    Heaps(#[from] HeapStoreError),
    #[error(transparent)]
    Database(#[from] RecordsError),
}

impl From<LocalError> for Failure {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Flags(_) | LocalError::Heaps(_) | LocalError::Database(_) => Self::Store(error.to_string()),
            LocalError::Parts(_) | LocalError::Engine(_) => Self::NoWorker(error.to_string()),
        }
    }
}

/// Starts the engine, and calls `notice` if that takes a while.
pub async fn start_engine(notice: impl FnOnce()) -> Result<Engine, LocalError> {
    let mut starting = Box::pin(Engine::start(Config::new(Artifacts::find()?)));
    let started = match tokio::time::timeout(START_NOTICE_AFTER, &mut starting).await {
        Ok(started) => started,
        Err(_slow) => {
            notice();
            starting.await
        }
    };
    Ok(started?)
}

/// Opens the heap folder. The default one lies where anybody could have made it first, so it has to be ours.
pub fn open_heaps(folder: &Path) -> Result<HeapStore, LocalError> {
    let owner = if folder == Path::new(HEAP_FOLDER_DEFAULT) { Owner::Us } else { Owner::Anyone };
    Ok(HeapStore::in_folder(folder, owner)?)
}

/// Opens the database, under the same rule.
pub fn open_database(folder: &Path) -> Result<Database, LocalError> {
    let owner = if folder == Path::new(DATABASE_FOLDER_DEFAULT) { Owner::Us } else { Owner::Anyone };
    Ok(Database::open(folder, owner)?)
}
