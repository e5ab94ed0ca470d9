//! Flags of the stores (heaps in a folder or in S3, with an optional cache; everything else in a database) and of a remote server.

use super::ConfigOptions;
use super::DAY_SECS;
use super::values::{between, boolish, bucket_name};
use crate::startup::{self, DATABASE_FOLDER_DEFAULT, HEAP_FOLDER_DEFAULT, StartupError};
use heapstead_service::KeyRing;
use heapstead_store::records::KeyPurpose;
use heapstead_store::{Blobs, CachedBlobs, HeapStore, HeapStoreError, S3_DEADLINE_DEFAULT, S3Blobs, S3Settings};
use heapstead_types::Principal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

pub const STORES: &str = "Stores";

/// Inconsistent flags.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    #[error("`{flag}` is given without `--s3-bucket`: it configures heaps in S3. Add `--s3-bucket NAME`, or omit it")]
    WithoutBucket { flag: &'static str },
    #[error(
        "`{flag}` is missing: JWTs need `--jwks-url`, `--jwt-issuer` and `--jwt-audience` together, so that a JWT issued for another service is refused"
    )]
    JwtWithout { flag: &'static str },
    #[error(
        "`--bind-host` is {host}, which other machines can reach, and there is no authentication. Create a token with \
         `heapstead auth add TENANT/SUBJECT --auth-tokens FILE` and give `--auth-tokens FILE`, or the three flags for JWTs (`--jwks-url`, `--jwt-issuer`, \
         `--jwt-audience`); listen only locally with `--bind-host 127.0.0.1`; or give `--insecure-no-auth` if something else controls access"
    )]
    Exposed { host: IpAddr },
    #[error("`--redis-url` is missing: `--context-store redis` needs the URL of Redis, e.g. redis://127.0.0.1:6379")]
    NoRedis,
    #[error("`--redis-url` is given without `--context-store redis`: add that, or omit it")]
    RedisUnused,
    #[error(
        "`--max-memory-mb` is {memory_mb}, and `--heap-memory-max` is {heap_mb}: no run could start, because its worker may use {worker_mb} MB, and one \
         run may use {run_mb} MB. Raise the first, or lower the second"
    )]
    MemoryBelowCap { memory_mb: u64, heap_mb: u32, worker_mb: u64, run_mb: u64 },
    #[error(
        "`{flag}` is {value}, and `{limit_flag}` is {limit}: the default may not be above the limit. Lower the first, or raise the second"
    )]
    DefaultAboveLimit { flag: &'static str, value: u32, limit_flag: &'static str, limit: u32 },
    #[error("`--auth-tokens` is missing: name the token file with `--auth-tokens FILE` or HEAPSTEAD_AUTH_TOKENS")]
    NoTokenFile,
}

/// A running server, or the local stores.
#[derive(clap::Args)]
pub struct WhereOptions {
    /// Use the server at this URL, e.g. http://127.0.0.1:8420; if omitted, use the local stores
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_URL")]
    pub url: Option<String>,
    /// Token for that server; prefer the environment variable or a file, which other users can't see
    #[arg(long, value_name = "TOKEN", env = "HEAPSTEAD_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains only the token for that server
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Owner of the objects in the local stores: local, anonymous or TENANT/SUBJECT; default: the only owner in the stores, else local
    #[arg(long, value_name = "OWNER", env = "HEAPSTEAD_OWNER")]
    pub owner: Option<Principal>,
    #[command(flatten)]
    pub config: ConfigOptions,
    #[command(flatten)]
    pub stores: StoreOptions,
}

#[derive(clap::Args)]
pub struct StoreOptions {
    #[command(flatten)]
    pub heaps: HeapStoreOptions,
    #[command(flatten)]
    pub database: DatabaseOptions,
    /// Days to keep a heap that nothing refers to, 1 to 36500
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_HEAPS", default_value_t = 30, value_parser = between::<1, 36_500>, allow_negative_numbers = true, help_heading = STORES)]
    retain_heaps: u64,
}

impl StoreOptions {
    pub fn retain_heaps(&self) -> Duration {
        Duration::from_secs(self.retain_heaps * DAY_SECS)
    }

    /// The arguments that make another process use the same folders from any working directory. `None` if heaps are not in a folder.
    pub fn folder_arguments(&self) -> Option<[String; 4]> {
        let Ok(HeapPlace::Folder(heaps)) = self.heaps.place() else { return None };
        let absolute = |path: &Path| std::path::absolute(path).ok()?.to_str().map(str::to_owned);
        Some(["--directory-path".into(), absolute(heaps)?, "--session-db-path".into(), absolute(&self.database.session_db_path)?])
    }
}

#[derive(clap::Args)]
pub struct DatabaseOptions {
    /// Folder of the metadata database, which has the keys that heaps are signed with, and of console output
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_SESSION_DB_PATH", default_value = DATABASE_FOLDER_DEFAULT, help_heading = STORES)]
    pub session_db_path: PathBuf,
}

impl DatabaseOptions {
    /// The keys that heaps are signed with, for commands that need nothing else of the database.
    pub fn heap_keys(&self) -> Result<Arc<KeyRing>, StartupError> {
        let records = startup::open_database(&self.session_db_path)?.records;
        Ok(Arc::new(KeyRing::new(records, KeyPurpose::Heaps)))
    }
}

#[derive(clap::Args)]
pub struct HeapStoreOptions {
    /// Folder of the heaps, unless they are in S3
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_DIRECTORY_PATH", default_value = HEAP_FOLDER_DEFAULT, help_heading = STORES)]
    directory_path: PathBuf,
    /// Store heaps in this S3 bucket; the standard AWS_… variables supply settings without a flag
    #[arg(long, value_name = "NAME", env = "HEAPSTEAD_S3_BUCKET", value_parser = bucket_name, help_heading = STORES)]
    s3_bucket: Option<String>,
    /// Endpoint of an S3-compatible store other than Amazon's: https://HOST:PORT
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_S3_ENDPOINT", help_heading = STORES)]
    s3_endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "REGION", env = "HEAPSTEAD_S3_REGION", help_heading = STORES)]
    s3_region: Option<String>,
    /// Access key id for the bucket
    #[arg(long, value_name = "ID", env = "HEAPSTEAD_S3_ACCESS_KEY_ID", hide_env_values = true, help_heading = STORES)]
    s3_access_key_id: Option<String>,
    /// Secret access key for the bucket; prefer the environment variable, which other users can't see
    #[arg(long, value_name = "SECRET", env = "HEAPSTEAD_S3_SECRET_ACCESS_KEY", hide_env_values = true, help_heading = STORES)]
    s3_secret_access_key: Option<String>,
    /// Session token for the bucket, for temporary credentials
    #[arg(long, value_name = "TOKEN", env = "HEAPSTEAD_S3_SESSION_TOKEN", hide_env_values = true, help_heading = STORES)]
    s3_session_token: Option<String>,
    /// Address the bucket as https://HOST/BUCKET (true) or as https://BUCKET.HOST (false)
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_S3_PATH_STYLE", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolish, help_heading = STORES)]
    s3_path_style: Option<bool>,
    /// Allow an endpoint without TLS: http://…
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_S3_ALLOW_HTTP", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolish, help_heading = STORES)]
    s3_allow_http: Option<bool>,
    /// Cache recently used heaps of the bucket in this folder
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_CACHE_DIR", help_heading = STORES)]
    cache_dir: Option<PathBuf>,
    /// Maximum size of that cache, at least 1
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_CACHE_MAX_MB", default_value_t = 8192, value_parser = between::<1, { 1 << 30 }>, allow_negative_numbers = true, help_heading = STORES)]
    cache_max_mb: u64,
}

/// Where heaps are stored, if the flags are consistent.
pub enum HeapPlace<'a> {
    Folder(&'a Path),
    Bucket { settings: S3Settings, cache: Option<(&'a Path, u64)> },
}

impl HeapStoreOptions {
    pub fn place(&self) -> Result<HeapPlace<'_>, FlagError> {
        let Some(bucket) = &self.s3_bucket else {
            return match self.flag_that_needs_a_bucket() {
                None => Ok(HeapPlace::Folder(&self.directory_path)),
                Some(flag) => Err(FlagError::WithoutBucket { flag }),
            };
        };
        let settings = S3Settings {
            bucket: bucket.clone(),
            endpoint: self.s3_endpoint.clone(),
            region: self.s3_region.clone(),
            access_key_id: self.s3_access_key_id.clone(),
            secret_access_key: self.s3_secret_access_key.clone(),
            session_token: self.s3_session_token.clone(),
            path_style: self.s3_path_style,
            allow_http: self.s3_allow_http,
            deadline: S3_DEADLINE_DEFAULT,
        };
        Ok(HeapPlace::Bucket { settings, cache: self.cache_dir.as_deref().map(|folder| (folder, self.cache_max_mb)) })
    }

    /// The first given flag that needs a bucket.
    fn flag_that_needs_a_bucket(&self) -> Option<&'static str> {
        let given = [
            ("--cache-dir", self.cache_dir.is_some()),
            ("--s3-endpoint", self.s3_endpoint.is_some()),
            ("--s3-region", self.s3_region.is_some()),
            ("--s3-access-key-id", self.s3_access_key_id.is_some()),
            ("--s3-secret-access-key", self.s3_secret_access_key.is_some()),
            ("--s3-session-token", self.s3_session_token.is_some()),
            ("--s3-path-style", self.s3_path_style.is_some()),
            ("--s3-allow-http", self.s3_allow_http.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// Opens the store. Creates a missing folder. Must be called inside the runtime.
    pub fn open(&self) -> Result<HeapStore, StartupError> {
        match self.place()? {
            HeapPlace::Folder(folder) => startup::open_heaps(folder),
            HeapPlace::Bucket { settings, cache } => {
                let bucket: Arc<dyn Blobs> = Arc::new(S3Blobs::open(&settings, Handle::current()).map_err(HeapStoreError::from)?);
                Ok(HeapStore::new(match cache {
                    None => bucket,
                    Some((folder, max_mb)) => Arc::new(CachedBlobs::open(bucket, folder, max_mb).map_err(HeapStoreError::from)?),
                }))
            }
        }
    }
}
