//! URIs of resources: one that can be subscribed to names its topic in exactly one way.

use heapstead_server::fuzzing::subscription;

pub fn run(uri: &str) {
    if let Some(written) = subscription(uri) {
        assert_eq!(written, uri);
    }
}
