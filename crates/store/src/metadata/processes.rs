//! Which server processes live: each holds a lock on a file of its own in `processes/`, which the kernel takes back when it dies.

use rustix::fs::{FlockOperation, flock};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER: &str = "processes";
/// What a process's socket is called after its name.
pub const SOCKET_SUFFIX: &str = ".sock";

pub struct Process {
    name: String,
    folder: PathBuf,
    /// Held as long as we live.
    _lock: File,
}

impl Process {
    pub fn register(folder: &Path) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let mut bits = [0; 8];
        getrandom(&mut bits, GetRandomFlags::empty())?;
        let name = hex::encode(bits);
        // Under a name that nobody looks at until the lock is held.
        let unready = folder.join(format!(".{name}"));
        let lock = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unready)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        std::fs::rename(unready, folder.join(&name))?;
        Ok(Self { name, folder, _lock: lock })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether that process lives. What can't be told counts as alive: nothing is taken from it then.
    pub fn is_alive(&self, name: &str) -> bool {
        if name == self.name {
            return true;
        }
        match File::open(self.folder.join(name)) {
            Ok(file) => flock(&file, FlockOperation::NonBlockingLockExclusive).is_err(),
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    /// Removes the files of processes that are gone.
    pub fn forget_dead(&self) {
        let Ok(files) = std::fs::read_dir(&self.folder) else { return };
        for file in files.flatten() {
            let name = file.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
            if !self.is_alive(name.strip_suffix(SOCKET_SUFFIX).unwrap_or(name)) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.folder.join(&self.name));
        let _ = std::fs::remove_file(self.folder.join(format!("{}{SOCKET_SUFFIX}", self.name)));
    }
}
