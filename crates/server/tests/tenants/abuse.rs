//! The table of abuses. Each is a function in its own file that goes on until it is stopped.

use crate::abuses::*;
use crate::fixture::torture;
use crate::place::Tenant;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::RequestBuilder;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Setting up an abuse takes seconds at most.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Abuse {
    pub name: &'static str,
    run: fn(Abuser) -> BoxFuture<'static, ()>,
}

macro_rules! abuses {
    ($($name:literal => $run:path),* $(,)?) => {
        &[$(Abuse { name: $name, run: |abuser| Box::pin($run(abuser)) }),*]
    };
}

pub const ABUSES: &[Abuse] = abuses! {
    "initialize requests of megabytes" => initialize::large,
    "more connections than a server keeps" => initialize::many,
    "queued runs with sources of megabytes" => sources::queue,
    "uploads that stall" => uploads::stall,
    "uploads that are aborted" => uploads::abort,
    "runs that fill every slot and the queue" => runs::spin,
    "runs that flood output" => runs::flood,
    "runs that fill their memory" => runs::fill_memory,
    "runs that ask for more than the maxima" => runs::exceed_maxima,
    "runs with a session header of their own each" => runs::many_lanes,
    "pages of a session log with large sources" => session_log::pages,
    "readers of exports that read nothing" => exports::idle,
    "pages of output that nobody reads" => output_pages::unread,
    "connections that send nothing" => connections::silent,
    "followers of events that read nothing" => streams::idle,
    "listeners of connections that read nothing" => streams::listen,
    "waiting calls whose clients have left" => calls::abandon,
    "calls for a result of megabytes" => calls::read_large_results,
    "requests that arrive byte by byte" => slow_requests::trickle,
    "tags, named sessions and opened sessions without end" => growth::records,
    "heaps that no server has made" => imports::forged,
    "imports that look for heaps of others" => imports::probe,
    "health checks without end" => health::poll,
    "cursors that nobody returned" => cursors::strange,
};

/// The abusive tenant, while it abuses.
#[derive(Clone)]
pub struct Abuser {
    pub tenant: Tenant,
    effect: Arc<Notify>,
}

impl Abuser {
    /// Says that the abuse is in effect: the others are measured from now on.
    pub fn in_effect(&self) {
        self.effect.notify_one();
    }

    /// Sends a request and ignores the response: refusing an abuse is right, serving it within limits too. Status 0 if there is none.
    pub async fn send(&self, method: &str, path: &str, body: Option<Value>) -> u16 {
        let request = self.tenant.request(method, path);
        status(body.into_iter().fold(request, |request, body| request.json(&body))).await
    }

    /// As `send`, of JSON that was made before.
    pub async fn send_bytes(&self, method: &str, path: &str, json: Bytes) -> u16 {
        status(self.tenant.request(method, path).header("content-type", "application/json").body(json)).await
    }

    /// The number of repetitions: the first in `make test`, the second in `make torture`.
    pub fn times(&self, short: usize, full: usize) -> usize {
        if torture() { full } else { short }
    }
}

async fn status(request: RequestBuilder) -> u16 {
    let Ok(mut response) = request.send().await else { return 0 };
    while let Ok(Some(_)) = response.chunk().await {}
    response.status().as_u16()
}

/// The abuser has threads of its own, so that the others' clients do not wait for its client.
static THREADS: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("threads for the abuser"));

/// An abuse that goes on until this is dropped.
pub struct Ongoing(tokio::task::JoinHandle<()>);

impl Abuse {
    /// Starts the abuse, and returns when it is in effect.
    pub async fn start(&self, tenant: &Tenant) -> Ongoing {
        let effect = Arc::new(Notify::new());
        let ongoing = self.begin_with(tenant, effect.clone());
        let started = tokio::time::timeout(EFFECT_TIMEOUT, effect.notified()).await;
        started.unwrap_or_else(|_| panic!("`{}` can't even be started", self.name));
        ongoing
    }

    /// As `start`, without waiting.
    pub fn begin(&self, tenant: &Tenant) -> Ongoing {
        self.begin_with(tenant, Arc::default())
    }

    fn begin_with(&self, tenant: &Tenant, effect: Arc<Notify>) -> Ongoing {
        let abuser = Abuser { tenant: Tenant { client: crate::fixture::client(), ..tenant.clone() }, effect };
        Ongoing(THREADS.spawn((self.run)(abuser)))
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Cancels what runs and waits of an abuser, so that the next abuse begins from nothing.
pub async fn clean_up(tenant: &Tenant) {
    loop {
        let (_, list) = tenant.ask("GET", "/api/executions?status=running&limit=1000", None).await;
        let running: Vec<_> =
            list["executions"].as_array().into_iter().flatten().filter_map(|item| item["execution_id"].as_str()).collect();
        if running.is_empty() {
            return;
        }
        let cancelled = running.iter().map(|id| async move {
            let path = format!("/api/executions/{id}/cancel");
            tenant.ask("POST", &path, None).await
        });
        futures_util::future::join_all(cancelled).await;
    }
}
