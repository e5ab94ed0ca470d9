//! The load test: for each abuse in turn, how long the requests of the others take, compared with how long they take alone.
//!
//! Found by an audit: one tenant could fill every slot and the queue, the memory for bodies, the places for transfers and the table of
//! connections, and everybody else was refused.

use crate::abuse::{ABUSES, clean_up};
use crate::fixture::torture;
use crate::latency::{Latencies, median};
use crate::neighbour::Neighbour;
use crate::place::Place;
use std::time::Duration;

/// What the tests promise in full. The short form runs beside other tests on a shared machine, where a single pause decides the p99 of a few
/// requests; it only finds requests that wait for the abuser.
const RATIO_MAX: f64 = 3.0;
const RATIO_MAX_SHORT: f64 = 20.0;
/// Differences below this are noise.
const NOISE: Duration = Duration::from_millis(50);
const NOISE_SHORT: Duration = Duration::from_secs(1);

/// Few places, so that they are soon taken.
const SMALL: &[&str] = &["--max-concurrent-executions", "8", "--max-queued", "40"];

struct Plan {
    rounds: usize,
    visits: usize,
    ratio_max: f64,
    noise: Duration,
}

fn plan() -> Plan {
    match torture() {
        true => Plan { rounds: 5, visits: 50, ratio_max: RATIO_MAX, noise: NOISE },
        false => Plan { rounds: 1, visits: 3, ratio_max: RATIO_MAX_SHORT, noise: NOISE_SHORT },
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abusive_tenant_neither_fails_nor_delays_the_requests_of_others() {
    let (place, [one, other, abusive]) = Place::start(["one/user", "other/user", "abusive/user"], SMALL);
    let mut neighbours = [Neighbour::new(&place, one).await, Neighbour::new(&place, other).await];
    let (plan, mut complaints) = (plan(), Vec::new());
    // `ABUSE=uploads` chooses some of them, by a part of their names.
    let only = std::env::var("ABUSE").unwrap_or_default();
    for abuse in ABUSES.iter().filter(|abuse| abuse.name.contains(&only)) {
        let (mut rounds, mut failures) = (Vec::new(), Vec::new());
        for _ in 0..plan.rounds {
            let alone = visits(&mut neighbours, plan.visits, &mut failures).await.p99();
            let ongoing = abuse.start(&abusive).await;
            let abused = visits(&mut neighbours, plan.visits, &mut failures).await.p99();
            drop(ongoing);
            clean_up(&abusive).await;
            eprintln!("{}: p99 {alone:?} alone, {abused:?} beside it, {} MB", abuse.name, place.server.memory_mb());
            rounds.push(Round { alone, abused });
        }
        let ratio = median(rounds.iter().map(|round| round.ratio(plan.noise)).collect());
        // A row of a table, for comparisons by people: without the allowance for noise.
        let raw = median(rounds.iter().map(|round| round.ratio(Duration::ZERO)).collect());
        let ms = |value: fn(&Round) -> Duration| median(rounds.iter().map(|round| value(round).as_secs_f64() * 1e3).collect());
        let (alone, abused) = (ms(|round| round.alone), ms(|round| round.abused));
        eprintln!("| {} | {alone:.0} ms | {abused:.0} ms | {raw:.2} | {} failures |", abuse.name, failures.len());
        complaints.extend(failures.into_iter().map(|why| format!("`{}`: {why}", abuse.name)));
        if ratio > plan.ratio_max {
            complaints.push(format!("`{}`: the p99 is {ratio:.1} times as long, at most {} is allowed", abuse.name, plan.ratio_max));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The p99 of the others in one round.
struct Round {
    alone: Duration,
    abused: Duration,
}

impl Round {
    fn ratio(&self, noise: Duration) -> f64 {
        match self.abused.saturating_sub(self.alone) {
            difference if difference < noise => 1.0,
            _ => self.abused.as_secs_f64() / self.alone.as_secs_f64(),
        }
    }
}

/// Both neighbours at once, each this many times.
async fn visits(neighbours: &mut [Neighbour; 2], count: usize, failures: &mut Vec<String>) -> Latencies {
    let visited = neighbours.iter_mut().map(|neighbour| async move {
        let (mut latencies, mut failures) = (Latencies::default(), Vec::new());
        for _ in 0..count {
            neighbour.visit(&mut latencies, &mut failures).await;
        }
        (latencies, failures)
    });
    let mut all = Latencies::default();
    for (latencies, failed) in futures_util::future::join_all(visited).await {
        all.extend(latencies);
        failures.extend(failed);
    }
    all
}
