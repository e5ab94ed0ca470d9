//! The contract of peers and leases, for servers of one machine.

use async_trait::async_trait;
use heapstead_store::peers::{Leases, LocalPeers, Peers, Question, Responder};
use heapstead_store::records::TurnId;
use heapstead_types::{ExecutionId, ServerId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Notify;

/// Answers yes to everything but a cancellation, which it never answers.
#[derive(Default)]
struct Answers {
    asked: Notify,
    dropped: Arc<AtomicBool>,
}

struct SetWhenDropped(Arc<AtomicBool>);

impl Drop for SetWhenDropped {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[async_trait]
impl Responder for Answers {
    async fn answer(&self, question: Question) -> bool {
        let _waits = SetWhenDropped(self.dropped.clone());
        self.asked.notify_one();
        match question {
            Question::Cancel(_) => std::future::pending().await,
            Question::Line(_, number) => number > 1,
            _ => true,
        }
    }
}

#[tokio::test]
async fn a_server_is_alive_until_its_lease_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = LocalPeers::join(folder.path()).expect("joined");
    assert!(!one.has_others());
    let two = LocalPeers::join(folder.path()).expect("joined");
    assert!(one.is_alive(two.server()) && one.is_alive(one.server()) && one.has_others());
    assert!(!one.is_alive(&ServerId::from_random([0; 8])), "it never was");
    let left = two.server().clone();
    drop(two);
    assert!(!one.is_alive(&left) && !one.has_others());
    one.remove_dead();
    assert_eq!(std::fs::read_dir(folder.path().join("processes")).expect("folder").count(), 1, "only its own file is left");
}

#[tokio::test]
async fn a_peer_answers_questions_and_one_that_is_gone_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (LocalPeers::join(folder.path()).expect("joined"), LocalPeers::join(folder.path()).expect("joined"));
    let id = ExecutionId::random();
    assert!(one.ask(two.server(), &Question::Ended(id.clone())).await.is_err(), "it does not listen yet");
    two.respond(Arc::new(Answers::default())).expect("listening");
    assert_eq!(one.ask(two.server(), &Question::Ended(id.clone())).await, Ok(true));
    assert_eq!(one.ask(two.server(), &Question::Line(id.clone(), 1)).await, Ok(false));
    assert_eq!(one.ask(two.server(), &Question::TurnOver(TurnId::new())).await, Ok(true));
    let server = two.server().clone();
    drop(two);
    assert!(one.ask(&server, &Question::Ended(id)).await.is_err());
}

#[tokio::test]
async fn an_answer_that_nobody_waits_for_is_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (LocalPeers::join(folder.path()).expect("joined"), LocalPeers::join(folder.path()).expect("joined"));
    let answers = Arc::new(Answers::default());
    two.respond(answers.clone()).expect("listening");
    let question = Question::Cancel(ExecutionId::random());
    tokio::select! {
        _ = one.ask(two.server(), &question) => panic!("it never answers"),
        () = answers.asked.notified() => {}
    }
    let dropped = async {
        while !answers.dropped.load(Relaxed) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), dropped).await.expect("dropped");
}
