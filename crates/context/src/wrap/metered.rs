//! Counts the calls to a store, their results and the latency of reads, as plain numbers that a server can export.

use crate::store::{ContextStore, Pending, Stats};
use crate::{Access, Document, StoreError};
use prometheus::{Histogram, HistogramOpts};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

pub struct Metered<S> {
    store: S,
    meter: Arc<Meter>,
}

/// From a look-up in memory to a Redis read that is about to time out.
const READ_LATENCY_BOUNDS_MS: [f64; 14] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 25.0, 100.0, 1000.0];

#[derive(Debug)]
pub struct Meter {
    hits: AtomicU64,
    misses: AtomicU64,
    writes: AtomicU64,
    conflicts: AtomicU64,
    removals: AtomicU64,
    unavailable: AtomicU64,
    refused: AtomicU64,
    over_quota: AtomicU64,
    read_latency_ms: Histogram,
}

/// A snapshot of the counters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metrics {
    /// Reads that found a context. `misses` counts those that found none.
    pub hits: u64,
    pub misses: u64,
    pub writes: u64,
    /// Writes that conflicted and were retried.
    pub conflicts: u64,
    pub removals: u64,
    /// Calls while the store was unavailable.
    pub unavailable: u64,
    /// Documents that failed authentication or are under an unknown key.
    pub refused: u64,
    /// Writes that were refused because their owner has as much as it may have.
    pub over_quota: u64,
}

impl<S: ContextStore> Metered<S> {
    pub fn new(store: S) -> Self {
        Self { store, meter: Arc::default() }
    }

    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }

    /// Awaits a call and counts its error.
    async fn ask<T>(&self, answer: Pending<'_, T>) -> Result<T, StoreError> {
        let answer = answer.await;
        match &answer {
            Err(StoreError::Unavailable { .. }) => self.meter.unavailable.fetch_add(1, Relaxed),
            Err(StoreError::OverQuota { .. }) => self.meter.over_quota.fetch_add(1, Relaxed),
            Err(_) => self.meter.refused.fetch_add(1, Relaxed),
            Ok(_) => 0,
        };
        answer
    }
}

impl Default for Meter {
    fn default() -> Self {
        let opts = HistogramOpts::new("context_read_latency_ms", "Latency of context reads.").buckets(READ_LATENCY_BOUNDS_MS.into());
        Self {
            hits: AtomicU64::default(),
            misses: AtomicU64::default(),
            writes: AtomicU64::default(),
            conflicts: AtomicU64::default(),
            removals: AtomicU64::default(),
            unavailable: AtomicU64::default(),
            refused: AtomicU64::default(),
            over_quota: AtomicU64::default(),
            read_latency_ms: Histogram::with_opts(opts).expect("the name and the bounds are valid constants"),
        }
    }
}

impl Meter {
    /// The histogram itself, which a server can register with a Prometheus registry.
    pub fn read_latency_ms(&self) -> Histogram {
        self.read_latency_ms.clone()
    }

    pub fn view(&self) -> Metrics {
        Metrics {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            writes: self.writes.load(Relaxed),
            conflicts: self.conflicts.load(Relaxed),
            removals: self.removals.load(Relaxed),
            unavailable: self.unavailable.load(Relaxed),
            refused: self.refused.load(Relaxed),
            over_quota: self.over_quota.load(Relaxed),
        }
    }
}

impl<S: ContextStore> ContextStore for Metered<S> {
    fn backend(&self) -> &'static str {
        self.store.backend()
    }

    fn read<'a>(&'a self, access: Access<'a>) -> Pending<'a, Option<Document>> {
        Box::pin(async move {
            let begun = Instant::now();
            let found = self.ask(self.store.read(access)).await;
            self.meter.read_latency_ms.observe(begun.elapsed().as_secs_f64() * 1e3);
            match &found {
                Ok(Some(_)) => self.meter.hits.fetch_add(1, Relaxed),
                Ok(None) => self.meter.misses.fetch_add(1, Relaxed),
                Err(_) => 0,
            };
            found
        })
    }

    fn replace<'a>(&'a self, access: Access<'a>, expected: Option<&'a Document>, new: &'a Document) -> Pending<'a, bool> {
        Box::pin(async move {
            let replaced = self.ask(self.store.replace(access, expected, new)).await?;
            if replaced { &self.meter.writes } else { &self.meter.conflicts }.fetch_add(1, Relaxed);
            Ok(replaced)
        })
    }

    fn remove<'a>(&'a self, access: Access<'a>) -> Pending<'a, bool> {
        Box::pin(async move {
            let removed = self.ask(self.store.remove(access)).await?;
            self.meter.removals.fetch_add(u64::from(removed), Relaxed);
            Ok(removed)
        })
    }

    fn quarantine<'a>(&'a self, access: Access<'a>, found: &'a Document, why: &'a str) -> Pending<'a, bool> {
        Box::pin(self.ask(self.store.quarantine(access, found, why)))
    }

    fn sweep(&self) -> Pending<'_, ()> {
        Box::pin(self.ask(self.store.sweep()))
    }

    fn stats(&self) -> Pending<'_, Stats> {
        Box::pin(self.ask(self.store.stats()))
    }

    fn owner_bytes<'a>(&'a self, owner: &'a str) -> Pending<'a, Option<u64>> {
        Box::pin(self.ask(self.store.owner_bytes(owner)))
    }

    fn check(&self) -> Pending<'_, ()> {
        Box::pin(self.ask(self.store.check()))
    }
}
