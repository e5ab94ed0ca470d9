//! Runs the real binary in its own temporary folders, with no environment variables except the engine's.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub struct Place {
    root: tempfile::TempDir,
}

/// Result of a finished command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().expect("folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn heaps(&self) -> PathBuf {
        self.path("heaps")
    }

    pub fn heap_file(&self, key: &str) -> PathBuf {
        self.heaps().join(key)
    }

    pub fn sidecar(&self, key: &str) -> PathBuf {
        self.heaps().join(".meta").join(format!("{key}.json"))
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("file");
        path.to_str().expect("a name in UTF-8").to_owned()
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heapstead"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("HEAPSTEAD_") && name != "HEAPSTEAD_ENGINE_DIR" {
                command.env_remove(name);
            }
        }
        command
            .env("HEAPSTEAD_DIRECTORY_PATH", self.heaps())
            .env("HEAPSTEAD_SESSION_DB_PATH", self.path("sessions"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env_remove("NO_COLOR");
        command.args(arguments).current_dir(self.root.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn ran<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.command(arguments).output().expect("it runs").into()
    }

    pub fn ran_with_input<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &str) -> Ran {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("it starts");
        // A command that refuses its arguments does not read its input.
        let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
        child.wait_with_output().expect("it runs").into()
    }

    /// Runs code that must complete. Returns its result and the key of its heap.
    pub fn completed(&self, code: &str, arguments: &[&str]) -> (String, String) {
        let ran = self.ran(["run", "-e", code].iter().chain(arguments));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let heap = ran.heap().unwrap_or_else(|| panic!("no heap: {ran:?}"));
        (ran.out.trim_end().to_owned(), heap)
    }
}

impl Ran {
    /// The key in the line `heap <key>`.
    pub fn heap(&self) -> Option<String> {
        self.err.lines().find_map(|line| line.strip_prefix("heap ")).map(str::to_owned)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}
