//! Runs code in sessions: on the server, or by a service in this process on the local stores.

use super::local::{self, Local};
use super::remote::{self, Remote};
use super::{Answer, Backend, BackendError, text};
use crate::cli::flags::{ConfinementOptions, WhereOptions};
use crate::cli::screen::Screen;
use crate::startup::{self, StartupError};
use heapstead_catalog::Catalogs;
use heapstead_engine::memory_mb_of_machine;
use heapstead_service::{
    Caller, ContextRequest, EntryField, InputHeap, LogRequest, Noun, OnMissingHeap, Policy, RunParameters, Service, ServiceError,
};
use heapstead_types::{Limits, Principal};
use serde_json::json;
use std::time::Duration;

/// How long runs get to end when the command ends: it waits for each of them anyway.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

pub struct Runner {
    /// Everything but running.
    pub backend: Backend,
    place: Place,
}

enum Place {
    Here(Box<Service>, Box<Caller>),
    Server(Remote),
}

/// What a runner in this process is started with.
pub struct RunnerOptions<'a> {
    pub place: &'a WhereOptions,
    pub confinement: &'a ConfinementOptions,
    pub limits: Limits,
}

/// A run in a session.
pub struct SessionRun<'a> {
    pub session: &'a str,
    pub code: String,
    /// Instead of the head.
    pub heap: Option<InputHeap>,
    /// As they were asked for.
    pub limits: Limits,
}

impl Runner {
    /// For local stores, this starts an engine.
    pub async fn open(options: RunnerOptions<'_>) -> Result<Self, BackendError> {
        if options.place.url.is_some() {
            let remote = Remote::of(options.place)?;
            return Ok(Self { backend: Backend::Remote(remote.clone()), place: Place::Server(remote) });
        }
        let stores = &options.place.stores;
        // The stores are opened first, so that their errors are reported immediately.
        let (heaps, database) = (stores.heaps.open()?, startup::open_database(&stores.database.session_db_path)?);
        let policy = policy(options.limits);
        let mut config = options.confinement.config().map_err(StartupError::from)?;
        config.live_mb_max = memory_mb_of_machine() / 4;
        config.spares.heap_mb = options.limits.heap_mb;
        let engine = startup::start_engine(config, || Screen::new().aside("starting the engine …")).await?;
        let service = Service::open(engine, heaps, database, policy, Catalogs::default(), None).await?;
        let principal = options.place.owner.clone().unwrap_or_else(Principal::local);
        let local = Local::of(service.stores().clone(), principal, &stores.database);
        let caller = local.caller().clone();
        Ok(Self { backend: Backend::Local(Box::new(local)), place: Place::Here(Box::new(service), Box::new(caller)) })
    }

    /// The version of V8, if it is known.
    pub fn v8(&self) -> Option<&str> {
        match &self.place {
            Place::Here(service, _) => Some(&service.engine().info().id.v8),
            Place::Server(_) => None,
        }
    }

    /// Finds or opens the session of an intent.
    pub async fn session_context(&self, intent: &str) -> Answer {
        match &self.place {
            Place::Here(service, caller) => {
                let request = ContextRequest { intent: intent.to_owned(), ..ContextRequest::default() };
                local::answer(service.session_context(caller, request).await)
            }
            Place::Server(remote) => remote.post("/api/session-context", json!({ "intent": intent })).await,
        }
    }

    /// Starts a run. The answer has its id.
    pub async fn run(&self, run: SessionRun<'_>) -> Answer {
        let SessionRun { session, code, heap, limits } = run;
        let (heap, on_missing) = match heap {
            None => (None, None),
            Some(InputHeap::Fresh) => (Some(String::new()), None),
            Some(InputHeap::Heap { key, on_missing }) => (Some(key.to_string()), Some(on_missing)),
        };
        match &self.place {
            Place::Here(service, caller) => {
                let parameters = RunParameters {
                    code,
                    heap,
                    session: Some(session.to_owned()),
                    on_missing_heap: on_missing,
                    ..RunParameters::default()
                };
                let execution = service.run(caller, parameters).await?;
                Ok(json!({ "execution_id": execution.id().to_string() }))
            }
            Place::Server(remote) => {
                let mut body = json!({ "code": code, "session": session });
                if let Some(heap) = heap {
                    body["heap"] = heap.into();
                }
                if let Some(on_missing) = on_missing {
                    body["on_missing_heap"] = if on_missing == OnMissingHeap::Fail { "fail".into() } else { "fresh".into() };
                }
                // The server has limits of its own, which apply unless the user chose others.
                let default = Limits::default();
                if limits.heap_mb != default.heap_mb {
                    body["heap_memory_max_mb"] = limits.heap_mb.into();
                }
                if limits.timeout_secs != default.timeout_secs {
                    body["execution_timeout_secs"] = limits.timeout_secs.into();
                }
                remote.post("/api/exec", body).await
            }
        }
    }

    /// The record of a run, which receives the notice about its session.
    pub async fn record(&self, id: &str) -> Answer {
        match &self.place {
            Place::Here(service, caller) => local::answer(service.execution(caller, id, Duration::ZERO).await),
            Place::Server(_) => self.backend.execution(id).await,
        }
    }

    pub async fn undo(&self, session: &str, turns: u32) -> Answer {
        match &self.place {
            Place::Here(service, caller) => local::answer(service.undo_session(caller, session, turns).await),
            Place::Server(remote) => remote.post(&remote::session(session, "/undo"), json!({ "turns": turns })).await,
        }
    }

    /// The heap after a turn, which is stored if it is not yet; null if that is impossible.
    pub async fn heap_after(&self, session: &str, turn: u64) -> Answer {
        const FIELD: &str = "output_heap";
        let mut page = match &self.place {
            Place::Here(service, caller) => {
                let name = service.sessions().log_name(caller, Some(session)).await?;
                let request = LogRequest {
                    session: name.ok_or_else(|| ServiceError::not_found(Noun::Session, session))?,
                    fields: Some(vec![EntryField::OutputHeap]),
                    limit: Some(1),
                    cursor: Some(turn.to_string()),
                };
                local::answer(service.materialized_log(caller, request).await)?
            }
            Place::Server(remote) => {
                let parameters = [
                    ("session", Some(session.to_owned())),
                    ("fields", Some(FIELD.to_owned())),
                    ("limit", text(Some(1))),
                    ("cursor", text(Some(turn))),
                    ("materialize", text(Some(true))),
                ];
                remote.get("/api/session-snapshots", &parameters).await?
            }
        };
        Ok(page["entries"][0][FIELD].take())
    }

    /// Ends what runs in this process. The session stays, in its journal and its heaps.
    pub async fn close(&self) {
        if let Place::Here(service, _) = &self.place {
            service.close(CLOSE_GRACE).await;
        }
    }
}

/// A command does not know what the operator of the stores decided, so it deletes nothing, and sessions that it used do not expire.
fn policy(limits: Limits) -> Policy {
    let forever = Duration::MAX;
    Policy {
        limits,
        retain_executions: forever,
        retain_heaps: forever,
        retain_sessions: forever,
        session_ttl: forever,
        ..Policy::default()
    }
}
