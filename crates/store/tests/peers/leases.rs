//! `Leases`: which servers are alive.

use crate::common::Place;
use crate::processes::ServerProcess;
use heapstead_types::ServerId;

pub async fn a_server_is_alive_until_it_leaves<P: Place>(place: &P) {
    let one = place.join();
    assert!(!one.has_others());
    let two = place.join();
    assert_ne!(one.server(), two.server());
    for peers in [&one, &two] {
        assert!(peers.is_alive(one.server()) && peers.is_alive(two.server()) && peers.has_others());
        assert!(!peers.is_alive(&ServerId::from_random([0; 8])), "it never joined");
    }
    let left = two.server().clone();
    drop(two);
    assert!(!one.is_alive(&left) && !one.has_others());
    assert!(place.join().is_alive(one.server()));
}

pub async fn a_killed_server_is_dead<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    let mut process = ServerProcess::start(place);
    assert!(one.is_alive(&process.server) && two.is_alive(&process.server));
    process.kill();
    assert!(!one.is_alive(&process.server) && !two.is_alive(&process.server));
    drop(two);
    one.remove_dead();
    one.remove_dead();
    assert!(!one.is_alive(&process.server) && !one.has_others(), "nothing of it is left");
    assert!(place.join().is_alive(one.server()));
}

pub async fn living_servers_are_not_removed<P: Place>(place: &P) {
    let (one, two, process) = (place.join(), place.join(), ServerProcess::start(place));
    one.remove_dead();
    two.remove_dead();
    for peers in [&one, &two] {
        assert!([one.server(), two.server(), &process.server].into_iter().all(|server| peers.is_alive(server)));
        let question = heapstead_store::peers::Question::Ended(heapstead_types::ExecutionId::random());
        assert_eq!(peers.ask(&process.server, &question).await, Ok(true), "it can still be reached");
    }
}

/// Story: a check took the lock that is the lease, so that a concurrent check found a dead server alive.
pub async fn concurrent_checks_agree_that_a_server_is_dead<P: Place>(place: &P) {
    let servers = [(); 4].map(|()| place.join());
    let mut process = ServerProcess::start(place);
    process.kill();
    std::thread::scope(|scope| {
        let checks = servers.iter().map(|peers| scope.spawn(|| (0..2000).filter(|_| peers.is_alive(&process.server)).count()));
        let checks: Vec<_> = checks.collect();
        for check in checks {
            assert_eq!(check.join().expect("no panic"), 0, "checks that found it alive");
        }
    });
}

pub async fn a_server_that_joins_is_never_taken_for_dead<P: Place>(place: &P) {
    let (one, two) = (place.join(), place.join());
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| (0..300).for_each(|_| one.remove_dead()));
        for _ in 0..100 {
            let joined = place.join();
            assert!(two.is_alive(joined.server()), "right after it joined");
            two.remove_dead();
            assert!(one.is_alive(joined.server()), "after others removed dead servers");
        }
        removing.join().expect("no panic");
    });
}
