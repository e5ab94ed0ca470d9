//! Blobs in memory, for tests: only what the trait requires. It can be made unavailable.

use crate::place::Place;
use heapstead_store::blobs::{
    Blob, BlobError, BlobFolder, BlobInfo, BlobMetadata, BlobName, Blobs, GetRequest, ListedBlob, LocalFile, OpenBlob, StagedFile,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

#[derive(Clone, Default)]
pub struct MemoryBlobs {
    stored: Arc<Mutex<BTreeMap<BlobName, (Blob, SystemTime)>>>,
    is_down: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl MemoryBlobs {
    fn attempt(&self, operation: &'static str) -> Result<(), BlobError> {
        let unavailable = |why: &str| Err(BlobError::Unavailable { operation, place: "memory".into(), error: why.into() });
        match self.deadline {
            _ if self.is_down.load(Relaxed) => unavailable("down"),
            Some(deadline) if deadline <= Instant::now() => unavailable("too late"),
            _ => Ok(()),
        }
    }

    fn find(&self, operation: &'static str, name: &BlobName) -> Result<(Blob, SystemTime), BlobError> {
        self.attempt(operation)?;
        let found = self.stored.lock().expect("blobs").get(name).cloned();
        found.ok_or_else(|| BlobError::NotFound { name: name.clone() })
    }
}

impl Blobs for MemoryBlobs {
    fn backend(&self) -> &'static str {
        "memory"
    }

    fn open(&self, name: &BlobName, request: &GetRequest<'_>) -> Result<OpenBlob, BlobError> {
        let (Blob { bytes, metadata }, _) = self.find("read", name)?;
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        request.accept(name, OpenBlob { file, bytes: bytes.len() as u64, metadata })
    }

    fn put_staged(&self, name: &BlobName, staged: StagedFile, metadata: &BlobMetadata) -> Result<Option<StagedFile>, BlobError> {
        let mut bytes = vec![0; staged.bytes() as usize];
        staged.file().read_exact_at(&mut bytes, 0).expect("the staged file");
        self.put(name, &[&bytes], metadata)?;
        Ok(Some(staged))
    }

    fn adopt(&self, files: &[LocalFile<'_>]) -> Result<(), BlobError> {
        for file in files {
            let read = std::fs::read(file.path).map_err(|error| BlobError::Unavailable {
                operation: "read",
                place: file.path.display().to_string(),
                error: error.into(),
            });
            self.put(&file.name, &[&read?], &BlobMetadata::default())?;
            std::fs::remove_file(file.path).expect("removed");
        }
        Ok(())
    }

    fn get_range(&self, name: &BlobName, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let (blob, _) = self.find("read", name)?;
        let end = blob.bytes.len().min(range.end as usize);
        Ok(blob.bytes.get(range.start as usize..end).unwrap_or_default().to_vec())
    }

    fn put(&self, name: &BlobName, parts: &[&[u8]], metadata: &BlobMetadata) -> Result<(), BlobError> {
        self.attempt("write")?;
        let blob = Blob { bytes: parts.concat(), metadata: metadata.clone() };
        self.stored.lock().expect("blobs").insert(name.clone(), (blob, SystemTime::now()));
        Ok(())
    }

    fn describe(&self, name: &BlobName) -> Result<BlobInfo, BlobError> {
        let (blob, modified) = self.find("ask for", name)?;
        Ok(BlobInfo { bytes: blob.bytes.len() as u64, modified, metadata: blob.metadata, start: None, file: None })
    }

    fn list(&self, folder: &BlobFolder, each: &mut dyn FnMut(ListedBlob) -> ControlFlow<()>) -> Result<(), BlobError> {
        self.attempt("list")?;
        for (name, (blob, modified)) in self.stored.lock().expect("blobs").iter() {
            let parent = name.as_str().split_once('/').map_or("", |(parent, _)| parent);
            let listed = ListedBlob { name: name.clone(), bytes: blob.bytes.len() as u64, modified: *modified };
            if parent == folder.as_str() && each(listed).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn remove(&self, name: &BlobName) -> Result<(), BlobError> {
        self.attempt("remove")?;
        self.stored.lock().expect("blobs").remove(name);
        Ok(())
    }

    fn tidy(&self) -> Result<(), BlobError> {
        self.attempt("tidy")
    }

    fn check(&self) -> Result<(), BlobError> {
        self.attempt("write")
    }

    fn until(&self, deadline: Instant) -> Arc<dyn Blobs> {
        Arc::new(Self { deadline: Some(deadline), ..self.clone() })
    }

    fn for_user(&self, _: &str) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }
}

impl Place for MemoryBlobs {
    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }

    fn raw(&self, name: &str) -> Option<Vec<u8>> {
        self.stored.lock().expect("blobs").get(&name.parse().expect("a name")).map(|(blob, _)| blob.bytes.clone())
    }

    fn plant(&self, name: &str, bytes: &[u8], engine: Option<&str>) {
        let metadata = BlobMetadata::default();
        let metadata = engine.map_or(metadata.clone(), |engine| metadata.with("engine", engine.into()).expect("metadata"));
        self.put(&name.parse().expect("a name"), &[bytes], &metadata).expect("planted");
    }

    /// It can hold only blobs.
    fn plant_foreign(&self, _: &str) {}

    fn down(&self) {
        self.is_down.store(true, Relaxed);
    }

    fn up(&self) {
        self.is_down.store(false, Relaxed);
    }

    fn address(&self) -> Option<String> {
        None
    }
}
