//! The pages of docs/reference match the code.

use crate::common::Place;
use std::path::Path;

fn check(page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(format!("{page}.md"));
    let ran = Place::new().ran(["reference", page]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let committed = std::fs::read_to_string(&path).expect("the page");
    let line = committed.lines().zip(ran.out.lines()).position(|(old, new)| old != new);
    assert!(committed == ran.out, "{} is out of date, first in line {:?}: run `make reference`", path.display(), line.map(|line| line + 1));
}

#[test]
fn flags() {
    check("flags");
}

#[test]
fn tools() {
    check("tools");
}

#[test]
fn errors() {
    check("errors");
}

#[test]
fn environment_variables_do_not_change_the_pages() {
    let place = Place::new();
    let with = place.command(["reference", "flags"]).env("HEAPSTEAD_S3_BUCKET", "mine").output().expect("it runs");
    assert!(!String::from_utf8_lossy(&with.stdout).contains("mine"));
}
