//! A time in milliseconds, written as ISO 8601 in UTC (`2026-11-16T02:21:44.120Z`).

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an ISO 8601 time, such as 2026-11-16T02:21:44.120Z")]
pub struct InvalidTimestamp(String);

impl Timestamp {
    /// Clamps to the years 1970 to 9999.
    pub fn from_ms(ms: i64) -> Self {
        const LAST_MS: i64 = 253_402_207_200_000;
        Self(ms.clamp(0, LAST_MS))
    }

    pub fn ms(self) -> i64 {
        self.0
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| InvalidTimestamp(text.chars().take(40).collect()))?;
        Ok(Self::from_ms(parsed.as_millisecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => Err(fmt::Error),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_milliseconds_in_utc_and_read_back() {
        for (ms, text) in [(0, "1970-01-01T00:00:00.000Z"), (1_794_796_904_120, "2026-11-16T02:41:44.120Z")] {
            assert_eq!(Timestamp::from_ms(ms).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp::from_ms(ms)));
        }
        assert_eq!("2026-11-16T03:41:44.12+01:00".parse(), Ok(Timestamp::from_ms(1_794_796_904_120)));
        assert!("yesterday".parse::<Timestamp>().is_err());
        for extreme in [i64::MIN, -1, i64::MAX] {
            let text = Timestamp::from_ms(extreme).to_string();
            assert_eq!(text.parse(), Ok(Timestamp::from_ms(extreme)));
        }
    }
}
