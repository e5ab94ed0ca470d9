//! The zygotes of an engine: one for all jobs, or one for each owner, so that owners share no address-space layout.
//!
//! All workers of a zygote are forks of it, so they have its layout. A zygote of an owner is started when the owner's first job has a slot, and is
//! kept for later jobs. So there are at most as many zygotes as slots, plus [`IDLE_MAX`], plus the shared one.

use crate::Config;
use crate::cgroup::WorkerGroup;
use crate::zygote::{Zygote, ZygoteError};
use crate::zygote_process::Started;
use heapstead_types::BudgetHolder;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;

/// Zygotes of owners without a running job that are kept; of more, the least recently used are stopped. Each takes about 60 MB of memory, and
/// starting one takes a few hundred milliseconds.
pub const IDLE_MAX: usize = 8;

#[derive(Clone)]
pub struct Zygotes(Arc<Inner>);

struct Inner {
    /// The zygote of health checks, and of all jobs if owners share one.
    shared: Zygote,
    /// Those of owners. None if all share one.
    owned: Option<(Config, Mutex<Owned>)>,
    /// The cgroup of all zygotes and workers, if the machine delegates one.
    group: Option<Arc<WorkerGroup>>,
}

#[derive(Default)]
struct Owned {
    zygotes: HashMap<BudgetHolder, OwnersZygote>,
    /// Counts uses, to order them.
    uses: u64,
}

#[derive(Default)]
struct OwnersZygote {
    /// Empty until it has started.
    zygote: Arc<OnceCell<Zygote>>,
    jobs: usize,
    last_use: u64,
}

/// The right to fork workers of a zygote, which is not stopped meanwhile.
#[derive(Debug)]
pub struct Lease {
    zygote: Zygote,
    _in_use: Option<InUse>,
}

impl Lease {
    pub fn zygote(&self) -> &Zygote {
        &self.zygote
    }
}

impl Zygotes {
    pub async fn start(config: Config) -> Result<(Self, Started), ZygoteError> {
        let group = if config.uses_cgroup { worker_group(&config) } else { None };
        let (shared, started) = Zygote::start(config.clone(), group.clone()).await?;
        let owned = config.zygote_per_owner.then(|| (config, Mutex::default()));
        Ok((Self(Arc::new(Inner { shared, owned, group })), started))
    }

    /// The zygote for a job of this owner. Starts it if there is none.
    pub async fn lease(&self, holder: &BudgetHolder) -> Result<Lease, String> {
        let Some((config, _)) = &self.0.owned else {
            return Ok(Lease { zygote: self.0.shared.clone(), _in_use: None });
        };
        let (in_use, cell) = self.0.enter(holder, self);
        let start = async || Zygote::start(config.clone(), self.0.group.clone()).await.map(|(zygote, _)| zygote);
        let zygote = cell.get_or_try_init(start).await;
        Ok(Lease { zygote: zygote.map_err(|error| error.to_string())?.clone(), _in_use: Some(in_use) })
    }

    /// Only the zygote that belongs to no owner.
    pub fn shared_only(&self) -> Self {
        Self(Arc::new(Inner { shared: self.0.shared.clone(), owned: None, group: None }))
    }
}

fn worker_group(config: &Config) -> Option<Arc<WorkerGroup>> {
    match WorkerGroup::create(config.group_limits()) {
        Ok(group) => Some(Arc::new(group)),
        Err(why) => {
            tracing::info!(%why, "workers have no cgroup of their own; their other limits hold");
            None
        }
    }
}

impl Inner {
    fn owned(&self) -> Option<MutexGuard<'_, Owned>> {
        self.owned.as_ref().map(|(_, owned)| owned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&self, holder: &BudgetHolder, all: &Zygotes) -> (InUse, Arc<OnceCell<Zygote>>) {
        let cell = self.owned().map(|mut owned| {
            let entry = owned.zygotes.entry(holder.clone()).or_default();
            entry.jobs += 1;
            entry.zygote.clone()
        });
        (InUse { all: all.clone(), holder: holder.clone() }, cell.unwrap_or_default())
    }
}

impl std::fmt::Debug for Zygotes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Zygotes")
    }
}

/// Counts a job of an owner's zygote until it is dropped.
#[derive(Debug)]
struct InUse {
    all: Zygotes,
    holder: BudgetHolder,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let stopped = self.all.0.owned().map(|mut owned| owned.leave(&self.holder));
        // Without the lock, because stopping a zygote waits for its end.
        drop(stopped);
    }
}

impl Owned {
    /// Ends a job. Returns the zygotes to stop.
    fn leave(&mut self, holder: &BudgetHolder) -> Vec<OwnersZygote> {
        self.uses += 1;
        if let Some(entry) = self.zygotes.get_mut(holder) {
            entry.jobs -= 1;
            entry.last_use = self.uses;
        }
        let mut idle: Vec<(u64, BudgetHolder)> =
            self.zygotes.iter().filter(|(_, entry)| entry.jobs == 0).map(|(holder, entry)| (entry.last_use, holder.clone())).collect();
        idle.sort_unstable();
        let excess = idle.len().saturating_sub(IDLE_MAX);
        idle.into_iter().take(excess).filter_map(|(_, holder)| self.zygotes.remove(&holder)).collect()
    }
}
