//! The server under measurement: the real binary in its own temporary folder.

use super::connection::Connection;
use crate::fail;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

pub struct Server {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(folder(), arguments)
    }

    /// Starts the server on an existing folder.
    pub fn start_on(folder: TempDir) -> Self {
        Self::start_in(folder, &["--http-port", "0"])
    }

    pub fn start_in(folder: TempDir, arguments: &[&str]) -> Self {
        let mut child = command(&folder)
            .args(arguments)
            .args(["--log", "error"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| fail(&format!("{}: {error}. Run `make build`", binary().display())));
        let lines = child.stderr.take().map(|stderr| BufReader::new(stderr).lines());
        let mut lines = lines.into_iter().flatten().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("Heapstead listens on http://").map(|address| address.trim().to_owned()));
        let Some(address) = address else { fail("the server did not start") };
        // The pipe must be drained; only errors are shown.
        std::thread::spawn(move || {
            lines.filter(|line| line.contains("ERROR") || line.contains("panicked")).for_each(|line| eprintln!("server: {line}"))
        });
        Self { child, address, folder }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server, and starts another one on its folder.
    pub fn killed_and_started_again(self) -> Self {
        Self::start_on(self.into_folder())
    }

    fn into_folder(mut self) -> TempDir {
        let _ = self.child.kill();
        let _ = self.child.wait();
        std::mem::replace(&mut self.folder, folder())
    }

    pub async fn connect(&self) -> Connection {
        Connection::open(&self.address).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `heapstead serve` on this folder.
pub fn command(folder: &TempDir) -> Command {
    let mut command = Command::new(binary());
    command.arg("serve").arg("--directory-path").arg(folder.path().join("heaps"));
    command.arg("--session-db-path").arg(database(folder));
    command
}

pub fn database(folder: &TempDir) -> PathBuf {
    folder.path().join("sessions")
}

/// Next to the build, so on the same disk as the baseline.
pub fn folder() -> TempDir {
    tempfile::tempdir_in(binary().parent().unwrap_or(&PathBuf::from("."))).unwrap_or_else(|error| fail(&error.to_string()))
}

fn binary() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("heapstead")));
    beside.unwrap_or_else(|| fail("the path of this program can't be determined"))
}
