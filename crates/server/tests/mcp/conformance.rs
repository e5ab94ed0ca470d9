//! The official conformance suite.
#[test]
fn placeholder() {}
