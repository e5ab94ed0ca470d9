//! Export and import of heaps as files. Both verify the file completely.

use super::{Rest, arguments, json};
use crate::api::to_json;
use crate::http::{self, Problem};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use bytes::Bytes;
use heapstead_service::{Service, parse_heap_key};
use heapstead_types::EngineId;
use http_body_util::BodyExt;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub const EXPORT_PATH: &str = "/api/heaps/{heap}/file";
pub const IMPORT_PATH: &str = "/api/heaps";
pub const MEDIA_TYPE: &str = "application/octet-stream";
/// The id of the engine that wrote the heap.
pub const ENGINE_HEADER: &str = "x-heapstead-engine";
/// Files are held in memory during a transfer. For larger heaps, run `heapstead heaps import` on the server's machine.
pub const FILE_BYTES_MAX: usize = 512 << 20;
/// Maximum number of concurrent transfers.
const TRANSFERS_MAX: usize = 4;

#[derive(Clone)]
struct Transfers {
    rest: Rest,
    slots: Arc<Semaphore>,
}

pub fn router(rest: &Rest) -> Router {
    let transfers = Transfers { rest: rest.clone(), slots: Arc::new(Semaphore::new(TRANSFERS_MAX)) };
    let importing = transfers.clone();
    Router::new()
        .route(IMPORT_PATH, post(move |request: Request| import(importing.clone(), request)))
        .layer(middleware::from_fn_with_state(FILE_BYTES_MAX, http::buffered))
        .route(EXPORT_PATH, get(move |request: Request| export(transfers.clone(), request)))
}

async fn export(transfers: Transfers, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    http::require_accept(&parts.headers, MEDIA_TYPE)?;
    let caller = http::caller(&transfers.rest.edge, &parts)?;
    arguments::no_query(&parts)?;
    let key = arguments::path(&mut parts).await?.into_iter().map(|(_, key)| key).next().unwrap_or_default();
    let key = parse_heap_key("heap", &key)?;
    let slot = transfers.slot()?;
    let heap = transfers.service()?.heaps().export(&caller, key).await?;
    let engine = heap.engine().and_then(|engine| HeaderValue::from_str(&engine.to_string()).ok());
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{key}\""));
    let file = Bytes::from_owner(OutgoingFile { file: heap.into_file(), _slot: slot });
    let mut response = Body::from(file).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(engine.map(|engine| (header::HeaderName::from_static(ENGINE_HEADER), engine)));
    headers.extend(named.map(|named| (header::CONTENT_DISPOSITION, named)));
    Ok(response)
}

async fn import(transfers: Transfers, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    http::require_accept(&parts.headers, super::JSON)?;
    let caller = http::caller(&transfers.rest.edge, &parts)?;
    arguments::no_query(&parts)?;
    let content_type = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !content_type.eq_ignore_ascii_case(MEDIA_TYPE) {
        let detail = format!("`Content-Type` is `{}`: expected {MEDIA_TYPE}", content_type.chars().take(80).collect::<String>());
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    }
    let engine = engine(&parts.headers)?;
    let _slot = transfers.slot()?;
    let service = transfers.service()?;
    let file = body.collect().await.map_err(|error| Problem::bad_input(format!("the body can't be read: {error}")))?.to_bytes();
    let imported = service.heaps().import(&caller, file.into(), engine).await?;
    Ok(json(StatusCode::OK, to_json(&imported).to_string()))
}

/// `None` if the header is absent: the export did not name an engine.
fn engine(headers: &HeaderMap) -> Result<Option<EngineId>, Problem> {
    let Some(value) = headers.get(ENGINE_HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    text.parse().map(Some).map_err(|error| Problem::bad_input(format!("header `{ENGINE_HEADER}`: {error}")))
}

impl Transfers {
    fn slot(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let slot = self.slots.clone().try_acquire_owned();
        slot.map_err(|_| Problem::busy(format!("{TRANSFERS_MAX} heap files are being transferred, which is the maximum")))
    }

    fn service(&self) -> Result<&Service, Problem> {
        self.rest
            .edge
            .service()
            .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "this server runs in stateless mode (`--stateless`) and stores no heaps"))
    }
}

/// A file that is being sent. It holds its transfer slot until it is sent or the connection closes.
struct OutgoingFile {
    file: Vec<u8>,
    _slot: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for OutgoingFile {
    fn as_ref(&self) -> &[u8] {
        &self.file
    }
}
