//! The issuer's public keys: fetched from its JWKS URL, cached, and refreshed periodically and when a JWT names an unknown key.
//!
//! Cached keys keep working while the issuer is unreachable. An unauthenticated client can name any key id, so unscheduled fetches are
//! serialised and rate-limited.

use super::keys::{Key, Keys};
use jsonwebtoken::Algorithm;
use reqwest::{Client, Url, redirect};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Maximum time that a key works after the issuer has withdrawn it.
const REFRESH: Duration = Duration::from_secs(5 * 60);
const RETRY: Duration = Duration::from_secs(10);
/// Minimum interval between fetches caused by unknown key ids.
const UNSCHEDULED_INTERVAL_MIN: Duration = Duration::from_secs(10);
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// A hundred times what issuers publish.
const SET_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("no response: {0}")]
    Unreachable(String),
    #[error("the response status is {0}")]
    Status(reqwest::StatusCode),
    #[error("the response is longer than {SET_BYTES_MAX} bytes")]
    TooLong,
    #[error("the response is not a JSON Web Key Set: {0}")]
    NotASet(serde_json::Error),
    #[error("the set has no signature key of type RSA, P-256, P-384 or Ed25519")]
    NoKeys,
}

/// Why a key could not be found.
#[derive(Debug, PartialEq, Eq)]
pub enum NoKey {
    Unknown,
    /// No key set has been fetched yet.
    Unavailable,
}

#[derive(Clone, Copy)]
struct Intervals {
    refresh: Duration,
    retry: Duration,
    unscheduled_interval_min: Duration,
}

pub struct Jwks {
    client: Client,
    url: Url,
    intervals: Intervals,
    keys: Mutex<Option<Arc<Keys>>>,
    /// Time of the last unscheduled fetch. The lock is held during a fetch.
    last_unscheduled: tokio::sync::Mutex<Option<Instant>>,
}

impl Jwks {
    /// If the issuer does not answer, the server starts anyway and keeps retrying, because the issuer may start later.
    pub async fn open(url: &Url) -> reqwest::Result<Arc<Self>> {
        Self::open_with(url, Intervals { refresh: REFRESH, retry: RETRY, unscheduled_interval_min: UNSCHEDULED_INTERVAL_MIN }).await
    }

    async fn open_with(url: &Url, intervals: Intervals) -> reqwest::Result<Arc<Self>> {
        let jwks = Arc::new(Self {
            client: client(url)?,
            url: url.clone(),
            intervals,
            keys: Mutex::default(),
            last_unscheduled: Default::default(),
        });
        let fetched = jwks.refresh().await;
        tokio::spawn(keep_fresh(Arc::downgrade(&jwks), jwks.next_delay(&fetched)));
        Ok(jwks)
    }

    pub async fn key(self: &Arc<Self>, id: Option<&str>, algorithm: Algorithm) -> Result<Key, NoKey> {
        let known = self.keys();
        if let Some(key) = known.as_ref().and_then(|keys| keys.find(id, algorithm)) {
            return Ok(key.clone());
        }
        // In a separate task, because the request that started it may be cancelled while others wait for the result.
        let jwks = self.clone();
        let _ = tokio::spawn(async move { jwks.refresh_unscheduled(known).await }).await;
        let keys = self.keys().ok_or(NoKey::Unavailable)?;
        keys.find(id, algorithm).cloned().ok_or(NoKey::Unknown)
    }

    async fn refresh_unscheduled(&self, known: Option<Arc<Keys>>) {
        let mut last = self.last_unscheduled.lock().await;
        let is_known = |keys: &Option<Arc<Keys>>| keys.as_ref().map(Arc::as_ptr) == known.as_ref().map(Arc::as_ptr);
        let too_soon = last.is_some_and(|last| last.elapsed() < self.intervals.unscheduled_interval_min);
        // Another request may have fetched newer keys while this one waited for the lock.
        if is_known(&self.keys()) && !too_soon {
            let _ = self.refresh().await;
            *last = Some(Instant::now());
        }
    }

    async fn refresh(&self) -> Result<(), FetchError> {
        let fetched = fetch(&self.client, &self.url).await;
        match fetched {
            Ok(keys) => {
                tracing::debug!(keys = keys.len(), "the issuer's keys were fetched");
                *self.keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
                Ok(())
            }
            Err(error) => {
                tracing::warn!(url = %self.url, %error, "the issuer's keys can't be fetched; cached keys keep working");
                Err(error)
            }
        }
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next_delay(&self, fetched: &Result<(), FetchError>) -> Duration {
        if fetched.is_ok() { self.intervals.refresh } else { self.intervals.retry }
    }
}

/// Ends when the keys are dropped.
async fn keep_fresh(jwks: std::sync::Weak<Jwks>, mut delay: Duration) {
    loop {
        sleep(delay).await;
        let Some(jwks) = jwks.upgrade() else { return };
        delay = jwks.next_delay(&jwks.refresh().await);
    }
}

/// Number of keys at this URL.
pub async fn probe(url: &Url) -> Result<usize, FetchError> {
    let client = client(url).map_err(|error| FetchError::Unreachable(error.to_string()))?;
    Ok(fetch(&client, url).await?.len())
}

fn client(url: &Url) -> reqwest::Result<Client> {
    // TLS needs a process-wide crypto provider. If one is already installed, it stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // The keys are trusted because of their URL, so redirects are not followed.
    let builder = Client::builder().timeout(FETCH_TIMEOUT).redirect(redirect::Policy::none());
    // A proxy would resolve localhost to its own machine.
    if is_this_machine(url) { builder.no_proxy() } else { builder }.build()
}

pub fn is_this_machine(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

async fn fetch(client: &Client, url: &Url) -> Result<Keys, FetchError> {
    let unreachable = |error: reqwest::Error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        FetchError::Unreachable(cause.to_string())
    };
    let mut response = client.get(url.clone()).header("accept", "application/json").send().await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status()));
    }
    let mut json = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if json.len() + chunk.len() > SET_BYTES_MAX {
            return Err(FetchError::TooLong);
        }
        json.extend_from_slice(&chunk);
    }
    let keys = Keys::read(&json).map_err(FetchError::NotASet)?;
    if keys.len() == 0 { Err(FetchError::NoKeys) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::{Router, routing::get};
    use serde_json::{Value, json};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tokio::sync::watch;

    /// A test issuer: the keys it publishes, and how often they were fetched.
    struct Issuer {
        url: Url,
        published: watch::Sender<Value>,
        fetches: Arc<AtomicUsize>,
    }

    fn set(ids: &[&str]) -> Value {
        json!({ "keys": ids.iter().map(|id| json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": "AAAA" })).collect::<Vec<_>>() })
    }

    async fn issuer(ids: &[&str]) -> Issuer {
        let (published, seen) = watch::channel(set(ids));
        let fetches = Arc::new(AtomicUsize::new(0));
        let count = fetches.clone();
        let answer = move || {
            count.fetch_add(1, SeqCst);
            let text = seen.borrow().to_string();
            async move { text }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/keys", listener.local_addr().expect("an address")).parse().expect("an address");
        let routes = Router::new().route("/keys", get(answer));
        let shutdown = crate::http::Shutdown::new(tokio_util::sync::CancellationToken::new());
        tokio::spawn(async move { crate::http::serve(listener, routes, 100, &shutdown).await });
        Issuer { url, published, fetches }
    }

    fn intervals(refresh_ms: u64, unscheduled_ms: u64) -> Intervals {
        let [refresh, unscheduled_interval_min] = [refresh_ms, unscheduled_ms].map(Duration::from_millis);
        Intervals { refresh, retry: refresh, unscheduled_interval_min }
    }

    const NEVER: u64 = 3_600_000;

    #[tokio::test]
    async fn an_unknown_key_is_fetched_once_for_all_requests_and_rate_limited() {
        let issuer = issuer(&["old"]).await;
        let jwks = Jwks::open_with(&issuer.url, intervals(NEVER, NEVER)).await.expect("opened");
        assert!(jwks.key(Some("old"), Algorithm::EdDSA).await.is_ok());
        issuer.published.send_replace(set(&["new"]));
        let requests: Vec<_> = (0..100)
            .map(|_| {
                let jwks = jwks.clone();
                tokio::spawn(async move { jwks.key(Some("new"), Algorithm::EdDSA).await.is_ok() })
            })
            .collect();
        for request in requests {
            assert!(request.await.expect("an answer"));
        }
        assert_eq!(issuer.fetches.load(SeqCst), 2);
        for unknown in 0..100 {
            assert_eq!(jwks.key(Some(&unknown.to_string()), Algorithm::EdDSA).await.err(), Some(NoKey::Unknown));
        }
        assert_eq!(issuer.fetches.load(SeqCst), 2);
        assert_eq!(jwks.key(Some("old"), Algorithm::EdDSA).await.err(), Some(NoKey::Unknown), "a withdrawn key is not accepted");
    }

    #[tokio::test]
    async fn a_fetch_continues_when_its_request_is_cancelled() {
        let issuer = issuer(&["old"]).await;
        let jwks = Jwks::open_with(&issuer.url, intervals(NEVER, NEVER)).await.expect("opened");
        issuer.published.send_replace(set(&["new"]));
        // Polled once and then dropped.
        let mut cancelled = Box::pin(jwks.key(Some("new"), Algorithm::EdDSA));
        assert!(futures_util::poll!(&mut cancelled).is_pending());
        drop(cancelled);
        assert!(jwks.key(Some("new"), Algorithm::EdDSA).await.is_ok());
        assert_eq!(issuer.fetches.load(SeqCst), 2);
    }

    #[tokio::test]
    async fn keys_are_refreshed_periodically_and_kept_on_an_invalid_response() {
        let issuer = issuer(&["old"]).await;
        let jwks = Jwks::open_with(&issuer.url, intervals(20, NEVER)).await.expect("opened");
        let fetched_again = async |times: usize| {
            let until = issuer.fetches.load(SeqCst) + times;
            while issuer.fetches.load(SeqCst) < until {
                tokio::task::yield_now().await;
            }
        };
        for invalid in [json!({ "keys": [] }), json!("<html>"), json!({ "keys": ["x".repeat(SET_BYTES_MAX)] })] {
            issuer.published.send_replace(invalid);
            fetched_again(3).await;
            assert!(jwks.key(Some("old"), Algorithm::EdDSA).await.is_ok());
        }
        issuer.published.send_replace(set(&["new"]));
        fetched_again(3).await;
        assert!(jwks.key(Some("new"), Algorithm::EdDSA).await.is_ok() && jwks.key(Some("old"), Algorithm::EdDSA).await.is_err());
    }

    #[tokio::test]
    async fn without_a_key_set_authentication_is_unavailable() {
        let closed_port = "http://127.0.0.1:1/keys".parse().expect("an address");
        let jwks = Jwks::open_with(&closed_port, intervals(NEVER, 0)).await.expect("opened");
        assert_eq!(jwks.key(Some("any"), Algorithm::EdDSA).await.err(), Some(NoKey::Unavailable));
        assert!(matches!(probe(&closed_port).await, Err(FetchError::Unreachable(_))));
    }
}
