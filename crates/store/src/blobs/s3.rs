//! Blobs as objects in a bucket: object `<name>`, with metadata as object metadata.
//!
//! A blob is one `PUT`, which the bucket takes whole or not at all: its length and SHA-256 are signed.

use super::error::{BlobDefect, BlobError};
use super::metadata::BlobMetadata;
use super::name::{BlobFolder, BlobName};
use super::s3_settings::S3Settings;
use super::{Blob, BlobInfo, Blobs, GetRequest, ListedBlob};
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutOptions};
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// What `check` writes and reads. No blob's name begins with a dot.
const CHECK: &str = ".heapstead-check";
/// How much of an error of the store is repeated: its responses may be pages.
const ERROR_CHARS_MAX: usize = 600;

/// Its methods block on the client, so they must not be called on a thread that drives the runtime.
// Without `Debug`, like its settings: both hold a secret.
#[derive(Clone)]
pub struct S3Blobs {
    client: AmazonS3,
    bucket: String,
    /// The time limit of one call, and the deadline of the caller for all of them.
    call_time_max: Duration,
    until: Option<Instant>,
    runtime: Handle,
}

impl S3Blobs {
    /// Sends no request yet: [`Blobs::check`] does that. `runtime` has to run on other threads than the caller's.
    pub fn open(settings: &S3Settings, runtime: Handle) -> Result<Self, BlobError> {
        // The client asks for the process's choice of cryptography; where one was made already, that one holds.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (client, bucket) = (settings.client()?, settings.bucket.clone());
        Ok(Self { client, bucket, call_time_max: settings.deadline, until: None, runtime })
    }

    /// Waits for a call until its deadline. After that the call is dropped, and its connection with it.
    fn wait<T>(
        &self,
        operation: &'static str,
        name: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, RequestFailure> {
        let failure = |no_such_object, error: String| {
            let place = format!("`{name}` in the bucket `{}`", self.bucket);
            RequestFailure { operation, place, no_such_object, error: error.chars().take(ERROR_CHARS_MAX).collect() }
        };
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let time = self.call_time_max.min(left.unwrap_or(Duration::MAX));
        match self.runtime.block_on(async { tokio::time::timeout(time, call).await }) {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure(is_no_such_object(&error), error.to_string())),
            Err(_elapsed) => Err(failure(false, format!("no good answer within {} ms", time.as_millis()))),
        }
    }
}

impl Blobs for S3Blobs {
    fn backend(&self) -> &'static str {
        "s3"
    }

    fn get(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<Blob, BlobError> {
        let read = self.wait("read", name.as_str(), async {
            let object = self.client.get_opts(&path_of(name), GetOptions::default()).await?;
            if object.meta.size > request.bytes_max {
                return Ok(Err(BlobDefect::TooLong { bytes: object.meta.size }));
            }
            let metadata = metadata_of(&object.attributes);
            Ok(Ok(Blob { bytes: Vec::from(object.bytes().await?), metadata }))
        });
        let blob = read.map_err(|failure| failure.about(name))?.map_err(BlobError::damaged(name))?;
        request.accept(name, blob)
    }

    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let options = GetOptions::default().with_range(Some(GetRange::Bounded(range)));
        let read = self.wait("read", name.as_str(), async {
            match self.client.get_opts(&path_of(name), options).await {
                Err(error) if is_past_end(&error) => Ok(Vec::new()),
                object => Ok(Vec::from(object?.bytes().await?)),
            }
        });
        read.map_err(|failure| failure.about(name))
    }

    /// Without asking first whether the blob is there: that would cost every new one a round trip, to save the upload of a repeated one.
    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError> {
        let fields = metadata.fields().iter();
        let attributes = fields.map(|(key, value)| (Attribute::Metadata(Cow::Owned(key.clone())), value.clone())).collect();
        let options = PutOptions { attributes, ..PutOptions::default() };
        self.wait("write", name.as_str(), self.client.put_opts(&path_of(name), parts.concat().into(), options))?;
        Ok(())
    }

    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        let path = path_of(name);
        let asked = self.wait("ask for", name.as_str(), async {
            match self.client.get_opts(&path, GetOptions::default().with_head(true)).await {
                // A response without a body does not tell what is missing, the object or the bucket; this one does.
                Err(Error::NotFound { .. }) => {
                    self.client.get_opts(&path, GetOptions::default().with_range(Some(GetRange::from(0..1)))).await
                }
                response => response,
            }
        });
        let object = asked.map_err(|failure| failure.about(name))?;
        let metadata = metadata_of(&object.attributes);
        Ok(BlobInfo { bytes: object.meta.size, modified: object.meta.last_modified.into(), metadata, start: None })
    }

    fn list(&self, folder: &BlobFolder, each: &mut dyn FnMut(ListedBlob) -> ControlFlow<()>) -> Result<(), BlobError> {
        let prefix = folder.prefix();
        let mut options = PaginatedListOptions {
            // Objects in folders below this one are skipped by the server.
            delimiter: Some(Cow::Borrowed("/")),
            ..PaginatedListOptions::default()
        };
        loop {
            let page = self.wait("list", "*", self.client.list_paginated(prefix.as_deref(), options.clone()))?;
            for object in page.result.objects {
                let Ok(name) = object.location.as_ref().parse() else { continue };
                if each(ListedBlob { name, bytes: object.size, modified: object.last_modified.into() }).is_break() {
                    return Ok(());
                }
            }
            match page.page_token {
                None => return Ok(()),
                next => options.page_token = next,
            }
        }
    }

    fn remove(&self, name: &BlobName) -> Result<(), BlobError> {
        match self.wait("remove", name.as_str(), self.client.delete(&path_of(name))) {
            Err(failure) if !failure.no_such_object => Err(failure.into()),
            _ => Ok(()),
        }
    }

    /// A bucket shows nothing unfinished, and stores nothing beside an object.
    fn tidy(&self) -> Result<(), BlobError> {
        Ok(())
    }

    fn check(&self) -> Result<(), BlobError> {
        let path = Path::from(CHECK);
        self.wait("write", CHECK, self.client.put(&path, "heapstead".into()))?;
        self.wait("read", CHECK, async { self.client.get(&path).await?.bytes().await })?;
        Ok(())
    }

    fn until(&self, deadline: Instant) -> Arc<dyn Blobs> {
        Arc::new(Self { until: Some(deadline), ..self.clone() })
    }
}

/// A request that failed or got no response in time.
struct RequestFailure {
    operation: &'static str,
    place: String,
    no_such_object: bool,
    error: String,
}

impl RequestFailure {
    fn about(self, name: &BlobName) -> BlobError {
        match self.no_such_object {
            true => BlobError::NotFound { name: name.clone() },
            false => self.into(),
        }
    }
}

impl From<RequestFailure> for BlobError {
    fn from(RequestFailure { operation, place, error, .. }: RequestFailure) -> Self {
        Self::Unavailable { operation, place, error: error.into() }
    }
}

/// Only if the store itself says that it has no such object. Any other 404, as of a missing bucket or a wrong endpoint, does not tell
/// whether the blob exists.
fn is_no_such_object(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if source.to_string().contains("<Code>NoSuchKey</Code>"))
}

/// The store's refusal of a range that begins at or after the end of the object (416).
fn is_past_end(error: &Error) -> bool {
    matches!(error, Error::Generic { source, .. } if source.to_string().contains("<Code>InvalidRange</Code>"))
}

fn path_of(name: &BlobName) -> Path {
    Path::from(name.as_str())
}

fn metadata_of(attributes: &Attributes) -> BlobMetadata {
    BlobMetadata::stored(attributes.iter().filter_map(|(attribute, value)| match attribute {
        Attribute::Metadata(key) => Some((key.to_string(), value.to_string())),
        _ => None,
    }))
}
