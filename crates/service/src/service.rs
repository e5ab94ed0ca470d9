//! The service: what is kept, and the engine that adds to it. Every edge calls this, and a rule that is not here is in the wrong place.

use crate::archive::{Archive, Policy};
use crate::context_recording::Conversations;
use crate::context_store::OpenContexts;
use crate::heap_access::HeapAccess;
use crate::meter::Meter;
use crate::turns::Turns;
use crate::{ServiceError, expiry, following, neighbours, sweep, trespass};
use heapstead_catalog::Catalogs;
use heapstead_engine::Engine;
use heapstead_store::{HeapStore, Metadata};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone)]
pub struct Service {
    archive: Archive,
    pub(crate) running: Arc<Running>,
}

pub(crate) struct Running {
    pub engine: Engine,
    pub heaps: HeapAccess,
    pub closing: AtomicBool,
    /// In which order runs of one session come.
    pub turns: Turns,
    /// What sessions can draw from.
    pub catalogs: Catalogs,
    /// The engine and the heap that fresh runs begin with.
    pub generation: String,
    pub meter: Meter,
}

impl Service {
    /// Takes over what an earlier process left: runs that were going when it died have failed. Then keeps house in the background, and does what
    /// other processes on the same database ask for.
    pub async fn open(
        engine: Engine,
        heaps: Arc<dyn HeapStore>,
        metadata: Metadata,
        policy: Policy,
        catalogs: Catalogs,
        contexts: Option<OpenContexts>,
    ) -> Result<Self, ServiceError> {
        let archive = Archive::open(heaps.clone(), metadata, policy);
        // What earlier processes found.
        archive.0.damaged.all().await;
        let running = Running {
            heaps: HeapAccess::new(heaps, engine.info().clone()).telling(archive.0.damaged.clone()),
            generation: engine.generation().to_owned(),
            engine,
            closing: AtomicBool::new(false),
            turns: Turns::default(),
            catalogs,
            meter: Meter::default(),
        };
        let service = Self { archive, running: Arc::new(running) };
        if let Some(contexts) = contexts {
            Conversations::start(contexts, &service.archive);
        }
        neighbours::listen(&service.archive);
        sweep::fail_orphans(&service).await?;
        sweep::start(&service);
        expiry::start(&service);
        following::start(&service);
        trespass::start(&service);
        Ok(service)
    }

    pub fn catalogs(&self) -> &Catalogs {
        &self.running.catalogs
    }

    pub fn engine(&self) -> &Engine {
        &self.running.engine
    }
}

/// All that can be asked of what is kept.
impl Deref for Service {
    type Target = Archive;

    fn deref(&self) -> &Archive {
        &self.archive
    }
}
