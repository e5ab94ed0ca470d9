//! What holds for servers of one machine beyond the contract: files, permissions, long paths, lines that are not questions.

use crate::common::{Answers, Place, in_time};
use crate::processes::ServerProcess;
use heapstead_store::peers::{LocalPeers, Peers, Question};
use heapstead_types::ExecutionId;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

pub struct Folder(TempDir);

impl Folder {
    fn processes(&self) -> PathBuf {
        self.0.path().join("processes")
    }

    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.processes()).expect("the folder").flatten();
        let mut names: Vec<_> = files.map(|file| file.file_name().into_string().expect("a name")).collect();
        names.sort();
        names
    }
}

impl Place for Folder {
    const MODULE: &'static str = "in_folder";

    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn join_at(address: &str) -> Arc<dyn Peers> {
        Arc::new(LocalPeers::join(Path::new(address)).expect("joined"))
    }

    fn address(&self) -> String {
        self.0.path().to_str().expect("a path").to_owned()
    }
}

#[tokio::test]
async fn only_living_servers_have_files() {
    let place = Folder::new();
    let one = place.join();
    one.respond(Arc::new(Answers::default())).expect("responding");
    let own = [one.server().to_string(), format!("{}.sock", one.server())];
    let mut process = ServerProcess::start(&place);
    process.kill();
    assert_eq!(place.files().len(), 4, "a killed server leaves its files");
    one.remove_dead();
    assert_eq!(place.files(), own);
    drop(one);
    assert_eq!(place.files(), [""; 0]);
}

#[tokio::test]
async fn only_the_user_of_the_process_may_ask() {
    let place = Folder::new();
    let one = place.join();
    one.respond(Arc::new(Answers::default())).expect("responding");
    let mode = |path: &Path| std::fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
    assert_eq!(mode(&place.processes()), 0o700);
    for file in place.files() {
        assert_eq!(mode(&place.processes().join(&file)), 0o600, "{file}");
    }
}

/// A socket address has 108 bytes at most.
#[tokio::test]
async fn the_path_of_the_folder_may_be_long() {
    let place = Folder::new();
    let deep = place.0.path().join("a".repeat(200));
    let address = deep.to_str().expect("a path");
    let (one, two) = (Folder::join_at(address), Folder::join_at(address));
    two.respond(Arc::new(Answers::default())).expect("responding");
    assert_eq!(in_time(one.ask(two.server(), &Question::Ended(ExecutionId::random()))).await, Ok(true));
}

#[tokio::test]
async fn a_line_that_is_not_a_question_is_answered_with_no() {
    let place = Folder::new();
    let one = place.join();
    one.respond(Arc::new(Answers::default())).expect("responding");
    let socket = place.processes().join(format!("{}.sock", one.server()));
    for line in ["\n", "cancel\n", "ended ../x\n", &format!("{}\n", "x".repeat(120))] {
        let mut stream = UnixStream::connect(&socket).await.expect("connected");
        stream.write_all(line.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        in_time(stream.read_to_string(&mut answer)).await.expect("answered");
        assert_eq!(answer, "no\n", "{line:?}");
    }
}
