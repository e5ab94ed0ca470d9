//! Which subscribers receive which events, and how many are buffered.

use super::*;
use buffer::{BUFFER_BYTES_MAX, EVENTS_MAX};

fn session(number: u8) -> SessionId {
    SessionId::from_random([number; 32])
}

fn execution(number: u8) -> Topic {
    Topic::Execution(ExecutionId::from_random([number; 16]))
}

fn holder(name: &str) -> BudgetHolder {
    BudgetHolder::Owner(format!("acme/{name}").parse().expect("an owner"))
}

fn ann() -> BudgetHolder {
    holder("ann")
}

fn listen(hub: &Hub, number: u8) -> Subscriber {
    hub.receive(ann(), Scope::Session(session(number)), None).expect("a place").0
}

async fn heard(listener: &mut Subscriber) -> Event {
    match listener.next().await {
        Delivery::Event(_, event) => event,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn subscribers_receive_only_the_topics_of_their_scope() {
    let hub = Hub::default();
    let (mut one, mut same, mut other) = (listen(&hub, 1), listen(&hub, 1), listen(&hub, 2));
    hub.subscribe(&ann(), &Scope::Session(session(1)), execution(1)).expect("room");
    hub.subscribe(&ann(), &Scope::Session(session(2)), execution(2)).expect("room");
    hub.updated(&execution(1));
    hub.updated(&execution(3));
    hub.updated(&execution(2));
    assert_eq!(heard(&mut one).await, Event::Updated(execution(1)));
    assert_eq!(heard(&mut same).await, Event::Updated(execution(1)));
    assert_eq!(heard(&mut other).await, Event::Updated(execution(2)));
    hub.end(session(1));
    assert_eq!(one.next().await, Delivery::Ended);
    hub.unsubscribe(&Scope::Session(session(2)), &execution(2));
    hub.updated(&execution(2));
    hub.end(session(2));
    assert_eq!(other.next().await, Delivery::Ended);
    assert!(hub.lock().topics.is_empty() && hub.lock().buffers.is_empty());
}

#[tokio::test]
async fn a_returning_subscriber_misses_nothing_or_is_notified() {
    let (hub, scope) = (Hub::default(), Scope::Session(session(1)));
    hub.subscribe(&ann(), &scope, execution(1)).expect("room");
    hub.updated(&execution(1));
    let mut listener = listen(&hub, 1);
    let begin = listener.position();
    hub.updated(&execution(1));
    assert_eq!(heard(&mut listener).await, Event::Updated(execution(1)));
    let at = listener.position();
    drop(listener);
    hub.updated(&execution(1));
    let (mut back, missed) = hub.receive(ann(), scope.clone(), Some(at)).expect("a place");
    assert!(!missed);
    assert_eq!(heard(&mut back).await, Event::Updated(execution(1)));
    assert_eq!(back.position().event, begin.event + 2, "events without a subscriber are not buffered");
    for wrong in [Position { buffer: at.buffer ^ 1, event: 1 }, Position { buffer: at.buffer, event: 99 }] {
        assert!(hub.receive(ann(), scope.clone(), Some(wrong)).expect("a place").1, "{wrong:?}");
    }
}

#[tokio::test]
async fn a_slow_listener_is_cut_off_and_the_row_stays_bounded() {
    let hub = Hub::default();
    hub.subscribe(&ann(), &Scope::Session(session(1)), execution(1)).expect("room");
    let mut slow = listen(&hub, 1);
    for _ in 0..=EVENTS_MAX {
        hub.updated(&execution(1));
    }
    assert_eq!(slow.next().await, Delivery::Lagged);
    assert_eq!(hub.lock().buffers[&Scope::Session(session(1))].lock().events.len(), EVENTS_MAX);
}

#[tokio::test]
async fn long_messages_leave_sooner() {
    let hub = Hub::default();
    let mut listener = listen(&hub, 1);
    for number in 0..100 {
        let execution = ExecutionId::from_random([number; 16]);
        hub.publish(session(1), Event::Log { level: Level::Error, execution, text: "x".repeat(BUFFER_BYTES_MAX / 10) });
    }
    assert_eq!(hub.lock().buffers[&Scope::Session(session(1))].lock().events.len(), 9);
    assert_eq!(listener.next().await, Delivery::Lagged);
}

/// The hub of a small server.
fn small() -> Hub {
    Hub { subscribers: Budget::new(8), topics: Budget::new(8), event_bytes: Budget::new(8 * BUFFER_BYTES_MAX as u64), ..Hub::default() }
}

fn long_message(number: u8) -> Event {
    Event::Log { level: Level::Error, execution: ExecutionId::from_random([number; 16]), text: "x".repeat(BUFFER_BYTES_MAX - 1000) }
}

#[tokio::test]
async fn a_client_that_returns_after_the_end_receives_the_rest() {
    let hub = Hub::default();
    let positions: Vec<_> = (0..2)
        .map(|number| {
            let position = listen(&hub, number).position();
            hub.publish(session(number), long_message(number));
            hub.end(session(number));
            position
        })
        .collect();
    let mut rest = hub.receive_rest(ann(), session(1), positions[1]).expect("room").expect("it is there");
    assert!(matches!(heard(&mut rest).await, Event::Log { .. }));
    assert_eq!(rest.next().await, Delivery::Ended);
    assert!(hub.receive_rest(ann(), session(0), positions[1]).expect("room").is_none(), "only where it was");
}

/// One owner could once use all listeners of the server, and push the events of others out of memory.
#[tokio::test]
async fn no_owner_can_use_up_listeners_topics_or_event_memory() {
    let hub = small();
    let of_bob = |number: u8| Scope::Session(session(100 + number));
    let mut listeners: Vec<_> = (0..4).map(|number| listen(&hub, number)).collect();
    let full = |result: Result<(Subscriber, bool), Full>| result.err();
    assert_eq!(full(hub.receive(ann(), Scope::Session(session(9)), None)), Some(Full::Shared(Exhausted::ByHolder)));
    let (mut bobs, _) = hub.receive(holder("bob"), of_bob(1), None).expect("there is room for another owner");
    for number in 0..4 {
        hub.subscribe(&ann(), &Scope::Session(session(number)), execution(number)).expect("room");
        hub.publish(session(number), long_message(number));
    }
    assert_eq!(hub.subscribe(&ann(), &Scope::Session(session(0)), execution(9)), Err(Full::Shared(Exhausted::ByHolder)));
    hub.subscribe(&holder("bob"), &of_bob(1), execution(9)).expect("there is room for another owner");
    // Four buffers are half of the memory, so a fifth of the same owner stays empty.
    hub.unsubscribe(&Scope::Session(session(0)), &execution(0));
    listeners.truncate(2);
    let mut fifth = listen(&hub, 9);
    hub.publish(session(9), long_message(9));
    assert_eq!(fifth.next().await, Delivery::Lagged);
    hub.publish(session(101), long_message(1));
    assert!(matches!(heard(&mut bobs).await, Event::Log { .. }));
    // What ended counts for its owner until nobody can return to it.
    for number in 0..4 {
        hub.end(session(number));
    }
    hub.publish(session(9), long_message(9));
    assert_eq!(fifth.next().await, Delivery::Lagged);
}

#[tokio::test]
async fn messages_below_the_level_are_not_sent() {
    let hub = Hub::default();
    let mut listener = listen(&hub, 1);
    let id = ExecutionId::from_random([1; 16]);
    let log = |level| Event::Log { level, execution: id.clone(), text: String::new() };
    hub.publish(session(1), log(Level::Debug));
    hub.set_level(&ann(), &Scope::Session(session(1)), Level::Error);
    hub.publish(session(1), log(Level::Warning));
    hub.publish(session(1), log(Level::Error));
    assert_eq!(heard(&mut listener).await, log(Level::Error));
}

#[test]
fn unused_scopes_are_removed() {
    let hub = Hub::default();
    for number in 0..=u8::MAX {
        hub.subscribe(&ann(), &Scope::Request(number.into()), execution(number)).expect("room");
        hub.remove(&Scope::Request(number.into()));
    }
    assert!(hub.lock().buffers.is_empty() && hub.lock().topics.is_empty());
    for number in 0..TOPICS_MAX {
        let topic = Topic::Output(ExecutionId::from_random((number as u128).to_le_bytes()));
        hub.subscribe(&ann(), &Scope::Request(1), topic).expect("room");
    }
    assert_eq!(hub.subscribe(&ann(), &Scope::Request(1), execution(1)), Err(Full::Scope));
}
