//! Names for sessions that the user did not name: easy to read, type and tell apart.

use heapstead_types::random_bytes;

const FIRST: [&str; 32] = [
    "amber", "bold", "brave", "brisk", "bright", "calm", "clever", "cosy", "eager", "early", "fair", "fleet", "gentle", "glad", "green",
    "happy", "keen", "kind", "light", "lively", "lucky", "merry", "mild", "neat", "proud", "quick", "quiet", "silver", "sunny", "swift",
    "warm", "wise",
];
const SECOND: [&str; 32] = [
    "badger", "beaver", "bison", "crane", "curlew", "deer", "dolphin", "eagle", "falcon", "ferret", "finch", "fox", "gull", "hare", "hawk",
    "heron", "ibex", "jackdaw", "kestrel", "lark", "lynx", "marten", "mole", "moose", "newt", "otter", "owl", "raven", "robin", "seal",
    "stoat", "wren",
];

/// A name such as `repl-brave-otter`; later attempts have a number too, because the owner has a session with the first one.
pub fn invented(attempt: u32) -> String {
    let [first, second, low, high] = random_bytes();
    let name = format!("repl-{}-{}", FIRST[usize::from(first) % FIRST.len()], SECOND[usize::from(second) % SECOND.len()]);
    match attempt {
        0 => name,
        _ => format!("{name}-{}", u16::from_le_bytes([low, high])),
    }
}
