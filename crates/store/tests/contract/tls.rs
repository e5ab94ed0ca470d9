//! A bucket behind TLS: reachable only if its certificate is trusted.

use crate::place::{heap, heaps_in, settings};
use crate::{processes, s3_server};
use heapstead_store::{BlobError, HeapStoreError, S3Settings};
use std::time::Duration;

#[test]
fn a_bucket_with_a_trusted_certificate_is_reached() {
    let server = s3_server::start();
    let address = format!("s3 https://localhost:{} {}", server.tls_port, server.new_bucket());
    // In a separate process, because certificates are read once, from the path in the environment.
    processes::succeeds(processes::command(&address).env("SSL_CERT_FILE", &server.certificate).spawn().expect("process"));
}

#[test]
fn a_bucket_with_an_untrusted_certificate_is_not_reached() {
    let server = s3_server::start();
    let settings = settings(&format!("https://localhost:{}", server.tls_port), &server.new_bucket());
    let settings = S3Settings { deadline: Duration::from_secs(2), ..settings };
    let store = heaps_in(&settings);
    let get = store.get(&heap(1).0);
    assert!(matches!(get, Err(HeapStoreError::Blobs(BlobError::Unavailable { .. }))), "{get:?}");
}
