//! The engine's files: the V8 host, the worker library and the base heap, together in one folder.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    pub host: PathBuf,
    pub worker: PathBuf,
    pub base_heap: PathBuf,
}

pub const HOST: &str = "heapstead-v8-host";
pub const WORKER: &str = "libheapstead_v8.so";
pub const BASE_HEAP: &str = "heapstead-base.heap";
/// Names the folder with the engine's files, if they are not next to the executable.
pub const FOLDER_VARIABLE: &str = "HEAPSTEAD_ENGINE_DIR";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the engine's parts ({HOST}, {WORKER}) were not found in {}: run `make build`, or set {FOLDER_VARIABLE} to the folder that holds them",
    .searched.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
)]
pub struct ArtifactsError {
    pub searched: Vec<PathBuf>,
}

impl Artifacts {
    pub fn in_folder(folder: &Path) -> Self {
        Self { host: folder.join(HOST), worker: folder.join(WORKER), base_heap: folder.join(BASE_HEAP) }
    }

    /// Finds the files in the folder that the environment variable names, otherwise in the folder of the executable or its parent.
    pub fn find() -> Result<Self, ArtifactsError> {
        let searched: Vec<PathBuf> = match std::env::var_os(FOLDER_VARIABLE) {
            Some(folder) => vec![folder.into()],
            None => std::env::current_exe()
                .into_iter()
                .flat_map(|exe| exe.ancestors().skip(1).take(2).map(Path::to_owned).collect::<Vec<_>>())
                .collect(),
        };
        let found = searched.iter().map(|folder| Self::in_folder(folder)).find(|parts| parts.host.exists() && parts.worker.exists());
        found.ok_or(ArtifactsError { searched })
    }
}
