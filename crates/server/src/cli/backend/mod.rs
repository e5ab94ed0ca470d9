//! The backend of `heapstead heaps`, `executions`, `sessions`, `usage` and `repl`: a running server or the local stores. Both return the JSON of
//! the REST API.

mod error;
mod local;
mod remote;
mod replays;
mod runner;

pub use error::BackendError;
pub use runner::{Runner, RunnerOptions, SessionRun};

use super::flags::WhereOptions;
use heapstead_service::{CollectRequest, EndLogical, SignRequest};
use heapstead_types::{EngineId, HeapKey, Status};
use local::Local;
use remote::Remote;
use serde_json::Value;
use std::time::Duration;

type Answer = Result<Value, BackendError>;

pub enum Backend {
    Local(Box<Local>),
    Remote(Remote),
}

/// The local stores that must exist for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Heaps,
    Database,
}

/// A heap outside of any store.
pub struct HeapFile {
    pub bytes: Vec<u8>,
    /// `None` if it was not stored with the heap.
    pub engine: Option<EngineId>,
}

/// Filter for the list of executions.
#[derive(Debug, Clone, Default)]
pub struct ExecutionQuery {
    pub status: Option<Status>,
    pub session: Option<String>,
    pub limit: Option<u32>,
    pub cursor: Option<String>,
}

impl ExecutionQuery {
    /// Whether there is no filter: then executions that ended long ago are left out.
    pub fn is_plain(&self) -> bool {
        self.status.is_none() && self.session.is_none() && self.limit.is_none() && self.cursor.is_none()
    }
}

impl Backend {
    pub async fn open(options: &WhereOptions, needs: Needs) -> Result<Self, BackendError> {
        Ok(match &options.url {
            Some(_) => Self::Remote(Remote::of(options)?),
            None => Self::Local(Box::new(Local::open(&options.stores, options.owner.clone(), needs).await?)),
        })
    }

    /// A page of heaps, sorted by key.
    pub async fn heaps(&self, limit: Option<u32>, cursor: Option<HeapKey>) -> Answer {
        match self {
            Self::Local(local) => local.heaps(limit, cursor).await,
            Self::Remote(remote) => remote.get("/api/heaps", &[("limit", text(limit)), ("cursor", text(cursor))]).await,
        }
    }

    /// A heap with its tags.
    pub async fn heap(&self, key: HeapKey) -> Answer {
        let (mut heap, tags) = match self {
            Self::Local(local) => (local.heap(key).await?, local.tags(key).await?),
            Self::Remote(remote) => {
                (remote.get(&format!("/api/heaps/{key}"), &[]).await?, remote.get(&format!("/api/heaps/{key}/tags"), &[]).await?)
            }
        };
        heap["tags"] = tags["tags"].clone();
        Ok(heap)
    }

    /// A heap as a file, verified like any read.
    pub async fn export(&self, key: HeapKey) -> Result<HeapFile, BackendError> {
        match self {
            Self::Local(local) => local.export(key).await,
            Self::Remote(remote) => remote.export(key).await,
        }
    }

    /// Imports a file and returns its key.
    pub async fn import(&self, file: HeapFile) -> Answer {
        match self {
            Self::Local(local) => local.import(file).await,
            Self::Remote(remote) => remote.import(file).await,
        }
    }

    pub async fn delete_heap(&self, key: HeapKey) -> Answer {
        match self {
            Self::Local(local) => local.delete_heap(key).await,
            Self::Remote(remote) => remote.delete(&format!("/api/heaps/{key}"), &[]).await,
        }
    }

    pub async fn collect(&self, request: CollectRequest) -> Answer {
        match self {
            Self::Local(local) => local.collect(request).await,
            Self::Remote(remote) => {
                let CollectRequest { dry_run, unknown } = request;
                remote.post("/api/heaps/gc", serde_json::json!({ "dry_run": dry_run, "unknown": unknown })).await
            }
        }
    }

    /// Local stores only, because only the operator may sign.
    pub async fn sign(&self, request: SignRequest) -> Answer {
        match self {
            Self::Local(local) => local.sign(request).await,
            Self::Remote(_) => Err(BackendError::OnlyLocal { what: "sign" }),
        }
    }

    /// Local stores only, because they are secret.
    pub async fn export_heap_keys(&self) -> Result<String, BackendError> {
        match self {
            Self::Local(local) => local.export_heap_keys().await,
            Self::Remote(_) => Err(BackendError::OnlyLocal { what: "export-keys" }),
        }
    }

    pub async fn import_heap_keys(&self, text: &str) -> Answer {
        match self {
            Self::Local(local) => local.import_heap_keys(text).await,
            Self::Remote(_) => Err(BackendError::OnlyLocal { what: "import-keys" }),
        }
    }

    /// Local stores only, because only the operator may rotate keys.
    pub async fn rotate_heap_key(&self) -> Answer {
        match self {
            Self::Local(local) => local.rotate_heap_key().await,
            Self::Remote(_) => Err(BackendError::OnlyLocal { what: "rotate-key" }),
        }
    }

    pub async fn executions(&self, query: &ExecutionQuery) -> Answer {
        match self {
            Self::Local(local) => local.executions(query).await,
            Self::Remote(remote) => {
                let status = query.status.map(|status| status.as_str().to_owned());
                let parameters = [
                    ("status", status),
                    ("session", query.session.clone()),
                    ("limit", text(query.limit)),
                    ("cursor", query.cursor.clone()),
                ];
                remote.get("/api/executions", &parameters).await
            }
        }
    }

    pub async fn execution(&self, id: &str) -> Answer {
        match self {
            Self::Local(local) => local.execution(id).await,
            Self::Remote(remote) => remote.get(&remote::execution(id, ""), &[]).await,
        }
    }

    /// A page of output from this byte offset. If there is none yet, waits up to `wait`.
    pub async fn output(&self, id: &str, byte_offset: u64, byte_limit: u64, wait: Duration) -> Answer {
        match self {
            Self::Local(local) => local.output(id, byte_offset, byte_limit, wait).await,
            Self::Remote(remote) => {
                let wait_secs = wait.as_secs_f64();
                let parameters = [
                    ("byte_offset", text(Some(byte_offset))),
                    ("byte_limit", text(Some(byte_limit))),
                    ("wait_secs", text(Some(wait_secs))),
                ];
                remote.get(&remote::execution(id, "/output"), &parameters).await
            }
        }
    }

    /// A page of opened sessions.
    pub async fn sessions(&self, limit: u32, cursor: Option<String>) -> Answer {
        match self {
            Self::Local(local) => local.sessions(limit, cursor).await,
            Self::Remote(remote) => remote.get("/api/sessions/opened", &[("limit", text(Some(limit))), ("cursor", cursor)]).await,
        }
    }

    /// Sessions with completed executions: named sessions by name, and opened sessions that this caller can list by id.
    pub async fn session_names(&self) -> Result<Vec<String>, BackendError> {
        let (mut names, mut cursor) = (Vec::new(), None);
        loop {
            let page = match self {
                Self::Local(local) => local.session_names().await?,
                Self::Remote(remote) => remote.get("/api/sessions", &[("cursor", cursor)]).await?,
            };
            names.extend(page["sessions"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                return Ok(names);
            }
        }
    }

    pub async fn session(&self, handle: &str) -> Answer {
        match self {
            Self::Local(local) => local.session(handle).await,
            Self::Remote(remote) => remote.get(&remote::session(handle, ""), &[]).await,
        }
    }

    /// With these fields, separated by commas, or the default ones.
    pub async fn session_log(&self, handle: &str, fields: Option<&str>) -> Answer {
        match self {
            Self::Local(local) => local.session_log(handle, fields).await,
            Self::Remote(remote) => {
                let (mut entries, mut cursor) = (Vec::new(), None);
                loop {
                    let parameters = [("session", Some(handle.to_owned())), ("fields", text(fields)), ("cursor", cursor)];
                    let mut page = remote.get("/api/session-snapshots", &parameters).await?;
                    entries.extend(page["entries"].as_array_mut().map(std::mem::take).unwrap_or_default());
                    cursor = page["next_cursor"].as_str().map(str::to_owned);
                    if cursor.is_none() {
                        return Ok(serde_json::json!({ "entries": entries }));
                    }
                }
            }
        }
    }

    pub async fn fork_session(&self, handle: &str, heap: Option<HeapKey>) -> Answer {
        match self {
            Self::Local(local) => local.fork_session(handle, heap).await,
            Self::Remote(remote) => remote.post(&remote::session(handle, "/fork"), serde_json::json!({ "heap": heap })).await,
        }
    }

    pub async fn end_session(&self, handle: &str, of_logical: EndLogical) -> Answer {
        match self {
            Self::Local(local) => local.end_session(handle, of_logical).await,
            Self::Remote(remote) => {
                let forget = (of_logical == EndLogical::Forget).then(|| "true".to_owned());
                remote.delete(&remote::session(handle, ""), &[("forget", forget)]).await
            }
        }
    }

    pub async fn usage(&self) -> Answer {
        match self {
            Self::Local(local) => local.usage().await,
            Self::Remote(remote) => remote.get("/api/usage", &[]).await,
        }
    }

    pub async fn delete_execution(&self, id: &str) -> Answer {
        match self {
            Self::Local(local) => local.delete_execution(id).await,
            Self::Remote(remote) => remote.delete(&remote::execution(id, ""), &[]).await,
        }
    }

    /// Local stores only, because only the operator may rotate keys.
    pub async fn rotate_state_key(&self) -> Answer {
        match self {
            Self::Local(local) => local.rotate_state_key().await,
            Self::Remote(_) => Err(BackendError::OnlyLocal { what: "rotate-key" }),
        }
    }

    pub async fn cancel(&self, id: &str) -> Answer {
        match self {
            Self::Local(local) => local.cancel(id).await,
            Self::Remote(remote) => remote.post(&remote::execution(id, "/cancel"), Value::Null).await,
        }
    }
}

fn text(value: Option<impl ToString>) -> Option<String> {
    value.map(|value| value.to_string())
}
