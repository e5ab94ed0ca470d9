//! Where things are kept: heaps in a folder or in S3, with a cache or without; everything else in a database. Or at a server elsewhere.

use super::ConfigOptions;
use super::DAY_SECS;
use super::values::{between, boolish, bucket_name};
use crate::local::{self, DATABASE_FOLDER_DEFAULT, HEAP_FOLDER_DEFAULT, LocalError};
use heapstead_store::{CachedHeaps, HeapStore, S3_DEADLINE_DEFAULT, S3Heaps, S3Settings};
use heapstead_types::Principal;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

pub const STORES: &str = "Stores";

/// Flags that do not go together.
#[derive(Debug, thiserror::Error)]
pub enum FlagError {
    #[error("`{flag}` is given without `--s3-bucket`: it says something about heaps in S3. Give `--s3-bucket NAME` too, or leave it out")]
    WithoutBucket { flag: &'static str },
    #[error(
        "`{flag}` is missing: JWTs are taken only with `--jwks-url`, `--jwt-issuer` and `--jwt-audience` together, so that one that was issued for something else is not"
    )]
    JwtWithout { flag: &'static str },
    #[error(
        "`--bind-host` is {host}, where other machines reach it, and nobody would be asked who they are. Make a token with \
         `heapstead auth add TENANT/SUBJECT --auth-tokens FILE` and give `--auth-tokens FILE`, or the three flags for JWTs (`--jwks-url`, `--jwt-issuer`, \
         `--jwt-audience`); stay on this machine with `--bind-host 127.0.0.1`; or say `--insecure-no-auth` where something else decides who gets here"
    )]
    Exposed { host: IpAddr },
    #[error("`--redis-url` is missing: `--context-store redis` needs to know where Redis is, e.g. redis://127.0.0.1:6379")]
    NoRedis,
    #[error("`--redis-url` is given without `--context-store redis`: give that too, or leave it out")]
    RedisUnused,
    #[error(
        "`--max-memory-mb` is {memory_mb}, and `--heap-memory-max` is {heap_mb}: no run would ever fit. Raise the first, or lower the second"
    )]
    MemoryBelowCap { memory_mb: u64, heap_mb: u32 },
    #[error("`--auth-tokens` is missing: say which file of tokens with `--auth-tokens FILE` or HEAPSTEAD_AUTH_TOKENS")]
    NoTokenFile,
}

/// A running server, or the stores of this machine.
#[derive(clap::Args)]
pub struct WhereOptions {
    /// Ask the server at this address, e.g. http://127.0.0.1:8420; without it, the stores themselves are looked into
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_URL")]
    pub url: Option<String>,
    /// Token for that server; better given as a variable or in a file, which other users can't see
    #[arg(long, value_name = "TOKEN", env = "HEAPSTEAD_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that holds the token for that server, and nothing else
    #[arg(long, value_name = "FILE", env = "HEAPSTEAD_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Whose things to look at in the stores: local, anonymous or TENANT/SUBJECT; the only owner that has any by default, else local
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
    /// Folder of the metadata database and of console output
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_SESSION_DB_PATH", default_value = DATABASE_FOLDER_DEFAULT, help_heading = STORES)]
    pub session_db_path: PathBuf,
    /// Days that a heap is kept to which nothing refers, 1 to 36500
    #[arg(long, value_name = "DAYS", env = "HEAPSTEAD_RETAIN_HEAPS", default_value_t = 30, value_parser = between::<1, 36_500>, allow_negative_numbers = true, help_heading = STORES)]
    retain_heaps: u64,
}

impl StoreOptions {
    pub fn retain_heaps(&self) -> Duration {
        Duration::from_secs(self.retain_heaps * DAY_SECS)
    }

    /// The arguments that make another process use the same folders, from wherever it is started; none when heaps are elsewhere.
    pub fn folder_arguments(&self) -> Option<[String; 4]> {
        let Ok(HeapPlace::Folder(heaps)) = self.heaps.place() else { return None };
        let absolute = |path: &Path| std::path::absolute(path).ok()?.to_str().map(str::to_owned);
        Some(["--directory-path".into(), absolute(heaps)?, "--session-db-path".into(), absolute(&self.session_db_path)?])
    }
}

#[derive(clap::Args)]
pub struct HeapStoreOptions {
    /// Folder the heaps are kept in, unless they are in S3
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_DIRECTORY_PATH", default_value = HEAP_FOLDER_DEFAULT, help_heading = STORES)]
    directory_path: PathBuf,
    /// Keep heaps in this S3 bucket; what no flag says about it comes from the usual AWS_… variables
    #[arg(long, value_name = "NAME", env = "HEAPSTEAD_S3_BUCKET", value_parser = bucket_name, help_heading = STORES)]
    s3_bucket: Option<String>,
    /// Where the bucket is, for stores that are not Amazon's: https://HOST:PORT
    #[arg(long, value_name = "URL", env = "HEAPSTEAD_S3_ENDPOINT", help_heading = STORES)]
    s3_endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "REGION", env = "HEAPSTEAD_S3_REGION", help_heading = STORES)]
    s3_region: Option<String>,
    /// Credentials for the bucket: the key's id
    #[arg(long, value_name = "ID", env = "HEAPSTEAD_S3_ACCESS_KEY_ID", hide_env_values = true, help_heading = STORES)]
    s3_access_key_id: Option<String>,
    /// Credentials for the bucket: the key's secret; better given as a variable, which other users can't see
    #[arg(long, value_name = "SECRET", env = "HEAPSTEAD_S3_SECRET_ACCESS_KEY", hide_env_values = true, help_heading = STORES)]
    s3_secret_access_key: Option<String>,
    /// Credentials for the bucket: the token that goes with a key for a short time
    #[arg(long, value_name = "TOKEN", env = "HEAPSTEAD_S3_SESSION_TOKEN", hide_env_values = true, help_heading = STORES)]
    s3_session_token: Option<String>,
    /// Address the bucket as https://HOST/BUCKET (true) or as https://BUCKET.HOST (false)
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_S3_PATH_STYLE", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolish, help_heading = STORES)]
    s3_path_style: Option<bool>,
    /// Allow an endpoint without TLS: http://…
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_S3_ALLOW_HTTP", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolish, help_heading = STORES)]
    s3_allow_http: Option<bool>,
    /// Keep copies of the bucket's heaps that were used last in this folder
    #[arg(long, value_name = "DIR", env = "HEAPSTEAD_CACHE_DIR", help_heading = STORES)]
    cache_dir: Option<PathBuf>,
    /// How large those copies may be together, at least 1
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_CACHE_MAX_MB", default_value_t = 8192, value_parser = between::<1, { 1 << 30 }>, allow_negative_numbers = true, help_heading = STORES)]
    cache_max_mb: u64,
}

/// Where heaps are, once the flags are known to go together.
pub enum HeapPlace<'a> {
    Folder(&'a Path),
    Bucket { settings: S3Settings, cache: Option<(&'a Path, u64)> },
}

impl HeapStoreOptions {
    pub fn place(&self) -> Result<HeapPlace<'_>, FlagError> {
        let Some(bucket) = &self.s3_bucket else {
            return match self.about_a_bucket() {
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

    /// A flag that makes no sense without a bucket.
    fn about_a_bucket(&self) -> Option<&'static str> {
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

    /// Opens the store; a folder that is missing is made. To be called inside the runtime.
    pub fn open(&self) -> Result<Arc<dyn HeapStore>, LocalError> {
        Ok(match self.place()? {
            HeapPlace::Folder(folder) => Arc::new(local::open_heaps(folder)?),
            HeapPlace::Bucket { settings, cache } => {
                let bucket: Arc<dyn HeapStore> = Arc::new(S3Heaps::open(&settings, Handle::current())?);
                match cache {
                    None => bucket,
                    Some((folder, max_mb)) => Arc::new(CachedHeaps::open(bucket, folder, max_mb)?),
                }
            }
        })
    }
}
