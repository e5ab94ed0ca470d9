//! The stores of one server besides its heaps, opened together: records, peers and output.

use crate::blobs::FolderBlobs;
use crate::peers::{LocalPeers, Peers};
use crate::records::{Records, RecordsError};
use crate::sqlite::Sqlite;
use crate::{Outputs, Owner};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone)]
pub struct Database {
    pub records: Arc<dyn Records>,
    pub peers: Arc<dyn Peers>,
    pub outputs: Outputs,
}

impl Database {
    /// Opens the embedded database in this folder, which other processes of this machine may use too.
    pub fn open(folder: &Path, owner: Owner) -> Result<Self, RecordsError> {
        let unavailable = |error: std::io::Error| RecordsError::Unavailable { path: folder.into(), why: error.to_string() };
        FolderBlobs::open(folder, owner).map_err(|error| RecordsError::Folder(Arc::new(error)))?;
        let peers = LocalPeers::join(folder).map_err(unavailable)?;
        let records = Sqlite::open(folder, owner, crate::peers::Leases::server(&peers).clone())?;
        Ok(Self { records: Arc::new(records), peers: Arc::new(peers), outputs: Outputs::new(folder.join("outputs")) })
    }
}
