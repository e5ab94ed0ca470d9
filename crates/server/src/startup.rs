//! Opens the local stores and starts the engine, for the server and for commands that run without one.

use crate::cli::FlagError;
use heapstead_engine::{ArtifactsError, Config, Engine, StartError};
use heapstead_store::{Database, HeapStore, HeapStoreError, Owner, RecordsError};
use heapstead_types::Failure;
use std::path::Path;
use std::time::Duration;

/// Default folder of the heaps.
pub const HEAP_FOLDER_DEFAULT: &str = "/tmp/mcp-v8-heaps";
/// Default folder of the metadata database.
pub const DATABASE_FOLDER_DEFAULT: &str = "/tmp/mcp-v8-sessions";
/// If the start takes longer than this, a notice is shown.
const START_NOTICE_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    #[error(transparent)]
    Flags(#[from] FlagError),
    #[error(transparent)]
    Artifacts(#[from] ArtifactsError),
    #[error(transparent)]
    Engine(#[from] StartError),
    #[error(transparent)]
    Heaps(#[from] HeapStoreError),
    #[error(transparent)]
    Database(#[from] RecordsError),
}

impl From<StartupError> for Failure {
    fn from(error: StartupError) -> Self {
        match error {
            StartupError::Flags(_) | StartupError::Heaps(_) | StartupError::Database(_) => Self::Store(error.to_string()),
            StartupError::Artifacts(_) | StartupError::Engine(_) => Self::NoWorker(error.to_string()),
        }
    }
}

/// Starts the engine. Calls `notice` if that takes longer than `START_NOTICE_AFTER`.
pub async fn start_engine(config: Config, notice: impl FnOnce()) -> Result<Engine, StartupError> {
    let mut starting = Box::pin(Engine::start(config));
    let started = match tokio::time::timeout(START_NOTICE_AFTER, &mut starting).await {
        Ok(started) => started,
        Err(_slow) => {
            notice();
            starting.await
        }
    };
    Ok(started?)
}

/// Opens the heap folder. The default one is in `/tmp`, where another user could have created it first, so its owner is checked.
pub fn open_heaps(folder: &Path) -> Result<HeapStore, StartupError> {
    let owner = if folder == Path::new(HEAP_FOLDER_DEFAULT) { Owner::Us } else { Owner::Anyone };
    Ok(HeapStore::in_folder(folder, owner)?)
}

/// Opens the database. The owner of the default folder is checked too.
pub fn open_database(folder: &Path) -> Result<Database, StartupError> {
    let owner = if folder == Path::new(DATABASE_FOLDER_DEFAULT) { Owner::Us } else { Owner::Anyone };
    Ok(Database::open(folder, owner)?)
}
