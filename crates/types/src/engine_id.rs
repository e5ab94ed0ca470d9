//! Identifies what a heap needs to load: the V8 build, its flags, the architecture and the native functions it refers to.
//!
//! Written as `v8-14.6.202.34-node.18/x86_64/flags-1a2b3c4d/natives-31-5e6f7a8b`. Natives are only ever appended to the list, so a heap
//! written with the first 31 of them loads into an engine that has 40, provided that the first 31 are the same.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EngineId {
    /// V8's version string with the embedder's suffix.
    pub v8: String,
    pub arch: String,
    /// Digest of the V8 flags that affect the heap layout.
    pub flags: u32,
    pub natives: u32,
    /// Digest of the names of the first `natives` native functions.
    pub natives_digest: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("heap was written by engine {heap}, this is {engine}{}", self.hint())]
pub struct EngineMismatch {
    pub heap: String,
    pub engine: String,
}

impl EngineMismatch {
    /// The cause, if an operator can remove it.
    fn hint(&self) -> &'static str {
        match (self.heap.parse::<EngineId>(), self.engine.parse::<EngineId>()) {
            (Ok(heap), Ok(engine)) if heap.v8 == engine.v8 && heap.arch == engine.arch && heap.flags != engine.flags => {
                ": they run with different V8 flags (`--jitless`)"
            }
            _ => "",
        }
    }
}

impl EngineId {
    /// Checks whether a heap written by `heap` can be restored here. `digest_of_first(n)` digests the first n native names of this engine.
    pub fn check(&self, heap: &EngineId, digest_of_first: impl Fn(u32) -> Option<u32>) -> Result<(), EngineMismatch> {
        let same_build = self.v8 == heap.v8 && self.arch == heap.arch && self.flags == heap.flags;
        if same_build && digest_of_first(heap.natives) == Some(heap.natives_digest) {
            return Ok(());
        }
        Err(EngineMismatch { heap: heap.to_string(), engine: self.to_string() })
    }
}

impl fmt::Display for EngineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { v8, arch, flags, natives, natives_digest } = self;
        write!(f, "v8-{v8}/{arch}/flags-{flags:08x}/natives-{natives}-{natives_digest:08x}")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an engine id: expected v8-VERSION/ARCHITECTURE/flags-HEX/natives-COUNT-HEX, as `heapstead heaps show` prints it")]
pub struct InvalidEngineId(String);

impl FromStr for EngineId {
    type Err = InvalidEngineId;

    fn from_str(text: &str) -> Result<Self, InvalidEngineId> {
        let parse = || {
            let mut parts = text.split('/');
            let v8 = parts.next()?.strip_prefix("v8-")?;
            let arch = parts.next()?;
            let flags = parts.next()?.strip_prefix("flags-")?;
            let (natives, digest) = parts.next()?.strip_prefix("natives-")?.split_once('-')?;
            if parts.next().is_some() {
                return None;
            }
            Some(Self {
                v8: v8.to_owned(),
                arch: arch.to_owned(),
                flags: u32::from_str_radix(flags, 16).ok()?,
                natives: natives.parse().ok()?,
                natives_digest: u32::from_str_radix(digest, 16).ok()?,
            })
        };
        parse().ok_or_else(|| InvalidEngineId(text.chars().take(200).collect()))
    }
}

/// A short stable digest (FNV-1a) for lists of names. It distinguishes builds; it is not a security measure.
pub fn digest<'a>(names: impl IntoIterator<Item = &'a str>) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for name in names {
        for byte in name.bytes().chain([0]) {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(names: &[&str]) -> EngineId {
        EngineId {
            v8: "14.6".into(),
            arch: "x86_64".into(),
            flags: 7,
            natives: names.len() as u32,
            natives_digest: digest(names.iter().copied()),
        }
    }

    fn check(heap: &EngineId, names: &[&str]) -> Result<(), EngineMismatch> {
        engine(names).check(heap, |n| names.get(..n as usize).map(|first| digest(first.iter().copied())))
    }

    #[test]
    fn an_engine_with_appended_natives_loads_older_heaps() {
        let heap = engine(&["a", "b"]);
        assert_eq!(check(&heap, &["a", "b"]), Ok(()));
        assert_eq!(check(&heap, &["a", "b", "c"]), Ok(()));
        assert!(check(&heap, &["a"]).is_err());
        assert!(check(&heap, &["b", "a"]).is_err());
        assert!(check(&EngineId { v8: "14.7".into(), ..heap.clone() }, &["a", "b"]).is_err());
        assert!(check(&EngineId { flags: 8, ..heap }, &["a", "b"]).is_err());
    }

    #[test]
    fn an_id_round_trips() {
        let id = engine(&["a", "b"]);
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "v8-1", "v8-1/x/flags-zz/natives-1-2", "v8-1/x/flags-1/natives-1-2/more"] {
            assert!(bad.parse::<EngineId>().is_err(), "{bad}");
        }
    }
}
