//! Heaps in a bucket, configured by flags alone: for one run, for a server with a cache, and inspected from the command line.

use crate::common::{Place, Ran};
use crate::fixture::{Folders, Server};
use crate::s3_server::{self, S3Server};
use serde_json::json;

/// Flags for a bucket of the test server, independent of the environment.
fn flags(server: &S3Server, bucket: &str) -> Vec<String> {
    let endpoint = format!("http://127.0.0.1:{}", server.port);
    let values = [
        ("--s3-bucket", bucket),
        ("--s3-endpoint", &endpoint),
        ("--s3-region", "eu-central-1"),
        ("--s3-access-key-id", "id"),
        ("--s3-secret-access-key", "secret"),
        ("--s3-session-token", "token"),
    ];
    let mut flags: Vec<_> = values.iter().flat_map(|(flag, value)| [(*flag).to_owned(), (*value).to_owned()]).collect();
    flags.extend(["--s3-path-style".to_owned(), "--s3-allow-http".to_owned()]);
    flags
}

fn ran(place: &Place, arguments: &[&str], flags: &[String]) -> Ran {
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    place.ran([arguments, &flags].concat())
}

#[test]
fn a_run_continues_from_a_heap_in_a_bucket() {
    let server = s3_server::start();
    let (place, flags) = (Place::new(), flags(server, &server.new_bucket()));
    let first = ran(&place, &["run", "-e", "let n = 41"], &flags);
    let key = first.heap().unwrap_or_else(|| panic!("{first:?}"));
    let second = ran(&place, &["run", "-e", "++n", "--heap", &key, "--on-missing-heap", "fail"], &flags);
    assert_eq!((second.code, second.out.as_str()), (Some(0), "42\n"), "{second:?}");
    let listed = ran(&place, &["heaps", "ls", "--json"], &flags).json();
    assert_eq!(listed["heaps"].as_array().map(Vec::len), Some(2), "{listed}");
    let shown = ran(&place, &["heaps", "show", &key, "--json"], &flags).json();
    assert!(shown["engine"].as_str().is_some_and(|engine| engine.starts_with("v8-")), "{shown}");
    assert!(!place.heaps().exists(), "no heap is in the folder");
}

#[tokio::test]
async fn a_server_stores_heaps_in_a_bucket_and_caches_them() {
    let s3 = s3_server::start();
    let (folders, flags) = (Folders::new(), flags(s3, &s3.new_bucket()));
    let cache = folders.path().join("cache");
    let mut arguments: Vec<_> = flags.iter().map(String::as_str).collect();
    arguments.extend(["--cache-dir", cache.to_str().expect("a name in UTF-8"), "--cache-max-mb", "64"]);
    let server = Server::start_with(&folders, &arguments);
    let first = server.run("let n = 41").await;
    let key = first["heap"].as_str().unwrap_or_else(|| panic!("{first}"));
    // Each owner has a folder of copies.
    let has_copy = std::fs::read_dir(&cache).expect("a folder").any(|folder| folder.expect("a folder").path().join(key).is_file());
    assert!(has_copy && !folders.heaps().join(key).exists());
    let second = server.run_with(json!({ "code": "++n", "heap": key, "on_missing_heap": "fail" })).await;
    assert_eq!(second["result"], "42", "{second}");
    // From the bucket alone, without the server or its cache.
    let exported = ran(&Place::new(), &["heaps", "show", key, "--json"], &flags);
    assert_eq!(exported.json()["heap"], key, "{exported:?}");
}

#[test]
fn doctor_checks_the_bucket() {
    let server = s3_server::start();
    let (place, bucket) = (Place::new(), server.new_bucket());
    let good = ran(&place, &["doctor", "--cache-dir", "cache"], &flags(server, &bucket));
    assert_eq!(good.code, Some(0), "{good:?}");
    for part in [format!("✓ S3: the bucket `{bucket}` can be written to and read"), "✓ heap cache: ".into(), "✓ database: ".into()] {
        assert!(good.out.contains(&part), "`{part}` is not in {good:?}");
    }
    let bad = ran(&place, &["doctor"], &flags(server, "no-such-bucket"));
    assert_eq!(bad.code, Some(1), "{bad:?}");
    assert!(bad.out.contains("✗ S3: ") && bad.out.contains("no-such-bucket") && bad.out.contains("→ check `--s3-bucket`"), "{bad:?}");
    let refused = place.ran(["doctor", "--s3-bucket", "bucket", "--s3-endpoint", "http://127.0.0.1:1"]);
    assert!(refused.out.contains("✗ S3: ") && refused.out.contains("is not https"), "{refused:?}");
}
