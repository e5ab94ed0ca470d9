//! A service on folders of its own, without background tasks, so that every database access belongs to a request.

use heapstead_catalog::Catalogs;
use heapstead_engine::{Artifacts, Config, Engine};
use heapstead_service::{Caller, OnMissingHeap, Policy, RunParameters, Service};
use heapstead_store::records::{AccessCounts, Records};
use heapstead_store::{Database, HeapStore, Owner};
use heapstead_types::{Permission, Principal};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

pub const LONG: Duration = Duration::from_secs(60);

pub struct Fixture {
    pub service: Service,
    pub records: Arc<dyn Records>,
    pub caller: Caller,
    _folder: TempDir,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub async fn with(change: impl FnOnce(&mut Policy)) -> Self {
        Self::with_engine(change, |_| ()).await
    }

    pub async fn with_engine(change: impl FnOnce(&mut Policy), configure: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::new(Artifacts::find().expect("the engine's parts"));
        configure(&mut config);
        let engine = Engine::start(config).await.expect("an engine");
        let heaps = HeapStore::in_folder(&folder.path().join("heaps"), Owner::Anyone).expect("heaps");
        let database = Database::open(&folder.path().join("database"), Owner::Anyone).expect("a database");
        let records = database.records.clone();
        let mut policy = Policy { on_missing_heap: OnMissingHeap::Fail, retain_executions: LONG, retain_heaps: LONG, ..Policy::default() };
        change(&mut policy);
        let principal: Principal = "acme/ann".parse().expect("an owner");
        let service = Service::new(engine, heaps, database, policy, catalogs());
        // A server reads the keys of heaps when it starts.
        service.heaps().export_keys().await.expect("keys");
        let caller = Caller { principal, permissions: Permission::ALL.into(), ..Caller::default() };
        Self { service, records, caller, _folder: folder }
    }

    /// Runs code to its end. Returns the result.
    pub async fn run(&self, caller: &Caller, code: &str, session: Option<&str>) -> String {
        let parameters = RunParameters { code: code.into(), session: session.map(str::to_owned), ..RunParameters::default() };
        let execution = self.service.run(caller, parameters).await.expect("accepted");
        let record = self.service.wait_for_run(caller, &execution, LONG).await;
        record.result.unwrap_or_else(|| panic!("{:?}", record.error))
    }

    /// What this costs in reads and write transactions.
    pub async fn cost<T>(&self, work: impl Future<Output = T>) -> (AccessCounts, T) {
        let before = self.records.counts();
        let done = work.await;
        let after = self.records.counts();
        (AccessCounts { reads: after.reads - before.reads, writes: after.writes - before.writes }, done)
    }
}

fn catalogs() -> Catalogs {
    Catalogs::load([concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs/statistics")]).expect("the catalog")
}

pub fn costs(reads: u64, writes: u64) -> AccessCounts {
    AccessCounts { reads, writes }
}
