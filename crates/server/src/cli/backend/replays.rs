//! Who repeats runs: the server, or an engine of this process on the local stores.

use super::local::Local;
use super::remote::{self, Remote};
use super::{Answer, Backend, BackendError};
use crate::cli::flags::ConfinementOptions;
use crate::cli::screen::Screen;
use crate::startup::{self, StartupError};
use heapstead_engine::Engine;
use heapstead_service::TurnRange;
use heapstead_types::HeapKey;
use serde_json::{Value, json};

pub enum Replays<'a> {
    Local(&'a Local, Box<Engine>),
    Remote(&'a Remote),
}

impl Backend {
    /// For local stores, this starts an engine.
    pub async fn replays(&self, confinement: &ConfinementOptions) -> Result<Replays<'_>, BackendError> {
        Ok(match self {
            Self::Remote(remote) => Replays::Remote(remote),
            Self::Local(local) => {
                let config = confinement.config().map_err(StartupError::from)?;
                let engine = startup::start_engine(config, || Screen::new().aside("starting the engine …")).await?;
                Replays::Local(local, Box::new(engine))
            }
        })
    }
}

impl Replays<'_> {
    pub async fn execution(&self, id: &str) -> Answer {
        match self {
            Self::Local(local, engine) => local.replay_execution(id, engine).await,
            Self::Remote(remote) => remote.post(&remote::execution(id, "/replay"), Value::Null).await,
        }
    }

    pub async fn upgrade_heap(&self, heap: HeapKey) -> Answer {
        match self {
            Self::Local(local, engine) => local.upgrade_heap(heap, engine).await,
            Self::Remote(remote) => remote.post(&format!("/api/heaps/{heap}/upgrade"), Value::Null).await,
        }
    }

    pub async fn session(&self, handle: &str, range: TurnRange) -> Answer {
        match self {
            Self::Local(local, engine) => local.replay_session(handle, range, engine).await,
            Self::Remote(remote) => {
                let body = json!({ "from": range.from, "to": range.to });
                remote.post(&remote::session(handle, "/replay"), body).await
            }
        }
    }
}
