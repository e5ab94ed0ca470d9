//! Blobs as objects in a bucket: object `<name>`, with metadata as object metadata.
//!
//! A blob is one `PUT`, which the bucket takes whole or not at all: its length and SHA-256 are signed. One that is longer than a part is a
//! multipart upload, whose parts are read from its file one at a time; the bucket shows it once the upload is completed. What a crash leaves of
//! an upload is invisible, and removed by a lifecycle rule of the bucket (`AbortIncompleteMultipartUpload`). Downloads go to a file.

use super::error::{BlobDefect, BlobError};
use super::metadata::BlobMetadata;
use super::name::{BlobFolder, BlobName};
use super::s3_settings::S3Settings;
use super::{BlobInfo, Blobs, GetRequest, ListedBlob, LocalFile, OpenBlob, START_BYTES, StagedFile};
use futures_util::StreamExt;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{Attribute, Attributes, Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions};
use std::borrow::Cow;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// What `check` writes and reads. No blob's name begins with a dot.
const CHECK: &str = ".heapstead-check";
/// A part of an upload, which is in memory while it is sent. S3 demands at least 5 MiB and allows 10,000 parts.
pub const PART_BYTES: u64 = 8 << 20;
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

impl S3Blobs {
    /// Writes a blob to a file in `folder`, piece by piece.
    fn download(&self, name: &BlobName, bytes_max: u64, folder: &std::path::Path) -> Result<(StagedFile, BlobMetadata), BlobError> {
        let mut staged = StagedFile::create_in(folder)?;
        let read = self.wait("read", name.as_str(), async {
            let object = self.client.get_opts(&path_of(name), GetOptions::default()).await?;
            if object.meta.size > bytes_max {
                return Ok(Err(BlobError::damaged(name)(BlobDefect::TooLong { bytes: object.meta.size })));
            }
            let metadata = metadata_of(&object.attributes);
            let mut pieces = object.into_stream();
            while let Some(piece) = pieces.next().await {
                if let Err(error) = staged.write(&piece?) {
                    return Ok(Err(error));
                }
            }
            Ok(Ok(metadata))
        });
        let metadata = read.map_err(|failure| failure.about(name))??;
        Ok((staged, metadata))
    }

    fn put_bytes(&self, name: &BlobName, bytes: Vec<u8>, metadata: &BlobMetadata) -> Result<(), BlobError> {
        let options = PutOptions { attributes: attributes_of(metadata), ..PutOptions::default() };
        self.wait("write", name.as_str(), self.client.put_opts(&path_of(name), bytes.into(), options))?;
        Ok(())
    }

    /// Stores the bytes of a file. One part is in memory at a time.
    fn upload(&self, name: &BlobName, file: &File, bytes: u64, metadata: &BlobMetadata) -> Result<(), BlobError> {
        let part = |offset: u64| {
            let mut part = vec![0; bytes.saturating_sub(offset).min(PART_BYTES) as usize];
            file.read_exact_at(&mut part, offset).map(|()| part).map_err(BlobError::unavailable("read", "the file to upload"))
        };
        if bytes <= PART_BYTES {
            return self.put_bytes(name, part(0)?, metadata);
        }
        let options = PutMultipartOptions { attributes: attributes_of(metadata), ..PutMultipartOptions::default() };
        let mut upload = self.wait("write", name.as_str(), self.client.put_multipart_opts(&path_of(name), options))?;
        let mut parts = || {
            for offset in (0..bytes).step_by(PART_BYTES as usize) {
                let sent = upload.put_part(part(offset)?.into());
                self.wait("write", name.as_str(), sent)?;
            }
            self.wait("write", name.as_str(), upload.complete())?;
            Ok(())
        };
        let stored = parts();
        if stored.is_err() {
            // What can't be removed now is not visible either.
            let _ = self.wait("write", name.as_str(), upload.abort());
        }
        stored
    }
}

impl Blobs for S3Blobs {
    fn backend(&self) -> &'static str {
        "s3"
    }

    fn open(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<OpenBlob, BlobError> {
        let (staged, metadata) = self.download(name, request.bytes_max, &self.staging())?;
        request.accept(name, OpenBlob { file: staged.reopened()?, bytes: staged.bytes(), metadata })
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
        self.put_bytes(name, parts.concat(), metadata)
    }

    fn put_staged(&self, name: &BlobName, staged: StagedFile, metadata: &BlobMetadata) -> Result<Option<StagedFile>, BlobError> {
        self.upload(name, staged.file(), staged.bytes(), metadata)?;
        Ok(Some(staged))
    }

    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError> {
        for LocalFile { name, path, file: _ } in files {
            // Not the descriptor that it was written through, which can't read.
            let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
            let (bytes, file) = opened.map_err(BlobError::unavailable("read", path))?;
            self.upload(name, &file, bytes, &BlobMetadata::default())?;
        }
        // The last first: as long as it is there, so are the others.
        files.iter().rev().try_for_each(|file| std::fs::remove_file(file.path).map_err(BlobError::unavailable("remove", file.path)))
    }

    /// By reading its start, not with `HEAD`: a response without a body does not tell what is missing, the object or the bucket. A second
    /// request to find out would make the answer for a missing blob take longer.
    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        let path = path_of(name);
        let start = GetOptions::default().with_range(Some(GetRange::Bounded(0..START_BYTES as u64)));
        let asked = self.wait("ask for", name.as_str(), async {
            let object = match self.client.get_opts(&path, start).await {
                // It is empty.
                Err(error) if is_past_end(&error) => self.client.get_opts(&path, GetOptions::default().with_head(true)).await?,
                object => object?,
            };
            let (meta, metadata) = (object.meta.clone(), metadata_of(&object.attributes));
            let start = Some(if meta.size == 0 { Vec::new() } else { object.bytes().await?.into() });
            Ok(BlobInfo { bytes: meta.size, modified: meta.last_modified.into(), metadata, start, file: None })
        });
        asked.map_err(|failure| failure.about(name))
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

    fn for_user(&self, _: &str) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
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

fn attributes_of(metadata: &BlobMetadata) -> Attributes {
    metadata.fields().iter().map(|(key, value)| (Attribute::Metadata(Cow::Owned(key.clone())), value.clone())).collect()
}

fn metadata_of(attributes: &Attributes) -> BlobMetadata {
    BlobMetadata::stored(attributes.iter().filter_map(|(attribute, value)| match attribute {
        Attribute::Metadata(key) => Some((key.to_string(), value.to_string())),
        _ => None,
    }))
}
