//! `Peers`: questions to other servers.

use crate::common::{Answers, Place, in_time};
use crate::processes::ServerProcess;
use async_trait::async_trait;
use heapstead_store::peers::{Question, Responder};
use heapstead_store::records::TurnId;
use heapstead_types::{ExecutionId, ServerId};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tokio::sync::Barrier;

/// A question that `Answers` answers with yes.
fn answered() -> Question {
    Question::Ended(ExecutionId::random())
}

/// A question that `Answers` never answers.
fn unanswered() -> Question {
    Question::Cancel(ExecutionId::random())
}

pub async fn a_server_answers_from_when_it_responds_until_it_leaves<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    assert!(in_time(one.ask(two.server(), &answered())).await.is_err(), "it does not respond yet");
    two.respond(Arc::new(Answers::default())).expect("responding");
    assert_eq!(in_time(one.ask(two.server(), &answered())).await, Ok(true));
    let server = two.server().clone();
    drop(two);
    let error = in_time(one.ask(&server, &answered())).await.expect_err("it left");
    assert_eq!(error.server, server);
    let unknown = ServerId::from_random([0; 8]);
    assert_eq!(in_time(one.ask(&unknown, &answered())).await.expect_err("it never joined").server, unknown);
}

/// Answers yes and no in turn, and keeps the questions.
#[derive(Default)]
struct Recorder(Mutex<Vec<Question>>);

#[async_trait]
impl Responder for Recorder {
    async fn answer(&self, question: Question) -> bool {
        let mut asked = self.0.lock().expect("no panic");
        asked.push(question);
        asked.len() % 2 == 1
    }
}

pub async fn a_question_and_its_answer_arrive_unchanged<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    let recorder = Arc::new(Recorder::default());
    two.respond(recorder.clone()).expect("responding");
    let id = ExecutionId::random();
    let questions = [
        Question::Cancel(id.clone()),
        Question::Ended(id.clone()),
        Question::Line(id.clone(), 1),
        Question::Byte(id, u64::MAX),
        Question::TurnOver(TurnId::new()),
    ];
    for (number, question) in questions.iter().enumerate() {
        assert_eq!(in_time(one.ask(two.server(), question)).await, Ok(number % 2 == 0), "{question}");
    }
    assert_eq!(*recorder.0.lock().expect("no panic"), questions);
}

pub async fn an_answer_is_dropped_when_its_caller_stops_waiting<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    let answers = Arc::new(Answers::default());
    two.respond(answers.clone()).expect("responding");
    let question = unanswered();
    tokio::select! {
        _ = one.ask(two.server(), &question) => panic!("it never answers"),
        () = in_time(answers.asked.notified()) => {}
    }
    in_time(async {
        while !answers.is_dropped.load(Relaxed) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

const AT_ONCE: usize = 200;

/// Answers when all questions have arrived.
struct Meeting(Barrier);

#[async_trait]
impl Responder for Meeting {
    async fn answer(&self, _: Question) -> bool {
        self.0.wait().await;
        true
    }
}

pub async fn many_questions_are_answered_at_once<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    two.respond(Arc::new(Meeting(Barrier::new(AT_ONCE)))).expect("responding");
    let asked: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (one, server) = (one.clone(), two.server().clone());
            tokio::spawn(async move { one.ask(&server, &answered()).await })
        })
        .collect();
    for answer in asked {
        assert_eq!(in_time(answer).await.expect("no panic"), Ok(true));
    }
}

/// Story: the task that answered a question outlived its server, so that the caller waited forever.
pub async fn an_unanswered_question_fails_when_its_server_leaves<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    let answers = Arc::new(Answers::default());
    two.respond(answers.clone()).expect("responding");
    let server = two.server().clone();
    let waiting = tokio::spawn(async move { one.ask(&server, &unanswered()).await });
    in_time(answers.asked.notified()).await;
    drop(two);
    assert!(in_time(waiting).await.expect("no panic").is_err());
}

pub async fn an_unanswered_question_fails_when_its_server_is_killed<P: Place>(place: &P) {
    let one = place.join();
    let mut process = ServerProcess::start(place);
    assert_eq!(in_time(one.ask(&process.server, &answered())).await, Ok(true));
    let server = process.server.clone();
    let waiting = tokio::spawn(async move { one.ask(&server, &unanswered()).await });
    tokio::task::yield_now().await;
    process.kill();
    assert_eq!(in_time(waiting).await.expect("no panic").expect_err("it was killed").server, process.server);
}

pub async fn a_second_responder_replaces_the_first<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    let (first, second) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
    two.respond(first.clone()).expect("responding");
    assert_eq!(in_time(one.ask(two.server(), &answered())).await, Ok(true));
    two.respond(second.clone()).expect("responding");
    assert_eq!(in_time(one.ask(two.server(), &answered())).await, Ok(true));
    assert_eq!((first.0.lock().expect("no panic").len(), second.0.lock().expect("no panic").len()), (1, 1));
}
