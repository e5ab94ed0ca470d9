//! A summariser's text replaces the generated summary if the window has not moved since, and is dropped otherwise.

use crate::place::{Place, access, change, new_session};
use crate::processes::call;
use heapstead_context::{Contexts, Summariser, Telling, ToolCall, window};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Signals when it is called, and returns when it is permitted.
struct Slow {
    asked: mpsc::UnboundedSender<(Option<String>, usize)>,
    may: Arc<Semaphore>,
}

impl Summariser for Slow {
    fn summarise<'a>(&'a self, earlier: Option<&'a str>, calls: &'a [ToolCall]) -> Telling<'a> {
        let _ = self.asked.send((earlier.map(str::to_owned), calls.len()));
        Box::pin(async move {
            self.may.acquire().await.expect("open").forget();
            Some("Looked for whales.\n\n- Found them in the north.".to_owned())
        })
    }
}

async fn add(contexts: &Contexts, session: &heapstead_context::SessionId, calls: usize) {
    for index in 0..calls {
        change(contexts, session, |record| record.add_call(call("grep", index as i64))).await.expect("updated");
    }
}

#[tokio::test]
async fn its_text_is_used_only_if_the_window_has_not_moved() {
    let (place, session) = (Place::memory(), new_session());
    let (asked, mut asks) = mpsc::unbounded_channel();
    let may = Arc::new(Semaphore::new(0));
    let contexts = Contexts::build(place.open(), place.clock.clone(), Some(Arc::new(Slow { asked, may: may.clone() })));
    let summary = || async { contexts.get(access(&session)).await.expect("there").summary_before_window.clone().unwrap_or_default() };

    add(&contexts, &session, 15).await;
    assert_eq!(asks.recv().await, Some((None, 5)));
    assert!(summary().await.contains("  - grep: called 5 times"), "calls do not wait for the summariser");
    // One more call does not move the window.
    add(&contexts, &session, 1).await;
    may.add_permits(1);
    while summary().await.contains("called 5 times") {
        tokio::task::yield_now().await;
    }
    let expected = "Summary of 5 earlier tool calls (1970-01-01T00:00:00.000Z to 1970-01-01T00:00:00.004Z):\n  - Looked for whales.\n  - Found them in the north.";
    assert_eq!(summary().await, expected);

    add(&contexts, &session, 4).await;
    assert_eq!(asks.recv().await, Some((Some(expected.to_owned()), 5)));
    add(&contexts, &session, 5).await;
    assert_eq!(asks.recv().await.map(|(_, calls)| calls), Some(5));
    let moved = summary().await;
    // Both may return: the first one is too late, the second is not.
    may.add_permits(2);
    while summary().await == moved {
        tokio::task::yield_now().await;
    }
    let record = contexts.get(access(&session)).await.expect("there");
    let summary = summary().await;
    assert_eq!((summary.matches("Looked for whales.").count(), summary.matches("called 5 times").count()), (2, 1), "{summary}");
    assert_eq!((window::counted(&record), record.window_start_index), (15, Some(15)), "every call is still counted");
}

#[tokio::test]
async fn after_the_session_ended_nothing_is_stored() {
    let (place, session) = (Place::memory(), new_session());
    let (asked, mut asks) = mpsc::unbounded_channel();
    let may = Arc::new(Semaphore::new(0));
    let contexts = Contexts::build(place.open(), place.clock.clone(), Some(Arc::new(Slow { asked, may: may.clone() })));
    add(&contexts, &session, 15).await;
    asks.recv().await.expect("asked");
    contexts.end(access(&session)).await.expect("ended");
    may.add_permits(1);
    while may.available_permits() > 0 {
        tokio::task::yield_now().await;
    }
    // The task never waits, so one yield lets it run to its end.
    tokio::task::yield_now().await;
    assert_eq!(contexts.find(access(&session)).await.expect("asked"), None);
}
