//! A remote server, through its REST API.

use super::{Answer, BackendError, HeapFile};
use crate::cli::flags::WhereOptions;
use crate::rest::ENGINE_HEADER;
use heapstead_store::verify;
use heapstead_types::HeapKey;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{self, HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, Url};
use serde_json::Value;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Read timeout, longer than the server waits for output before it responds.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Characters of an unexpected response that the error repeats.
const SHOWN_CHARS_MAX: usize = 200;

#[derive(Clone)]
pub struct Remote {
    client: Client,
    url: Url,
}

impl Remote {
    /// The server that the options name.
    pub fn of(options: &WhereOptions) -> Result<Self, BackendError> {
        Self::new(options.url.as_deref().unwrap_or_default(), token(options)?.as_deref())
    }

    fn new(text: &str, token: Option<&str>) -> Result<Self, BackendError> {
        let bad = |why: &str| BackendError::BadUrl { url: text.to_owned(), why: why.to_owned() };
        let url = Url::parse(text).map_err(|error| bad(&format!("it is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("it must begin with http:// or https://"));
        }
        let Some(host) = url.host_str() else { return Err(bad("it names no host")) };
        if url.path() != "/" || url.query().is_some() {
            return Err(bad("it has a path; only scheme, host and port are expected"));
        }
        // TLS needs a process-wide crypto provider. If one is already installed, it stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT);
        let is_loopback =
            host == "localhost" || host.trim_matches(['[', ']']).parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        if let Some(token) = token {
            builder = builder.default_headers(HeaderMap::from_iter([(header::AUTHORIZATION, authorization(token)?)]));
        }
        if is_loopback {
            // A proxy would resolve localhost to its own machine.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| bad(&innermost_cause(&error)))?;
        Ok(Self { client, url })
    }

    pub async fn get(&self, path: &str, parameters: &[(&str, Option<String>)]) -> Answer {
        self.json(self.client.get(self.with_query(path, parameters))).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        let request = self.client.post(self.at(path));
        self.json(if body.is_null() { request } else { request.header("content-type", "application/json").body(body.to_string()) }).await
    }

    pub async fn delete(&self, path: &str, parameters: &[(&str, Option<String>)]) -> Answer {
        self.json(self.client.delete(self.with_query(path, parameters))).await
    }

    pub async fn export(&self, key: HeapKey) -> Result<HeapFile, BackendError> {
        let response = self.send(self.client.get(self.at(&format!("/api/heaps/{key}/file")))).await?;
        let engine = response.headers().get(ENGINE_HEADER).and_then(|engine| engine.to_str().ok()?.parse().ok());
        let bytes = Vec::from(response.bytes().await.map_err(|error| self.unreachable(&error))?);
        verify(&bytes, &key).map_err(BackendError::Damaged)?;
        Ok(HeapFile { bytes, engine })
    }

    pub async fn import(&self, HeapFile { bytes, engine }: HeapFile) -> Answer {
        let request = self.client.post(self.at("/api/heaps")).header("content-type", "application/octet-stream");
        let request = engine.iter().fold(request, |request, engine| request.header(ENGINE_HEADER, engine.to_string()));
        self.json(request.body(bytes)).await
    }

    fn with_query(&self, path: &str, parameters: &[(&str, Option<String>)]) -> Url {
        let mut url = self.at(path);
        for (name, value) in parameters {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, value);
            }
        }
        url
    }

    fn at(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(path);
        url
    }

    async fn json(&self, request: RequestBuilder) -> Answer {
        let text = self.send(request).await?.text().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_str(&text).map_err(|_| self.not_heapstead(&text))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, BackendError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let problem: Value = serde_json::from_str(&text).unwrap_or_default();
        match problem["detail"].as_str() {
            Some(detail) => Err(BackendError::Refused { status: status.as_u16(), detail: detail.to_owned() }),
            None => Err(self.not_heapstead(&format!("{status} {text}"))),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> BackendError {
        BackendError::Unreachable { url: self.url.to_string(), why: innermost_cause(error) }
    }

    fn not_heapstead(&self, text: &str) -> BackendError {
        BackendError::NotHeapstead { url: self.url.to_string(), why: text.chars().take(SHOWN_CHARS_MAX).collect() }
    }
}

/// The token for the server, from the flag or from the file.
fn token(options: &WhereOptions) -> Result<Option<String>, BackendError> {
    let Some(file) = options.token_file.as_ref().filter(|_| options.token.is_none()) else { return Ok(options.token.clone()) };
    let text = std::fs::read_to_string(file).map_err(|error| BackendError::File { what: "read", path: file.clone(), error })?;
    Ok(Some(text.trim().to_owned()))
}

/// Marked as sensitive, so that it is not shown in debug output.
fn authorization(token: &str) -> Result<HeaderValue, BackendError> {
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| is_token).ok_or(BackendError::BadToken)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The path of an execution. The id is escaped, so that it stays one segment.
pub fn execution(id: &str, rest: &str) -> String {
    format!("/api/executions/{}{rest}", utf8_percent_encode(id, NON_ALPHANUMERIC))
}

/// Like [`execution`], for a session.
pub fn session(handle: &str, rest: &str) -> String {
    format!("/api/sessions/{}{rest}", utf8_percent_encode(handle, NON_ALPHANUMERIC))
}

/// The message of the innermost cause, which is the specific one.
fn innermost_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
