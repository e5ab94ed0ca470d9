//! The stores of this machine, looked into by this very process. What runs in a server that shares them is asked of that server.

use super::{Answer, BackendError, ExecutionQuery, HeapFile, Needs};
use crate::cli::flags::{HeapPlace, StoreOptions, context_database};
use crate::local;
use heapstead_service::{
    Archive, Caller, CollectRequest, EntryField, ListRequest, LogRequest, NamesRequest, OnMissingHeap, Policy, Quotas, ServiceError,
};
use heapstead_store::outputs::PageRequest;
use heapstead_types::{HeapKey, Limits, Principal};
use serde::Serialize;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

pub struct Local {
    archive: Archive,
    caller: Caller,
}

impl Local {
    /// Looking at something does not make it: what is needed has to be there.
    pub async fn open(options: &StoreOptions, owner: Option<Principal>, needs: Needs) -> Result<Self, BackendError> {
        let there = |folder: &Path, what, flag| match folder.is_dir() {
            true => Ok(()),
            false => Err(BackendError::NoFolder { what, flag, path: folder.into() }),
        };
        match (needs, options.heaps.place()?) {
            (Needs::Heaps, HeapPlace::Folder(folder)) => there(folder, "heap folder", "--directory-path")?,
            (Needs::Database, _) => there(&options.session_db_path, "database folder", "--session-db-path")?,
            _ => {}
        }
        let metadata = local::open_metadata(&options.session_db_path)?;
        let policy = Policy {
            limits: Limits::default(),
            on_missing_heap: OnMissingHeap::Fail,
            retain_executions: Duration::MAX,
            retain_heaps: options.retain_heaps(),
            session_ttl: Duration::MAX,
            require_session: false,
            quotas: Quotas::default(),
            delegated: false,
        };
        let principal = match owner {
            Some(owner) => owner,
            // On a machine of one's own there is one.
            None => match metadata.owners().await.map_err(ServiceError::from)?.as_slice() {
                [only] => only.clone(),
                _ => Principal::local(),
            },
        };
        let archive = Archive::open(options.heaps.open()?, metadata, policy);
        archive.end_contexts_in(context_database(&options.session_db_path));
        Ok(Self { archive, caller: Caller { principal, names_sessions: true, ..Caller::default() } })
    }

    pub async fn heaps(&self, limit: Option<u32>, cursor: Option<HeapKey>) -> Answer {
        let (heaps, more) = self.archive.heaps(&self.caller, cursor, limit).await?;
        let next = heaps.last().filter(|_| more).map(|heap| heap.heap);
        let mut page = json!({ "heaps": heaps });
        if let Some(next) = next {
            page["next_cursor"] = next.to_string().into();
        }
        Ok(page)
    }

    pub async fn heap(&self, key: HeapKey) -> Answer {
        answer(self.archive.heap(&self.caller, key).await)
    }

    pub async fn tags(&self, key: HeapKey) -> Answer {
        Ok(json!({ "tags": self.archive.heap_tags(&self.caller, key).await? }))
    }

    pub async fn export(&self, key: HeapKey) -> Result<HeapFile, BackendError> {
        let heap = self.archive.export_heap(&self.caller, key).await?;
        let engine = heap.engine().cloned();
        Ok(HeapFile { bytes: heap.into_file(), engine })
    }

    pub async fn import(&self, HeapFile { bytes, engine }: HeapFile) -> Answer {
        Ok(json!({ "heap": self.archive.import_heap(&self.caller, bytes, engine).await? }))
    }

    pub async fn collect(&self, request: CollectRequest) -> Answer {
        answer(self.archive.collect_heaps(&self.caller, request).await)
    }

    pub async fn sessions(&self, limit: u32, cursor: Option<String>) -> Answer {
        answer(self.archive.sessions_of(&self.caller.principal, None, cursor.as_deref(), Some(limit)).await)
    }

    pub async fn session_names(&self) -> Answer {
        answer(self.archive.sessions(&self.caller, NamesRequest::default()).await)
    }

    pub async fn session(&self, handle: &str) -> Answer {
        answer(self.archive.show_session(&self.caller, handle).await)
    }

    pub async fn session_log(&self, handle: &str) -> Answer {
        let session = self.archive.log_of(&self.caller, Some(handle)).await?;
        let session = session.ok_or_else(|| ServiceError::NotFound { what: "session", name: handle.to_owned() })?;
        let request = LogRequest { session, fields: EntryField::DEFAULT.to_vec(), limit: None, cursor: None };
        answer(self.archive.session_log(&self.caller, request).await)
    }

    pub async fn fork_session(&self, handle: &str, heap: Option<HeapKey>) -> Answer {
        answer(self.archive.fork_session(&self.caller, handle, heap).await)
    }

    pub async fn end_session(&self, handle: &str) -> Answer {
        self.archive.end_session(&self.caller, handle).await?;
        Ok(json!({ "ok": true }))
    }

    pub async fn rotate_state_key(&self) -> Answer {
        self.archive.rotate_state_key().await?;
        Ok(json!({ "ok": true }))
    }

    pub async fn executions(&self, query: &ExecutionQuery) -> Answer {
        let session = match query.session.as_deref() {
            None => None,
            named => self.archive.log_of(&self.caller, named).await?,
        };
        let request = ListRequest { status: query.status, session, limit: query.limit, cursor: query.cursor.clone() };
        answer(self.archive.executions(&self.caller, request).await)
    }

    pub async fn execution(&self, id: &str) -> Answer {
        answer(self.archive.execution(&self.caller, id, Duration::ZERO).await)
    }

    pub async fn output(&self, id: &str, byte_offset: u64, byte_limit: u64, wait: Duration) -> Answer {
        let page = PageRequest::Bytes { offset: byte_offset, limit: byte_limit };
        answer(self.archive.output(&self.caller, id, page, wait).await)
    }

    pub async fn cancel(&self, id: &str) -> Answer {
        self.archive.cancel(&self.caller, id).await?;
        Ok(json!({ "ok": true }))
    }
}

fn answer(answer: Result<impl Serialize, ServiceError>) -> Answer {
    // Structs of strings and numbers, which all have a JSON form.
    Ok(serde_json::to_value(answer?).unwrap_or(Value::Null))
}
