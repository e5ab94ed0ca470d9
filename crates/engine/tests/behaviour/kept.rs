//! Heaps of earlier builds still load: changes to the base heap's JavaScript and new natives do not invalidate them.
//!
//! `tests/kept` contains heaps as the store writes them, each with its sidecar. `HEAPSTEAD_KEEP=1 cargo test … kept` adds the heap of this
//! build. Do that before a release if the base heap has changed.

use super::support::{Chain, engine};
use heapstead_engine::{Engine, HeapImage};
use std::path::{Path, PathBuf};

/// Magic and checksum before the payload: see `crates/store/src/heaps/heap_file.rs`.
const HEADER_BYTES: usize = 42;

/// How many readings of two clocks, in microseconds, are not a multiple of 100.
const READINGS_BETWEEN_STEPS: &str = "(() => { let count = 0; for (let i = 0; i < 5000; i++) \
    for (const read of [performance.now(), new Event('x').timeStamp]) { const rest = (read * 1000) % 100; if (Math.min(rest, 100 - rest) > 1) count++; } \
    return count; })()";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kept")
}

#[tokio::test]
async fn heaps_of_earlier_builds_load_with_their_contents() {
    let engine = engine().await;
    if std::env::var_os("HEAPSTEAD_KEEP").is_some() {
        keep(&engine).await;
    }
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).expect("tests/kept") {
        let path = entry.expect("entry").path();
        if path.extension().is_some() {
            continue;
        }
        seen += 1;
        let sidecar = std::fs::read_to_string(path.with_extension("json")).expect("sidecar");
        let id = sidecar.split('"').nth(3).expect("engine").parse().expect("an engine id");
        match engine.info().check(&id) {
            Ok(()) => {
                let file = std::fs::read(&path).expect("heap");
                let image = HeapImage::from_payload(&file[HEADER_BYTES..]).expect("image");
                assert_eq!(image.key().to_string(), path.file_name().expect("name").to_string_lossy());
                let mut chain = Chain::on(&engine, Some(image));
                assert_eq!(chain.result(include_str!("values/check.js")).await, "[]", "{}", path.display());
                assert_eq!(chain.result(READINGS_BETWEEN_STEPS).await, "0", "{}: its clocks are coarse", path.display());
            }
            // Written on another architecture or V8: refused by its engine id before V8 reads it.
            Err(mismatch) => assert!(mismatch.to_string().contains("heap was written by engine"), "{mismatch}"),
        }
    }
    assert!(seen > 0, "tests/kept has no heap");
}

async fn keep(engine: &Engine) {
    let mut chain = Chain::on(engine, None);
    chain.result(include_str!("values/make.js")).await;
    let heap = chain.heap.expect("heap");
    let mut file = b"MCPV8SNAP\0".to_vec();
    file.extend_from_slice(heap.key().digest());
    file.extend(heap.payload().expect("payload"));
    let path = folder().join(heap.key().to_string());
    std::fs::create_dir_all(folder()).expect("tests/kept");
    std::fs::write(&path, file).expect("write");
    std::fs::write(path.with_extension("json"), format!("{{\"engine\":\"{}\"}}\n", engine.info().id)).expect("write");
}
