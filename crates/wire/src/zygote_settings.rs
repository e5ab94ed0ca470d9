//! What the operator chooses for a zygote and all its workers: one word of the zygote's command line, as JSON.

/// Coarse enough to make cache timing attacks slow, and fine enough for code that measures itself.
pub const TIMER_RESOLUTION_US_DEFAULT: u32 = 100;
/// One second. A coarser clock would also delay timers noticeably.
pub const TIMER_RESOLUTION_US_MAX: u32 = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZygoteSettings {
    /// V8 generates no machine code, and workers can have no memory that is executable. Part of the engine id.
    pub jitless: bool,
    /// V8 optimises stateful code too, where that is possible. Without effect if `jitless` is set.
    pub stateful_jit: bool,
    /// Every clock that code can read advances in steps of this size.
    pub timer_resolution_us: u32,
}

impl Default for ZygoteSettings {
    fn default() -> Self {
        Self { jitless: false, stateful_jit: true, timer_resolution_us: TIMER_RESOLUTION_US_DEFAULT }
    }
}

impl ZygoteSettings {
    pub fn to_word(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// None if the word is not one that `to_word` returned.
    pub fn from_word(word: &str) -> Option<Self> {
        serde_json::from_str(word).ok().filter(|settings: &Self| (1..=TIMER_RESOLUTION_US_MAX).contains(&settings.timer_resolution_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip_and_others_are_refused() {
        let settings = ZygoteSettings { jitless: true, stateful_jit: false, timer_resolution_us: 5 };
        assert_eq!(ZygoteSettings::from_word(&settings.to_word()), Some(settings));
        for bad in [
            "",
            "{}",
            r#"{"jitless":true,"stateful_jit":true,"timer_resolution_us":0}"#,
            r#"{"jitless":true,"stateful_jit":true,"timer_resolution_us":5,"more":1}"#,
        ] {
            assert_eq!(ZygoteSettings::from_word(bad), None, "{bad}");
        }
    }
}
