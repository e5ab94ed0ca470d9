//! The contract of `Leases` and `Peers`, as one suite that runs against every implementation.

mod common;
mod leases;
mod local;
mod processes;
mod questions;

/// One test per promise and implementation, and the test that the suite runs in other processes.
macro_rules! contract {
    ($($backend:ident: $place:ty;)*) => {
        $(mod $backend {
            contract_tests! { $place;
                leases: a_server_is_alive_until_it_leaves
                leases: a_killed_server_is_dead
                leases: living_servers_are_not_removed
                leases: concurrent_checks_agree_that_a_server_is_dead
                leases: a_server_that_joins_is_never_taken_for_dead
                questions: a_server_answers_from_when_it_responds_until_it_leaves
                questions: a_question_and_its_answer_arrive_unchanged
                questions: an_answer_is_dropped_when_its_caller_stops_waiting
                questions: many_questions_are_answered_at_once
                questions: an_unanswered_question_fails_when_its_server_leaves
                questions: an_unanswered_question_fails_when_its_server_is_killed
                questions: a_second_responder_replaces_the_first
            }

            #[tokio::test]
            async fn server_process() {
                crate::processes::serve::<$place>().await;
            }
        })*
    };
}

macro_rules! contract_tests {
    ($place:ty; $($suite:ident: $promise:ident)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $promise() {
            crate::$suite::$promise(&<$place as crate::common::Place>::new()).await;
        })*
    };
}

contract! {
    in_folder: crate::local::Folder;
}

#[test]
fn every_method_of_the_traits_is_called() {
    let source = include_str!("../../src/peers/mod.rs");
    let tests = [include_str!("leases.rs"), include_str!("questions.rs")].concat();
    // `Responder::answer` is called by the implementation.
    let methods = source.split("fn ").skip(1).filter_map(|rest| rest.split_once('(')).map(|(name, _)| name);
    let missing: Vec<_> = methods.filter(|name| *name != "answer" && !tests.contains(&format!(".{name}("))).collect();
    assert!(missing.is_empty(), "no test calls {missing:?}");
}
