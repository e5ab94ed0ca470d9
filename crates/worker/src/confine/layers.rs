//! The layers of confinement that this library applies. The production library always applies all of them, and nothing that an operator or
//! a server sets can change that. A test library leaves some out, so that the benchmark can measure what they cost.

pub struct Layers {
    pub namespaces: bool,
    pub speculation_off: bool,
    /// The system calls that a worker may make: the text of `policy/seccomp.json`.
    pub policy: &'static str,
}

impl Layers {
    pub const ALL: Self = Self { namespaces: true, speculation_off: true, policy: include_str!("../../policy/seccomp.json") };
}
