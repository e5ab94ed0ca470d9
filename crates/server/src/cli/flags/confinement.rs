//! Flags of the confinement of all workers.

use super::values::{OnOff, between, boolish};
use heapstead_engine::{
    Artifacts, ArtifactsError, Config, Namespaces, TIMER_RESOLUTION_US_DEFAULT, TIMER_RESOLUTION_US_MAX, ZygoteSettings,
};

pub const CONFINEMENT: &str = "Confinement";

#[derive(Clone, clap::Args)]
pub struct ConfinementOptions {
    /// Run V8 without compilers to machine code: slower, no `WebAssembly`, and a worker can make no memory executable. Heaps of servers with and without this flag are not interchangeable
    #[arg(long, value_name = "BOOL", env = "HEAPSTEAD_JITLESS", num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true", value_parser = boolish, action = clap::ArgAction::Set, help_heading = CONFINEMENT)]
    jitless: bool,
    /// Let V8 optimise stateful code, as it does stateless code; off: stateful code is interpreted
    #[arg(long, value_name = "on|off", env = "HEAPSTEAD_STATEFUL_JIT", default_value = "on", hide_possible_values = true, help_heading = CONFINEMENT)]
    stateful_jit: OnOff,
    /// Resolution of every clock that code can read, in microseconds, 1 to 1000000; a finer one helps code to measure the caches it shares with others
    #[arg(long, value_name = "MICROSECONDS", env = "HEAPSTEAD_TIMER_RESOLUTION_US", default_value_t = TIMER_RESOLUTION_US_DEFAULT.into(), value_parser = between::<1, { TIMER_RESOLUTION_US_MAX as u64 }>, allow_negative_numbers = true, help_heading = CONFINEMENT)]
    timer_resolution_us: u64,
    /// What to do if the kernel forbids namespaces; all other layers of confinement are always required
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_NAMESPACES", default_value = "auto", help_heading = CONFINEMENT)]
    namespaces: NamespacesChoice,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum NamespacesChoice {
    /// Run without them, and log a warning
    Auto,
    /// Do not start
    Required,
}

impl ConfinementOptions {
    /// The configuration of an engine with these flags.
    pub fn config(&self) -> Result<Config, ArtifactsError> {
        let mut config = Config::new(Artifacts::find()?);
        // Within its bounds, which fit.
        config.settings = ZygoteSettings {
            jitless: self.jitless,
            stateful_jit: self.stateful_jit.is_on(),
            timer_resolution_us: self.timer_resolution_us as u32,
        };
        config.namespaces = match self.namespaces {
            NamespacesChoice::Auto => Namespaces::Auto,
            NamespacesChoice::Required => Namespaces::Required,
        };
        Ok(config)
    }
}
