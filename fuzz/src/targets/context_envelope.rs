//! Encrypted contexts: open only unchanged, in their own session and tenant.

use heapstead_context::fuzzing::{open, seal};
use heapstead_context::{Keyring, SessionId};
use crate::within;

/// The content, the byte of the envelope that is changed, what is cut off, and the session and tenant that open it.
type Changed<'a> = (&'a [u8], u16, u8, u8, u8, &'a str);

const TENANT: &str = "acme";

pub fn run(input: Result<Changed<'_>, &[u8]>) {
    let keys = Keyring::parse(&format!("one {}", "ab".repeat(32))).expect("keys");
    let session = SessionId::from_bytes([1; 32]);
    match input {
        Err(bytes) => {
            let opened = within(8 * bytes.len() + (8 << 10), || open(&keys, TENANT, &session, bytes));
            assert_eq!(opened, None, "nobody else has the key");
        }
        Ok((plain, at, with, cut, asked, tenant)) => {
            let sealed = seal(&keys, TENANT, &session, plain).expect("sealed");
            let mut changed = sealed.clone();
            let at = usize::from(at) % changed.len();
            changed[at] ^= with;
            changed.truncate(changed.len() - usize::from(cut).min(changed.len()));
            let is_it = changed == sealed && asked == 1 && tenant == TENANT;
            let opened = open(&keys, tenant, &SessionId::from_bytes([asked; 32]), &changed);
            assert_eq!(opened.as_deref(), is_it.then_some(plain));
        }
    }
}
