//! Why a command got no answer, whose fault that is, and what to do next.

use crate::cli::flags::FlagError;
use crate::local::LocalError;
use heapstead_service::ServiceError;
use heapstead_store::Defect;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("there is no {what} at {}", path.display())]
    NoFolder { what: &'static str, flag: &'static str, path: PathBuf },
    #[error(transparent)]
    Local(#[from] LocalError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("`--url` is `{url}`: {why}")]
    BadUrl { url: String, why: String },
    #[error("`{what}` works on the stores themselves, not on a server")]
    OnlyLocal { what: &'static str },
    #[error("the token is empty, or has characters in it that no token has")]
    BadToken,
    #[error("there is no answer from {url}: {why}")]
    Unreachable { url: String, why: String },
    /// In the server's own words.
    #[error("{detail}")]
    Refused { status: u16, detail: String },
    #[error("{url} does not answer like Heapstead: {why}")]
    NotHeapstead { url: String, why: String },
    #[error("the heap did not arrive whole: {0}")]
    Damaged(Defect),
    #[error("{} can't be {what}: {error}", path.display())]
    File { what: &'static str, path: PathBuf, error: io::Error },
    #[error("{} does not say which engine wrote the heap: {why}", sidecar.display())]
    BadSidecar { sidecar: PathBuf, why: String },
}

impl BackendError {
    /// Whether the caller has to ask for something else.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Local(LocalError::Flags(_))
                | Self::BadUrl { .. }
                | Self::BadToken
                | Self::OnlyLocal { .. }
                | Self::BadSidecar { .. }
                | Self::Service(ServiceError::BadInput(_))
                | Self::Refused { status: 400, .. }
        )
    }

    pub fn next_step(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder { flag, .. } => format!("say where it is with `{flag} DIR`, or ask a server with `--url http://127.0.0.1:8420`"),
            Self::Service(ServiceError::NotFound { what, .. }) => format!("`heapstead {what}s ls` lists those that are there"),
            Self::Service(ServiceError::SessionEnded(_)) => "`heapstead sessions ls` lists those that are there".into(),
            Self::Refused { status: 404 | 410, .. } => "`ls` lists those that are there".into(),
            Self::Service(ServiceError::Unavailable(_)) => "`heapstead doctor` checks the stores; give it the same flags".into(),
            Self::Local(LocalError::Heaps(_) | LocalError::Metadata(_)) => {
                "`heapstead doctor` checks the stores; give it the same flags".into()
            }
            Self::OnlyLocal { .. } => "leave `--url` out, on the machine that has the stores".into(),
            Self::BadUrl { .. } => "give the address that the server said when it started, e.g. `--url http://127.0.0.1:8420`".into(),
            Self::BadToken | Self::Refused { status: 401, .. } => {
                "give a token for this server: `--token TOKEN`, HEAPSTEAD_TOKEN or `--token-file FILE`; on its machine, `heapstead auth add` makes one".into()
            }
            Self::Unreachable { .. } => {
                "start a server with `heapstead serve --http-port 8420`, or leave `--url` out to look into the stores of this machine"
                    .into()
            }
            Self::NotHeapstead { .. } => "check `--url`: it is the address without a path".into(),
            Self::BadSidecar { .. } => "give `--engine ID`, as `heapstead heaps show` or the export said it".into(),
            _ => return None,
        })
    }
}

impl From<FlagError> for BackendError {
    fn from(error: FlagError) -> Self {
        Self::Local(error.into())
    }
}
