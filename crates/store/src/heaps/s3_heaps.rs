//! Heaps as objects in a bucket: object `<key>` with the bytes of the file format, and the engine's id in its metadata, `engine`.
//!
//! A heap is one `PUT`, which the bucket takes whole or not at all: its length and SHA-256 are signed.

use super::heap_file::{self, Defect, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use super::heap_store::{HeapInfo, HeapStore, HeapStoreError, ListedHeap, StoredHeap};
use super::s3_settings::S3Settings;
use heapstead_types::{EngineId, HeapKey};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutOptions};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

const ENGINE: Attribute = Attribute::Metadata(Cow::Borrowed("engine"));
/// What `check` writes and reads. No heap key begins with a dot.
const CHECK: &str = ".heapstead-check";
const FILE_BYTES_MAX: u64 = (HEADER_BYTES + PAYLOAD_BYTES_MAX) as u64;
/// How much of an error of the store is repeated: its answers may be pages.
const ERROR_CHARS_MAX: usize = 600;

/// Its methods wait for the client, so they must not be called on a thread that drives the runtime.
// Without `Debug`, like its settings: both hold a secret.
#[derive(Clone)]
pub struct S3Heaps {
    client: AmazonS3,
    bucket: String,
    /// What one call may take, and when whoever waits for all of them leaves.
    call_time_max: Duration,
    until: Option<Instant>,
    runtime: Handle,
}

impl S3Heaps {
    /// Nothing is asked of the bucket yet: [`HeapStore::check`] does that. `runtime` has to run on threads of its own.
    pub fn open(settings: &S3Settings, runtime: Handle) -> Result<Self, HeapStoreError> {
        // The client asks for the process's choice of cryptography; where one was made already, that one holds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (client, bucket) = (settings.client()?, settings.bucket.clone());
        Ok(Self { client, bucket, call_time_max: settings.deadline, until: None, runtime })
    }

    /// Waits for the end of a call, and no longer than its deadline. A call that nobody waits for is dropped, and its connection with it.
    fn wait<T>(&self, operation: &'static str, name: &str, call: impl Future<Output = object_store::Result<T>>) -> Result<T, Trouble> {
        let trouble = |no_such_object, error: String| {
            let place = format!("`{name}` in the bucket `{}`", self.bucket);
            Trouble { operation, place, no_such_object, error: error.chars().take(ERROR_CHARS_MAX).collect() }
        };
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let time = self.call_time_max.min(left.unwrap_or(Duration::MAX));
        match self.runtime.block_on(async { tokio::time::timeout(time, call).await }) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(trouble(is_no_such_object(&error), error.to_string())),
            Err(_elapsed) => Err(trouble(false, format!("no good answer within {} ms", time.as_millis()))),
        }
    }
}

impl HeapStore for S3Heaps {
    fn backend(&self) -> &'static str {
        "s3"
    }

    fn get(&self, key: &HeapKey) -> Result<StoredHeap, HeapStoreError> {
        let name = key.to_string();
        let read = self.wait("read", &name, async {
            let object = self.client.get_opts(&Path::from(name.as_str()), GetOptions::default()).await?;
            if object.meta.size > FILE_BYTES_MAX {
                return Ok(Err(Defect::TooLong { bytes: object.meta.size - HEADER_BYTES as u64 }));
            }
            let engine = engine_of(&object.attributes);
            Ok(Ok((Vec::from(object.bytes().await?), engine)))
        });
        let (file, engine) = read.map_err(|trouble| trouble.about(key))?.map_err(HeapStoreError::damaged(key))?;
        heap_file::verify(&file, key).map_err(HeapStoreError::damaged(key))?;
        Ok(StoredHeap::verified(file, engine.map_err(HeapStoreError::damaged(key))?))
    }

    /// Without a look whether it is there: that would cost every new heap a round trip, to save the upload of one that comes again.
    fn put(&self, key: &HeapKey, payload: &[u8], engine: Option<&EngineId>) -> Result<(), HeapStoreError> {
        heap_file::check_length(payload.len() as u64).map_err(HeapStoreError::NotAHeap)?;
        let name = key.to_string();
        let file = [&heap_file::header(key)[..], payload].concat();
        let attributes = engine.map(|engine| (ENGINE, engine.to_string())).into_iter().collect();
        let options = PutOptions { attributes, ..PutOptions::default() };
        self.wait("write", &name, self.client.put_opts(&Path::from(name.as_str()), file.into(), options))?;
        Ok(())
    }

    fn describe(&self, key: &HeapKey) -> Result<HeapInfo, HeapStoreError> {
        let name = key.to_string();
        let path = Path::from(name.as_str());
        let asked = self.wait("ask for", &name, async {
            match self.client.get_opts(&path, GetOptions::default().with_head(true)).await {
                // An answer without a body does not say what is missing, the object or the bucket; this one does.
                Err(Error::NotFound { .. }) => {
                    self.client.get_opts(&path, GetOptions::default().with_range(Some(GetRange::from(0..1)))).await
                }
                answer => answer,
            }
        });
        let object = asked.map_err(|trouble| trouble.about(key))?;
        let payload_bytes = object.meta.size.saturating_sub(HEADER_BYTES as u64);
        heap_file::check_length(payload_bytes).map_err(HeapStoreError::damaged(key))?;
        let engine = engine_of(&object.attributes).map_err(HeapStoreError::damaged(key))?;
        Ok(HeapInfo { key: *key, payload_bytes, stored_at: object.meta.last_modified.into(), engine })
    }

    fn list(&self, each: &mut dyn FnMut(ListedHeap) -> ControlFlow<()>) -> Result<(), HeapStoreError> {
        let mut options = PaginatedListOptions {
            // Heaps lie at the root; what others keep in folders is passed over by the store.
            delimiter: Some(Cow::Borrowed("/")),
            ..PaginatedListOptions::default()
        };
        loop {
            let page = self.wait("list", "*", self.client.list_paginated(None, options.clone()))?;
            for object in page.result.objects {
                let Ok(key) = object.location.as_ref().parse() else { continue };
                let payload_bytes = object.size.saturating_sub(HEADER_BYTES as u64);
                if each(ListedHeap { key, payload_bytes, stored_at: object.last_modified.into() }).is_break() {
                    return Ok(());
                }
            }
            match page.page_token {
                None => return Ok(()),
                next => options.page_token = next,
            }
        }
    }

    fn remove(&self, key: &HeapKey) -> Result<(), HeapStoreError> {
        let name = key.to_string();
        match self.wait("remove", &name, self.client.delete(&Path::from(name.as_str()))) {
            Err(trouble) if !trouble.no_such_object => Err(trouble.into()),
            _ => Ok(()),
        }
    }

    /// A bucket shows nothing unfinished, and keeps nothing beside an object.
    fn tidy(&self) -> Result<(), HeapStoreError> {
        Ok(())
    }

    fn check(&self) -> Result<(), HeapStoreError> {
        let path = Path::from(CHECK);
        self.wait("write", CHECK, self.client.put(&path, "heapstead".into()))?;
        self.wait("read", CHECK, async { self.client.get(&path).await?.bytes().await })?;
        Ok(())
    }

    fn until(&self, deadline: Instant) -> Arc<dyn HeapStore> {
        Arc::new(Self { until: Some(deadline), ..self.clone() })
    }
}

/// Why a call got no good answer.
struct Trouble {
    operation: &'static str,
    place: String,
    no_such_object: bool,
    error: String,
}

impl Trouble {
    fn about(self, key: &HeapKey) -> HeapStoreError {
        match self.no_such_object {
            true => HeapStoreError::NotFound { key: *key },
            false => self.into(),
        }
    }
}

impl From<Trouble> for HeapStoreError {
    fn from(Trouble { operation, place, error, .. }: Trouble) -> Self {
        Self::Unavailable { operation, place, error: error.into() }
    }
}

/// Only what the store itself says it does not have. Any other 404, as of a missing bucket or a wrong endpoint, is no answer about a heap.
fn is_no_such_object(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if source.to_string().contains("<Code>NoSuchKey</Code>"))
}

fn engine_of(attributes: &Attributes) -> Result<Option<EngineId>, Defect> {
    let Some(engine) = attributes.get(&ENGINE) else { return Ok(None) };
    engine.parse().map(Some).map_err(|error: <EngineId as std::str::FromStr>::Err| Defect::Sidecar { why: error.to_string() })
}
