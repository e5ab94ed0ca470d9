//! Errors of commands: the cause, whether the input is wrong, and the next step.

use crate::cli::flags::FlagError;
use crate::startup::StartupError;
use heapstead_service::ServiceError;
use heapstead_store::Defect;
use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("there is no {what} at {}", path.display())]
    NoFolder { what: &'static str, flag: &'static str, path: PathBuf },
    #[error(transparent)]
    Startup(#[from] StartupError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error("`--url` is `{url}`: {why}")]
    BadUrl { url: String, why: String },
    #[error("`{what}` works only on the local stores, not through a server")]
    OnlyLocal { what: &'static str },
    #[error("`{name}` can't be the name of the session: this server does not know its callers, so it can't remember names for them")]
    NoNames { name: String },
    #[error("there is a session `{name}` already")]
    SessionExists { name: String },
    #[error("{count} of the heaps were not signed; the reasons are above")]
    NotSigned { count: usize },
    #[error("the token is empty or has invalid characters")]
    BadToken,
    #[error("no response from {url}: {why}")]
    Unreachable { url: String, why: String },
    /// The server's own message.
    #[error("{detail}")]
    Refused { status: u16, detail: String },
    #[error("the response of {url} is not from a Heapstead server: {why}")]
    NotHeapstead { url: String, why: String },
    #[error("the heap of the last turn can't be stored; the next turn gets a warning with the reason")]
    NotStored,
    #[error("the heap was not received completely: {0}")]
    Damaged(Defect),
    #[error("{} can't be {what}: {error}", path.display())]
    File { what: &'static str, path: PathBuf, error: io::Error },
    #[error("{} does not say which engine wrote the heap: {why}", sidecar.display())]
    BadSidecar { sidecar: PathBuf, why: String },
}

impl BackendError {
    /// Whether the command's input is wrong.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Startup(StartupError::Flags(_))
                | Self::BadUrl { .. }
                | Self::BadToken
                | Self::OnlyLocal { .. }
                | Self::NoNames { .. }
                | Self::SessionExists { .. }
                | Self::BadSidecar { .. }
                | Self::Service(ServiceError::BadInput(_))
                | Self::Refused { status: 400, .. }
        )
    }

    pub fn next_step(&self) -> Option<String> {
        Some(match self {
            Self::NoFolder { flag, .. } => format!("name the folder with `{flag} DIR`, or a server with `--url http://127.0.0.1:8420`"),
            Self::Service(ServiceError::NotFound { what, .. }) => format!("`heapstead {what}s ls` lists the existing ones"),
            Self::Service(ServiceError::SessionEnded(_)) => "`heapstead sessions ls` lists the existing ones".into(),
            Self::Refused { status: 404 | 410, .. } => "`ls` lists the existing ones".into(),
            Self::Service(ServiceError::Unavailable(_)) => "`heapstead doctor` checks the stores; give it the same flags".into(),
            Self::Startup(StartupError::Heaps(_) | StartupError::Database(_)) => {
                "`heapstead doctor` checks the stores; give it the same flags".into()
            }
            Self::Startup(StartupError::Artifacts(_) | StartupError::Engine(_)) => {
                "`heapstead doctor` shows what is missing and how to fix it".into()
            }
            Self::OnlyLocal { .. } => "omit `--url` and run it on the machine that has the stores".into(),
            Self::NoNames { .. } => "omit the name: the id that the session can be resumed with is printed at the end".into(),
            Self::SessionExists { name } => format!("choose another name, or continue that one: `heapstead repl --session {name}`"),
            Self::BadUrl { .. } => "give the address that the server printed when it started, e.g. `--url http://127.0.0.1:8420`".into(),
            Self::BadToken | Self::Refused { status: 401, .. } => {
                "give a token for this server: `--token TOKEN`, HEAPSTEAD_TOKEN or `--token-file FILE`; on its machine, `heapstead auth add` creates one".into()
            }
            Self::Unreachable { .. } => {
                "start a server with `heapstead serve --http-port 8420`, or omit `--url` to use the local stores"
                    .into()
            }
            Self::NotHeapstead { .. } => "check `--url`: it must not have a path".into(),
            Self::BadSidecar { .. } => "give `--engine ID`, as printed by `heapstead heaps show` or by the export".into(),
            _ => return None,
        })
    }
}

impl From<FlagError> for BackendError {
    fn from(error: FlagError) -> Self {
        Self::Startup(error.into())
    }
}
