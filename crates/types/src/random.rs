//! Random bytes from the operating system, for ids and keys.

/// Panics if the operating system has no randomness: an id or key that could be guessed must not exist. Linux always has it once it has booted.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        panic!("the operating system provides no randomness: {error}");
    }
    bytes
}
