//! Flags of live sessions: opened sessions whose heap stays in memory between turns.

use super::values::{OnOff, between};
use heapstead_engine::memory_mb_of_machine;
use heapstead_service::{Durability, LivePolicy};
use std::time::Duration;

const LIVE: &str = "Live sessions";

#[derive(clap::Args)]
pub struct LiveOptions {
    /// Keep the heap of an opened session in memory between its turns, where the kernel allows it
    #[arg(long, value_name = "on|off", env = "HEAPSTEAD_LIVE", default_value = "on", hide_possible_values = true, help_heading = LIVE)]
    live: OnOff,
    /// What a turn of an opened session waits for before it is acknowledged; a call may ask for the other
    #[arg(long, value_name = "WHAT", env = "HEAPSTEAD_SESSION_DURABILITY", default_value = "journal", help_heading = LIVE)]
    session_durability: DurabilityChoice,
    /// Memory of all live sessions, 1 to 1073741824; of more, the least recently used ones are evicted; default: a quarter of the machine's memory
    #[arg(long, value_name = "MB", env = "HEAPSTEAD_LIVE_MAX_MB", value_parser = between::<1, { 1 << 30 }>, allow_negative_numbers = true, help_heading = LIVE)]
    live_max_mb: Option<u64>,
    /// Live sessions of one owner, 1 to 1000000; of more, its least recently used ones are evicted
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_LIVE_MAX_PER_OWNER", default_value_t = 1000, value_parser = between::<1, 1_000_000>, allow_negative_numbers = true, help_heading = LIVE)]
    live_max_per_owner: u64,
    /// Seconds after which a live session that is not used is evicted, 1 to 31536000
    #[arg(long, value_name = "SECONDS", env = "HEAPSTEAD_LIVE_IDLE_SECS", default_value_t = 900, value_parser = between::<1, 31_536_000>, allow_negative_numbers = true, help_heading = LIVE)]
    live_idle_secs: u64,
    /// Checkpoints that are written at the same time, 1 to 64
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_CHECKPOINT_CONCURRENCY", default_value_t = 1, value_parser = between::<1, 64>, allow_negative_numbers = true, help_heading = LIVE)]
    checkpoint_concurrency: u64,
    /// Turns since the last checkpoint of a session after which the next turn waits for one, 1 to 100000
    #[arg(long, value_name = "COUNT", env = "HEAPSTEAD_JOURNAL_TAIL_TURNS", default_value_t = 100, value_parser = between::<1, 100_000>, allow_negative_numbers = true, help_heading = LIVE)]
    journal_tail_turns: u64,
    /// Run time of the turns since the last checkpoint of a session, in seconds, after which the next turn waits for one, 1 to 31536000
    #[arg(long, value_name = "SECONDS", env = "HEAPSTEAD_JOURNAL_TAIL_SECS", default_value_t = 60, value_parser = between::<1, 31_536_000>, allow_negative_numbers = true, help_heading = LIVE)]
    journal_tail_secs: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum DurabilityChoice {
    /// Its entry in the journal; the heap is stored later
    Journal,
    /// Its heap too
    Snapshot,
}

impl LiveOptions {
    pub fn policy(&self) -> LivePolicy {
        LivePolicy {
            is_on: self.live.is_on(),
            memory_mb_max: self.memory_mb_max(),
            per_owner_max: self.live_max_per_owner as usize,
            idle: Duration::from_secs(self.live_idle_secs),
            checkpoints_max: self.checkpoint_concurrency as usize,
            tail_turns_max: self.journal_tail_turns,
            tail_run_time_max: Duration::from_secs(self.journal_tail_secs),
        }
    }

    pub fn durability(&self) -> Durability {
        match self.session_durability {
            DurabilityChoice::Journal => Durability::Journal,
            DurabilityChoice::Snapshot => Durability::Snapshot,
        }
    }

    pub fn memory_mb_max(&self) -> u64 {
        self.live_max_mb.unwrap_or_else(|| memory_mb_of_machine() / 4)
    }
}
