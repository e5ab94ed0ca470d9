//! Implementations of `Blobs` under test, with direct access to the stored bytes, so that a test can inspect and damage them.

use crate::proxy::{Fault, Proxy};
use crate::s3_server;
use heapstead_store::records::ServerKey;
use heapstead_store::{
    Blobs, CachedBlobs, FolderBlobs, HeapLabel, HeapSigner, HeapStore, Owner, PAYLOAD_BYTES_MIN, S3Blobs, S3Settings, key_of,
};
use heapstead_types::{EngineId, HeapKey};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as ObjectPath;
use object_store::{Attribute, Attributes, ObjectStore, ObjectStoreExt, PutOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub trait Place: Sync {
    /// A separate store on the same blobs.
    fn blobs(&self) -> Arc<dyn Blobs>;
    /// The heaps among them.
    fn open(&self) -> HeapStore {
        HeapStore::new(self.blobs())
    }
    /// The bytes that are stored under a name.
    fn raw(&self, name: &str) -> Option<Vec<u8>>;
    /// Writes bytes and the id of an engine directly, not through the store.
    fn plant(&self, name: &str, bytes: &[u8], engine: Option<&str>);
    /// Writes something that is not a blob of this store.
    fn plant_foreign(&self, name: &str);
    fn down(&self);
    fn up(&self);
    /// The address with which another process opens it: see [`open_at`]. None if no other process can.
    fn address(&self) -> Option<String>;
}

/// Opens the store that [`Place::address`] names.
pub fn open_at(address: &str) -> Arc<dyn Blobs> {
    match *address.split(' ').collect::<Vec<_>>() {
        ["folder", folder] => Arc::new(FolderBlobs::open(Path::new(folder), Owner::Us).expect("store")),
        ["s3", endpoint, bucket] => Arc::new(S3Blobs::open(&settings(endpoint, bucket), s3_server::runtime()).expect("store")),
        ["cached", endpoint, bucket, folder] => {
            let inner = Arc::new(S3Blobs::open(&settings(endpoint, bucket), s3_server::runtime()).expect("store"));
            Arc::new(CachedBlobs::open(inner, Path::new(folder), CACHE_MAX_MB).expect("cache"))
        }
        _ => panic!("{address}"),
    }
}

/// Heaps in the bucket that these settings name. Opening sends no request.
pub fn heaps_in(settings: &S3Settings) -> HeapStore {
    HeapStore::new(Arc::new(S3Blobs::open(settings, s3_server::runtime()).expect("store")))
}

/// Room for a dozen of the heaps of these tests, so that some are evicted while others are read.
const CACHE_MAX_MB: u64 = 2;
/// Short, because the tests wait for it; long enough for a server that handles all tests at once.
pub const DEADLINE: Duration = Duration::from_secs(10);

pub fn settings(endpoint: &str, bucket: &str) -> S3Settings {
    S3Settings {
        endpoint: Some(endpoint.into()),
        region: Some("us-east-1".into()),
        access_key_id: Some("test".into()),
        secret_access_key: Some("test".into()),
        allow_http: Some(true),
        deadline: DEADLINE,
        ..S3Settings::new(bucket)
    }
}

/// The label of a heap that this engine wrote and nobody signed.
pub fn label(number: u32) -> HeapLabel {
    HeapLabel::unsigned(Some(engine(number)))
}

/// A ring of keys, each filled with this byte, the newest last.
pub fn signer(keys: &[u8]) -> HeapSigner {
    let keys: Vec<_> = keys.iter().map(|fill| ServerKey { id: i64::from(*fill), key: vec![*fill; 32] }).collect();
    HeapSigner::new(&keys)
}

pub struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        Self { root: tempfile::tempdir().expect("folder") }
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("heaps")
    }

    fn at(&self) -> String {
        format!("folder {}", self.folder().display())
    }
}

impl Place for Folder {
    fn blobs(&self) -> Arc<dyn Blobs> {
        open_at(&self.at())
    }

    fn raw(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.folder().join(name)).ok()
    }

    fn plant(&self, name: &str, bytes: &[u8], engine: Option<&str>) {
        let meta = self.folder().join(".meta");
        fs::create_dir_all(&meta).expect("folder");
        fs::write(self.folder().join(name), bytes).expect("blob");
        let sidecar = meta.join(format!("{name}.json"));
        match engine {
            Some(engine) => fs::write(sidecar, format!(r#"{{"engine":"{engine}"}}"#)).expect("sidecar"),
            None => drop(fs::remove_file(sidecar)),
        }
    }

    fn down(&self) {
        fs::rename(self.folder(), self.root.path().join("away")).expect("moved away");
    }

    fn up(&self) {
        fs::rename(self.root.path().join("away"), self.folder()).expect("moved back");
    }

    fn plant_foreign(&self, name: &str) {
        let path = self.folder().join(name);
        fs::create_dir_all(path.parent().expect("folder")).expect("folder");
        fs::write(path, "foreign").expect("file");
    }

    fn address(&self) -> Option<String> {
        Some(self.at())
    }
}

/// A new bucket behind a new proxy.
pub struct Bucket {
    pub proxy: Proxy,
    pub name: String,
    direct: AmazonS3,
}

impl Bucket {
    pub fn new() -> Self {
        let server = s3_server::start();
        let name = server.new_bucket();
        let endpoint = format!("http://127.0.0.1:{}", server.port);
        // As the store does it; the second to do so changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = AmazonS3Builder::new().with_endpoint(endpoint).with_bucket_name(&name).with_allow_http(true);
        let direct = builder.with_access_key_id("test").with_secret_access_key("test").build().expect("client");
        Self { proxy: Proxy::start(server.port), name, direct }
    }

    pub fn store(&self, deadline: Duration) -> HeapStore {
        heaps_in(&S3Settings { deadline, ..settings(&self.proxy.endpoint(), &self.name) })
    }

    fn at(&self) -> String {
        format!("s3 {} {}", self.proxy.endpoint(), self.name)
    }

    /// Puts an object that need not be a heap.
    pub fn plant_object(&self, name: &str, bytes: &[u8], engine: Option<&str>) {
        let engine = engine.map(|engine| (Attribute::Metadata("engine".into()), engine.to_owned()));
        let options = PutOptions { attributes: Attributes::from_iter(engine), ..PutOptions::default() };
        let path = ObjectPath::from(name);
        s3_server::runtime().block_on(self.direct.put_opts(&path, bytes.to_vec().into(), options)).expect("planted");
    }
}

impl Place for Bucket {
    fn blobs(&self) -> Arc<dyn Blobs> {
        open_at(&self.at())
    }

    fn raw(&self, name: &str) -> Option<Vec<u8>> {
        let path = ObjectPath::from(name);
        s3_server::runtime().block_on(async { Some(self.direct.get(&path).await.ok()?.bytes().await.ok()?.to_vec()) })
    }

    fn plant(&self, name: &str, bytes: &[u8], engine: Option<&str>) {
        self.plant_object(name, bytes, engine);
    }

    fn plant_foreign(&self, name: &str) {
        self.plant_object(name, b"foreign", None);
    }

    fn down(&self) {
        self.proxy.do_always(Fault::Refuse);
    }

    fn up(&self) {
        self.proxy.do_always(Fault::None);
    }

    fn address(&self) -> Option<String> {
        Some(self.at())
    }
}

pub struct Cached {
    pub bucket: Bucket,
    root: tempfile::TempDir,
}

impl Cached {
    pub fn new() -> Self {
        Self { bucket: Bucket::new(), root: tempfile::tempdir().expect("folder") }
    }

    fn at(&self) -> String {
        format!("cached {} {} {}", self.bucket.proxy.endpoint(), self.bucket.name, self.copies().display())
    }

    pub fn copies(&self) -> PathBuf {
        self.root.path().join("copies")
    }

    pub fn copy(&self, key: &HeapKey) -> PathBuf {
        self.copies().join(key.to_string())
    }
}

impl Place for Cached {
    fn blobs(&self) -> Arc<dyn Blobs> {
        open_at(&self.at())
    }

    fn raw(&self, name: &str) -> Option<Vec<u8>> {
        self.bucket.raw(name)
    }

    /// As another machine would do it, which cannot change the copies here, so they are dropped.
    fn plant(&self, name: &str, bytes: &[u8], engine: Option<&str>) {
        let _ = fs::remove_dir_all(self.copies());
        self.bucket.plant(name, bytes, engine);
    }

    fn plant_foreign(&self, name: &str) {
        self.bucket.plant_foreign(name);
    }

    fn down(&self) {
        let _ = fs::remove_dir_all(self.copies());
        self.bucket.down();
    }

    fn up(&self) {
        self.bucket.up();
    }

    fn address(&self) -> Option<String> {
        Some(self.at())
    }
}

/// A payload of a valid length, and its key.
pub fn heap(fill: u8) -> (HeapKey, Vec<u8>) {
    heap_of(fill, PAYLOAD_BYTES_MIN)
}

pub fn heap_of(fill: u8, bytes: usize) -> (HeapKey, Vec<u8>) {
    let payload = vec![fill; bytes];
    (key_of(&payload).expect("a heap"), payload)
}

pub fn engine(natives: u32) -> EngineId {
    EngineId { v8: "14.6.202.34-node.18".into(), arch: "x86_64".into(), flags: 0x1a2b, natives, natives_digest: 0x5e6f }
}
