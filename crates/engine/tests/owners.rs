//! A zygote per owner: owners share no address-space layout, and the number of zygotes is bounded.

mod common;

use common::processes::{self, is_alive, wait_for, zygotes_of};
use common::{begun, brief, config, end_of, job, probes, run, start_with, submit};
use heapstead_engine::{Config, Job, Kind, Outcome, ZYGOTES_IDLE_MAX};
use heapstead_types::BudgetHolder;
use std::collections::BTreeSet;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

fn of(owner: &str, code: &str) -> Job {
    let mut job = job(code, Kind::Stateless);
    job.holder = BudgetHolder::Owner(owner.parse().expect("an owner"));
    job
}

/// What code learns about the addresses in its worker applies to all workers of the same zygote. It must not apply to those of other owners.
#[tokio::test(flavor = "multi_thread")]
async fn owners_share_no_address_space_layout() {
    for (zygote_per_owner, layouts_expected) in [(false, 1), (true, 3)] {
        let engine = start_with(Config { zygote_per_owner, ..config(probes()) }).await;
        let mut layouts = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        for owner in ["acme/ann", "acme/bob", "other/ann"] {
            let first = brief(&run(&engine, of(owner, "layout")).await);
            assert_eq!(brief(&run(&engine, of(owner, "layout")).await), first, "workers of {owner} are forks of one zygote");
            layouts
                .iter_mut()
                .zip(first.split(' '))
                .for_each(|(seen, address)| assert!(seen.insert(address.to_owned()) || !zygote_per_owner));
        }
        for seen in layouts {
            assert_eq!(seen.len(), layouts_expected, "zygote per owner: {zygote_per_owner}: {seen:?}");
        }
    }
}

/// The one that no owner uses any more is stopped, least recently used first; one with a run is not, however long ago it was started.
#[tokio::test(flavor = "multi_thread")]
async fn idle_zygotes_are_bounded_and_busy_ones_are_kept() {
    let parts = probes();
    let engine = start_with(Config { zygote_per_owner: true, ..config(parts.clone()) }).await;
    let zygotes = || zygotes_of(processes::this(), &parts.base_heap);
    let shared = zygotes();
    let mut long = of("busy/first", "fake silence while it runs");
    long.limits.timeout_secs = 60;
    let mut busy = submit(&engine, long);
    begun(&mut busy).await;
    let [of_busy] = zygotes().into_iter().filter(|pid| !shared.contains(pid)).collect::<Vec<_>>()[..] else { panic!("{:?}", zygotes()) };
    for number in 0..ZYGOTES_IDLE_MAX + 4 {
        assert!(matches!(run(&engine, of(&format!("owner/{number}"), "inside")).await, Outcome::Completed { .. }));
    }
    // The shared one, the busy one, and the idle ones.
    let bound = wait_for(SOON, || (zygotes().len() == 2 + ZYGOTES_IDLE_MAX).then_some(()));
    assert!(bound.is_some(), "{} zygotes", zygotes().len());
    assert!(is_alive(of_busy) && shared.iter().all(|pid| is_alive(*pid)));
    assert!(busy.canceller().cancel().await);
    assert!(matches!(end_of(busy).await.1, Outcome::Cancelled));
    drop(engine);
    assert!(wait_for(SOON, || zygotes().is_empty().then_some(())).is_some(), "a zygote outlived its engine");
}

/// A zygote that dies fails the run of its owner only.
#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_an_owners_zygote_affects_no_other_owner() {
    let parts = probes();
    let engine = start_with(Config { zygote_per_owner: true, ..config(parts.clone()) }).await;
    let zygotes = || zygotes_of(processes::this(), &parts.base_heap);
    let mut runs = Vec::new();
    for owner in ["acme/ann", "acme/bob"] {
        let before = zygotes();
        let mut execution = submit(&engine, of(owner, "fake silence while it runs"));
        begun(&mut execution).await;
        let own = zygotes().into_iter().find(|pid| !before.contains(pid)).expect("a zygote of its own");
        runs.push((execution, own));
    }
    let [(first, of_first), (second, _)] = <[_; 2]>::try_from(runs).unwrap_or_else(|_| panic!("two runs"));
    processes::kill(of_first);
    assert_eq!(brief(&end_of(first).await.1), brief(&Outcome::Failed(heapstead_types::Failure::ZygoteDied)));
    assert_eq!(brief(&end_of(second).await.1), "timed out");
    assert!(matches!(run(&engine, of("acme/ann", "inside")).await, Outcome::Completed { .. }), "another zygote was started");
}
