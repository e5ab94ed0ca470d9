//! What a run reads from outside, recorded so that the run can be repeated exactly. Randomness is not in it: it follows from the seed of the run.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | format, 1 |
//! | 1 | what could not be recorded, a bit for each [`Gap`] |
//! | 2–9 | when the run began, in microseconds since 1970, little endian |
//! | 10– | clock readings, in microseconds since the run began: for each value that was read, its difference to the value before and how often in a row it was read, as LEB128 numbers |

use crate::leb128::{push_number, take_number};

/// A run that reads more can't be repeated.
pub const INPUTS_BYTES_MAX: usize = 1 << 20;

const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 10;

/// An input that is not recorded, so that a run that read it can't be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// A `WeakRef` was dereferenced: the outcome depends on when garbage was collected.
    WeakRef = 1,
    /// Headers of the request were read, whose values are never stored.
    Headers = 2,
    /// The inputs are longer than [`INPUTS_BYTES_MAX`].
    TooLong = 4,
    /// The run was stopped: its worker, which has the inputs, was killed.
    Stopped = 8,
    /// The worker or the server failed, so that the inputs are lost, or don't lead to what is recorded of the run.
    Lost = 16,
    /// Members of a weak collection were shown: which there are, and in which order, depends on when garbage was collected.
    WeakMembers = 32,
    /// The run used much of the stack: whether it exceeds the limit depends on which functions were optimised.
    Stack = 64,
}

impl Gap {
    pub const ALL: [Self; 7] = [Self::WeakRef, Self::Headers, Self::TooLong, Self::Stopped, Self::Lost, Self::WeakMembers, Self::Stack];

    /// What the run did, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::WeakRef => "it dereferenced a WeakRef",
            Self::Headers => "it read `mcp.headers`, whose values are not stored",
            Self::TooLong => "it read the clock so often that the readings exceed 1 MiB",
            Self::Stopped => "it was stopped before its inputs were complete",
            Self::WeakMembers => "it showed the members of a WeakMap or WeakSet",
            Self::Stack => "it used more than half of the stack",
            Self::Lost => "it ended by a failure of its worker or of the server, before its inputs were recorded",
        }
    }
}

/// The inputs of one run, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedInputs(Vec<u8>);

impl RecordedInputs {
    /// None if this is no recording, or one in a format of a later version.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let is_recording = bytes.len() >= HEAD_BYTES && bytes.len() <= INPUTS_BYTES_MAX && bytes[0] == FORMAT;
        is_recording.then_some(Self(bytes))
    }

    /// Of a run of which nothing is known but why.
    pub fn missing(gap: Gap) -> Self {
        let mut recorder = InputRecorder::new(0);
        recorder.gap(gap);
        recorder.finish()
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        let bits = self.0[1];
        Gap::ALL.into_iter().filter(move |gap| bits & *gap as u8 != 0)
    }

    /// Whether the run can be repeated.
    pub fn is_complete(&self) -> bool {
        self.gaps().next().is_none()
    }
}

/// Records the inputs of a run.
#[derive(Debug)]
pub struct InputRecorder {
    bytes: Vec<u8>,
    last_us: u64,
    /// How often the last value was read in a row.
    repeats: u64,
}

impl InputRecorder {
    pub fn new(began_at_us: u64) -> Self {
        let mut bytes = vec![FORMAT, 0];
        bytes.extend(began_at_us.to_le_bytes());
        Self { bytes, last_us: 0, repeats: 0 }
    }

    /// Notes that the clock was read. It never goes backwards.
    pub fn reading(&mut self, elapsed_us: u64) {
        if elapsed_us == self.last_us {
            self.repeats += 1;
            return;
        }
        self.flush();
        push_number(&mut self.bytes, elapsed_us.saturating_sub(self.last_us));
        (self.last_us, self.repeats) = (elapsed_us, 1);
    }

    pub fn gap(&mut self, gap: Gap) {
        self.bytes[1] |= gap as u8;
    }

    pub fn finish(mut self) -> RecordedInputs {
        self.flush();
        RecordedInputs(self.bytes)
    }

    /// Completes the entry of the last value.
    fn flush(&mut self) {
        /// Of two numbers.
        const ENTRY_BYTES_MAX: usize = 20;
        if self.bytes.len() == HEAD_BYTES && self.last_us == 0 {
            // The first value is 0 and has no difference before it yet.
            push_number(&mut self.bytes, 0);
        }
        push_number(&mut self.bytes, self.repeats);
        if self.bytes.len() + ENTRY_BYTES_MAX > INPUTS_BYTES_MAX {
            self.bytes.truncate(HEAD_BYTES);
            push_number(&mut self.bytes, self.last_us);
            push_number(&mut self.bytes, 0);
            self.gap(Gap::TooLong);
        }
    }
}

/// Reads recorded inputs again, in the same order.
#[derive(Debug)]
pub struct InputReplay {
    inputs: RecordedInputs,
    at: usize,
    value_us: u64,
    repeats: u64,
}

impl InputReplay {
    pub fn new(inputs: RecordedInputs) -> Self {
        Self { inputs, at: HEAD_BYTES, value_us: 0, repeats: 0 }
    }

    pub fn began_at_us(&self) -> u64 {
        let bytes = self.inputs.0.get(2..HEAD_BYTES).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    /// The next reading of the clock. None if the run reads more than it did.
    pub fn reading(&mut self) -> Option<u64> {
        while self.repeats == 0 {
            let difference = self.number()?;
            self.repeats = self.number()?;
            self.value_us = self.value_us.saturating_add(difference);
        }
        self.repeats -= 1;
        Some(self.value_us)
    }

    fn number(&mut self) -> Option<u64> {
        let mut rest = self.inputs.0.get(self.at..)?;
        let number = take_number(&mut rest)?;
        self.at = self.inputs.0.len() - rest.len();
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(readings: &[u64]) -> RecordedInputs {
        let mut recorder = InputRecorder::new(1_790_000_000_000_000);
        readings.iter().for_each(|reading| recorder.reading(*reading));
        recorder.finish()
    }

    fn replayed(inputs: RecordedInputs) -> Vec<u64> {
        let mut replay = InputReplay::new(inputs);
        assert_eq!(replay.began_at_us(), 1_790_000_000_000_000);
        std::iter::from_fn(|| replay.reading()).collect()
    }

    proptest! {
        #[test]
        fn readings_are_replayed_as_they_were(steps in proptest::collection::vec((0_u64..3, 0_u64..1_000_000), 0..200)) {
            let mut now = 0;
            let readings: Vec<u64> = steps.iter().map(|(kind, step)| { now += if *kind == 0 { *step } else { 0 }; now }).collect();
            prop_assert_eq!(replayed(recorded(&readings)), readings);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let with_head = [&[FORMAT, 0][..], &[0; 8], &bytes].concat();
            for bytes in [bytes, with_head] {
                if let Some(inputs) = RecordedInputs::from_bytes(bytes) {
                    let mut replay = InputReplay::new(inputs);
                    for _ in 0..1_000 {
                        replay.reading();
                    }
                }
            }
        }
    }

    #[test]
    fn a_loop_that_reads_a_coarse_clock_takes_little() {
        let readings: Vec<u64> = (0..1_000_000_u64).map(|count| count / 1_000 * 100).collect();
        let inputs = recorded(&readings);
        assert!(inputs.as_bytes().len() < 4_000, "{} bytes", inputs.as_bytes().len());
        assert!(inputs.is_complete());
        assert_eq!(replayed(inputs), readings);
    }

    #[test]
    fn too_many_readings_leave_a_gap_and_stay_bounded() {
        let mut recorder = InputRecorder::new(0);
        for count in 0..3_000_000 {
            recorder.reading(count);
        }
        recorder.gap(Gap::WeakRef);
        let inputs = recorder.finish();
        assert!(inputs.as_bytes().len() <= INPUTS_BYTES_MAX);
        assert_eq!(inputs.gaps().collect::<Vec<_>>(), [Gap::WeakRef, Gap::TooLong]);
        assert!(RecordedInputs::from_bytes(inputs.as_bytes().to_vec()).is_some());
    }
}
