//! A point at which a server stops until it is told to go on.

use crate::fixture::{Folders, Server};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

pub struct Pause(PathBuf);

impl Pause {
    pub fn new(folders: &Folders) -> Self {
        let path = folders.path().join("pause");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).expect("a pipe");
        Self(path)
    }

    pub fn server(&self, folders: &Folders, point: &str) -> Server {
        Server::start_in(folders, &[], &[("HEAPSTEAD_PAUSE_AT", &format!("{point}:{}", self.0.display()))])
    }

    /// Returns when the server has stopped. It goes on when the file is dropped.
    pub async fn reached(&self) -> File {
        let path = self.0.clone();
        let opened = tokio::task::spawn_blocking(move || File::options().write(true).open(path));
        tokio::time::timeout(Duration::from_secs(30), opened).await.expect("in time").expect("no panic").expect("the point is reached")
    }
}
