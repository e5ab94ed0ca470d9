//! Servers in other processes, which a test can kill: runs this test binary again with one test.

use crate::common::{Answers, Place};
use heapstead_types::ServerId;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

const ADDRESS: &str = "HEAPSTEAD_TEST_PEERS";
/// Comes before the server's id on the standard output of its process.
const JOINED: &str = "joined as ";

/// A server in a process of its own. Killed when dropped.
pub struct ServerProcess {
    child: Child,
    pub server: ServerId,
}

impl ServerProcess {
    /// Starts the process. It has joined, and answers as `Answers` does.
    pub fn start<P: Place>(place: &P) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--nocapture", "--exact", &format!("{}::server_process", P::MODULE)])
            .env(ADDRESS, place.address())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let id = output.lines().map_while(Result::ok).find_map(|line| line.split_once(JOINED).map(|(_, id)| id.to_owned()));
        let server = id.expect("the process joined").parse().expect("a server id");
        Self { child, server }
    }

    /// Kills the process, so that it can clean up nothing.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process of a server. It ends with the process that started it. Without an address in the environment it does nothing.
pub async fn serve<P: Place>() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let peers = P::join_at(&address);
    peers.respond(Arc::new(Answers::default())).expect("responding");
    println!("{JOINED}{}", peers.server());
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await;
}
