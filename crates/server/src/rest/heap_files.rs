//! Export and import of heaps as files, piece by piece. Both verify the file completely: an export before its first byte is sent, an import
//! before the heap gets its name.

use super::{Rest, arguments, json};
use crate::api::to_json;
use crate::http::{self, IncomingBody, Problem, SEND_PACE};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{Stream, stream};
use heapstead_service::{Caller, Exhausted, ExportedHeap, Portion, Service, ServiceError, parse_heap_key};
use heapstead_store::S3_PART_BYTES;
use heapstead_types::EngineId;

pub const EXPORT_PATH: &str = "/api/heaps/{heap}/file";
pub const IMPORT_PATH: &str = "/api/heaps";
pub const MEDIA_TYPE: &str = "application/octet-stream";
/// The id of the engine that wrote the heap.
pub const ENGINE_HEADER: &str = "x-heapstead-engine";
/// Larger heaps are imported with `heapstead heaps import` on the server's machine.
pub const FILE_BYTES_MAX: usize = 512 << 20;
/// Maximum number of concurrent transfers.
pub const TRANSFERS_MAX: u64 = 4;
/// Memory of one transfer: the piece that is being read or written, the one that is being sent or received, and a part of an upload to S3.
pub const TRANSFER_BYTES_MAX: u64 = (2 << 20) + S3_PART_BYTES;

#[derive(Clone)]
struct Transfers {
    rest: Rest,
}

pub fn router(rest: &Rest) -> Router {
    let transfers = Transfers { rest: rest.clone() };
    let importing = transfers.clone();
    Router::new()
        .route(IMPORT_PATH, post(move |request: Request| import(importing.clone(), request)))
        .route(EXPORT_PATH, get(move |request: Request| export(transfers.clone(), request)))
}

async fn export(transfers: Transfers, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    http::require_accept(&parts.headers, MEDIA_TYPE)?;
    let caller = http::caller(&transfers.rest.edge, &parts)?;
    arguments::no_query(&parts)?;
    let key = arguments::path(&mut parts).await?.into_iter().map(|(_, key)| key).next().unwrap_or_default();
    let key = parse_heap_key("heap", &key)?;
    let slot = transfers.slot(&caller)?;
    let heap = transfers.service()?.heaps().export(&caller, key).await?;
    let engine = heap.engine.as_ref().and_then(|engine| HeaderValue::from_str(&engine.to_string()).ok());
    let named = HeaderValue::from_str(&format!("attachment; filename=\"{key}\""));
    let bytes = heap.bytes();
    let mut response = Body::from_stream(pieces(heap, slot)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.extend(engine.map(|engine| (header::HeaderName::from_static(ENGINE_HEADER), engine)));
    headers.extend(named.map(|named| (header::CONTENT_DISPOSITION, named)));
    Ok(response)
}

/// A refusal closes the connection, because the rest of the file may follow on it.
async fn import(transfers: Transfers, request: Request) -> Result<Response, Problem> {
    receive(transfers, request).await.map_err(Problem::closing)
}

async fn receive(transfers: Transfers, request: Request) -> Result<Response, Problem> {
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
    let _slot = transfers.slot(&caller)?;
    let service = transfers.service()?;
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let mut body = IncomingBody::new(body, &parts.headers, FILE_BYTES_MAX, SEND_PACE)?;
    let mut import = service.heaps().begin_import(&caller, engine, announced).await?;
    while let Some(bytes) = body.next().await? {
        import = import.write(&bytes).await?;
    }
    let imported = import.finish().await?;
    Ok(json(StatusCode::OK, to_json(&imported).to_string()))
}

/// `None` if the header is absent: the export did not name an engine.
fn engine(headers: &HeaderMap) -> Result<Option<EngineId>, Problem> {
    let Some(value) = headers.get(ENGINE_HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or("?");
    text.parse().map(Some).map_err(|error| Problem::bad_input(format!("header `{ENGINE_HEADER}`: {error}")))
}

impl Transfers {
    fn slot(&self, caller: &Caller) -> Result<Portion, Problem> {
        self.rest.edge.budgets.transfers.take(caller.budget_holder(), 1).map_err(|exhausted| {
            Problem::busy(match exhausted {
                Exhausted::ByHolder => "your other transfers of heap files take as many places as are left for other owners".to_owned(),
                Exhausted::ByAll => format!("{TRANSFERS_MAX} heap files are being transferred, which is the maximum"),
            })
        })
    }

    fn service(&self) -> Result<&Service, Problem> {
        self.rest
            .edge
            .service()
            .ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "this server runs in stateless mode (`--stateless`) and stores no heaps"))
    }
}

/// The file, read while it is sent. It holds its transfer slot until its last piece is read, or the connection closes: a client that has that
/// piece may ask for another file at once.
fn pieces(heap: ExportedHeap, slot: Portion) -> impl Stream<Item = Result<Vec<u8>, ServiceError>> {
    stream::try_unfold((heap, 0, Some(slot)), |(heap, offset, slot)| async move {
        if offset == heap.bytes() {
            return Ok(None);
        }
        let piece = heap.piece(offset).await?;
        let next = offset + piece.len() as u64;
        let slot = slot.filter(|_| next < heap.bytes());
        Ok(if piece.is_empty() { None } else { Some((piece, (heap, next, slot))) })
    })
}
