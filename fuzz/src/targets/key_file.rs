//! Key files: a file is refused, or the first of its keys encrypts and every key is found by its id.

use heapstead_context::Keyring;

pub fn run(text: &str) {
    let Ok(keys) = Keyring::parse(text) else { return };
    let newest = keys.newest().to_owned();
    assert!(keys.of_tenant(&newest, "acme").is_some());
    assert!(text.contains(&newest));
    assert!(!format!("{keys:?}").contains(&"ab".repeat(32)), "no key is printed");
}
