//! Reads the local stores in this process. Running executions are requested from the server that shares the stores.

use super::{Answer, BackendError, ExecutionQuery, HeapFile, Needs};
use crate::api::{Done, to_json};
use crate::cli::flags::{DatabaseOptions, HeapPlace, StoreOptions, context_database};
use crate::startup;
use heapstead_engine::Engine;
use heapstead_service::{
    Caller, CollectRequest, EndLogical, EntryField, ListHeaps, ListRequest, LogRequest, NamesRequest, Noun, Policy, ServiceError,
    SignRequest, Stores, TurnRange,
};
use heapstead_store::outputs::PageRequest;
use heapstead_types::{HeapKey, Principal};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

pub struct Local {
    stores: Stores,
    caller: Caller,
}

impl Local {
    /// Commands that only read do not create stores: the required ones must exist.
    pub async fn open(options: &StoreOptions, owner: Option<Principal>, needs: Needs) -> Result<Self, BackendError> {
        let require = |folder: &Path, what, flag| match folder.is_dir() {
            true => Ok(()),
            false => Err(BackendError::NoFolder { what, flag, path: folder.into() }),
        };
        match (needs, options.heaps.place()?) {
            (Needs::Heaps, HeapPlace::Folder(folder)) => require(folder, "heap folder", "--directory-path")?,
            (Needs::Database, _) => require(&options.database.session_db_path, "database folder", "--session-db-path")?,
            _ => {}
        }
        let database = startup::open_database(&options.database.session_db_path)?;
        let policy = Policy {
            retain_executions: Duration::MAX,
            retain_heaps: options.retain_heaps(),
            session_ttl: Duration::MAX,
            ..Policy::default()
        };
        let principal = match owner {
            Some(owner) => owner,
            // The stores of a personal machine usually have a single owner.
            None => match database.records.owners().await.map_err(ServiceError::from)?.as_slice() {
                [only] => only.clone(),
                _ => Principal::local(),
            },
        };
        Ok(Self::of(Stores::open(options.heaps.open()?, database, policy), principal, &options.database))
    }

    /// On stores that are open.
    pub fn of(stores: Stores, principal: Principal, database: &DatabaseOptions) -> Self {
        stores.use_contexts_of(context_database(&database.session_db_path));
        Self { stores, caller: Caller { principal, names_sessions: true, ..Caller::default() } }
    }

    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    pub async fn heaps(&self, limit: Option<u32>, cursor: Option<HeapKey>) -> Answer {
        // Also those of `heapstead run`, which no database has.
        answer(self.stores.heaps().list(&self.caller, ListHeaps { after: cursor, limit, unknown: true }).await)
    }

    pub async fn heap(&self, key: HeapKey) -> Answer {
        answer(self.stores.heaps().show(&self.caller, key).await)
    }

    pub async fn tags(&self, key: HeapKey) -> Answer {
        answer(self.stores.heaps().tags(&self.caller, key).await)
    }

    pub async fn export(&self, key: HeapKey) -> Result<HeapFile, BackendError> {
        let heap = self.stores.heaps().export(&self.caller, key).await?;
        Ok(HeapFile { bytes: heap.read().await?, engine: heap.engine })
    }

    pub async fn import(&self, HeapFile { bytes, engine }: HeapFile) -> Answer {
        answer(self.stores.heaps().import(&self.caller, bytes, engine).await)
    }

    pub async fn delete_heap(&self, key: HeapKey) -> Answer {
        self.stores.heaps().delete(&self.caller, key).await?.finish().await;
        answer(Ok(Done::OK))
    }

    pub async fn collect(&self, request: CollectRequest) -> Answer {
        answer(self.stores.heaps().collect(&self.caller, request).await)
    }

    pub async fn sign(&self, request: SignRequest) -> Answer {
        answer(self.stores.heaps().sign(request).await)
    }

    pub async fn export_heap_keys(&self) -> Result<String, BackendError> {
        Ok(self.stores.heaps().export_keys().await?)
    }

    pub async fn import_heap_keys(&self, text: &str) -> Answer {
        answer(self.stores.heaps().import_keys(text).await.map(|added| serde_json::json!({ "added": added })))
    }

    pub async fn rotate_heap_key(&self) -> Answer {
        answer(self.stores.heaps().rotate_key().await.map(|()| Done::OK))
    }

    pub async fn sessions(&self, limit: u32, cursor: Option<String>) -> Answer {
        let mut page = answer(self.stores.sessions().list_opened_of(&self.caller.principal, None, cursor.as_deref(), Some(limit)).await)?;
        page["sessions"].as_array_mut().into_iter().flatten().for_each(forget_live);
        Ok(page)
    }

    pub async fn session_names(&self) -> Answer {
        answer(self.stores.sessions().list_names(&self.caller, NamesRequest::default()).await)
    }

    pub async fn session(&self, handle: &str) -> Answer {
        let mut session = answer(self.stores.sessions().show(&self.caller, handle).await)?;
        forget_live(&mut session);
        Ok(session)
    }

    pub async fn session_log(&self, handle: &str, fields: Option<&str>) -> Answer {
        let session = self.stores.sessions().log_name(&self.caller, Some(handle)).await?;
        let session = session.ok_or_else(|| ServiceError::not_found(Noun::Session, handle))?;
        let fields = fields.map(EntryField::parse_list).transpose()?;
        let request = LogRequest { session, fields, limit: None, cursor: None };
        answer(self.stores.sessions().log(&self.caller, request).await)
    }

    pub async fn fork_session(&self, handle: &str, heap: Option<HeapKey>) -> Answer {
        answer(self.stores.sessions().fork(&self.caller, handle, heap).await)
    }

    pub async fn end_session(&self, handle: &str, of_logical: EndLogical) -> Answer {
        answer(self.stores.sessions().end(&self.caller, handle, of_logical).await.map(|()| Done::OK))
    }

    pub async fn usage(&self) -> Answer {
        answer(self.stores.usage(&self.caller).await)
    }

    pub async fn delete_execution(&self, id: &str) -> Answer {
        answer(self.stores.executions().delete(&self.caller, id).await.map(|()| Done::OK))
    }

    pub async fn replay_execution(&self, id: &str, engine: &Engine) -> Answer {
        answer(self.stores.executions().replay(engine, &self.caller, id).await)
    }

    pub async fn upgrade_heap(&self, heap: HeapKey, engine: &Engine) -> Answer {
        answer(self.stores.heaps().upgrade(engine, &self.caller, heap).await)
    }

    pub async fn replay_session(&self, handle: &str, range: TurnRange, engine: &Engine) -> Answer {
        answer(self.stores.sessions().replay(engine, &self.caller, handle, range).await)
    }

    pub async fn rotate_state_key(&self) -> Answer {
        answer(self.stores.sessions().rotate_state_key().await.map(|()| Done::OK))
    }

    pub async fn executions(&self, query: &ExecutionQuery) -> Answer {
        let session = match query.session.as_deref() {
            None => None,
            named => self.stores.sessions().log_name(&self.caller, named).await?,
        };
        let request = ListRequest { status: query.status, session, limit: query.limit, cursor: query.cursor.clone() };
        answer(self.stores.executions().list(&self.caller, request).await)
    }

    pub async fn execution(&self, id: &str) -> Answer {
        answer(self.stores.executions().get(&self.caller, id, Duration::ZERO).await)
    }

    pub async fn output(&self, id: &str, byte_offset: u64, byte_limit: u64, wait: Duration) -> Answer {
        let page = PageRequest::Bytes { offset: byte_offset, limit: byte_limit };
        answer(self.stores.executions().output(&self.caller, id, page, wait).await)
    }

    pub async fn cancel(&self, id: &str) -> Answer {
        answer(self.stores.executions().cancel(&self.caller, id).await.map(|()| Done::OK))
    }
}

/// Who reads the database does not know what is in the memory of a server.
fn forget_live(session: &mut Value) {
    session["live"] = Value::Null;
}

pub fn answer(answer: Result<impl Serialize, ServiceError>) -> Answer {
    Ok(to_json(&answer?))
}
