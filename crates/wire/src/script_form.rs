//! How the JavaScript that V8 evaluated was made from the source of its run. With both, a replay evaluates the same JavaScript, whatever a later
//! version would make of the source, and its stacks have the same positions.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | bit 0: the source was TypeScript; bit 1: the result stays on the heap; bit 2: positions follow |
//! | 1– | positions, in groups of four: for each number, its difference to the one in the group before, as an LEB128 number with the sign in the lowest bit |

use crate::leb128::{push_number, take_number};

/// A script whose form is longer is recorded as its source.
pub const SCRIPT_FORM_BYTES_MAX: usize = 1 << 20;

const IS_TYPESCRIPT: u8 = 1;
const KEEPS_RESULT: u8 = 2;
const HAS_POSITIONS: u8 = 4;
/// Numbers of a position: line and column in the JavaScript, line and column in the source.
const GROUP: usize = 4;

/// Encoded. The default is that of a source that was evaluated unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptForm(Vec<u8>);

impl Default for ScriptForm {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl ScriptForm {
    /// Positions are in groups of four; there are none if those in the JavaScript are those in the source. None if the form is too long.
    pub fn new(is_typescript: bool, keeps_result: bool, positions: Option<&[i32]>) -> Option<Self> {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(is_typescript, IS_TYPESCRIPT) | flag(keeps_result, KEEPS_RESULT) | flag(positions.is_some(), HAS_POSITIONS);
        let (mut bytes, mut last) = (vec![flags], [0; GROUP]);
        for (index, number) in positions.unwrap_or_default().iter().enumerate() {
            let before = std::mem::replace(&mut last[index % GROUP], *number);
            let difference = i64::from(*number) - i64::from(before);
            push_number(&mut bytes, difference.unsigned_abs() << 1 | u64::from(difference < 0));
            if bytes.len() > SCRIPT_FORM_BYTES_MAX {
                return None;
            }
        }
        Some(Self(bytes))
    }

    /// None if this is no form, or one of a later version.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let is_known = bytes.first().is_some_and(|flags| flags & !(IS_TYPESCRIPT | KEEPS_RESULT | HAS_POSITIONS) == 0);
        (is_known && bytes.len() <= SCRIPT_FORM_BYTES_MAX).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub fn is_typescript(&self) -> bool {
        self.0[0] & IS_TYPESCRIPT != 0
    }

    pub fn keeps_result(&self) -> bool {
        self.0[0] & KEEPS_RESULT != 0
    }

    /// What can't be read of them is left out.
    pub fn positions(&self) -> Option<Vec<i32>> {
        if self.0[0] & HAS_POSITIONS == 0 {
            return None;
        }
        let (mut rest, mut numbers, mut last) = (&self.0[1..], Vec::new(), [0_i32; GROUP]);
        while let Some(encoded) = take_number(&mut rest) {
            let difference = (encoded >> 1) as i64 * if encoded & 1 == 0 { 1 } else { -1 };
            let number = &mut last[numbers.len() % GROUP];
            *number = i64::from(*number).wrapping_add(difference) as i32;
            numbers.push(*number);
        }
        numbers.truncate(numbers.len() / GROUP * GROUP);
        Some(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_form_is_read_as_it_was_written(
            is_typescript: bool,
            keeps_result: bool,
            groups in proptest::option::of(proptest::collection::vec(any::<[i32; GROUP]>(), 0..50)),
        ) {
            let positions = groups.map(|groups| groups.concat());
            let form = ScriptForm::new(is_typescript, keeps_result, positions.as_deref()).expect("short");
            let read = ScriptForm::from_bytes(form.as_bytes().to_vec()).expect("a form");
            prop_assert_eq!((read.is_typescript(), read.keeps_result(), read.positions()), (is_typescript, keeps_result, positions));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), flags in 0_u8..16) {
            for bytes in [[&[flags], &bytes[..]].concat(), bytes] {
                let positions = ScriptForm::from_bytes(bytes).and_then(|form| form.positions());
                prop_assert!(positions.is_none_or(|numbers| numbers.len() % GROUP == 0));
            }
        }
    }

    #[test]
    fn a_form_is_bounded() {
        let positions: Vec<i32> = (0..SCRIPT_FORM_BYTES_MAX as i32).collect();
        assert_eq!(ScriptForm::new(true, false, Some(&positions)), None);
        assert_eq!(ScriptForm::from_bytes(vec![0; SCRIPT_FORM_BYTES_MAX + 1]), None);
        assert_eq!(ScriptForm::from_bytes(Vec::new()), None);
        assert_eq!(ScriptForm::from_bytes(vec![8]), None, "of a later version");
    }

    /// The generated code of an enum has about one position for each of its words.
    #[test]
    fn positions_take_little() {
        let positions: Vec<i32> = (1..1000).flat_map(|n| [n, 5 + n % 7, n / 2, 9]).collect();
        let form = ScriptForm::new(true, false, Some(&positions)).expect("short");
        assert!(form.as_bytes().len() <= 1 + positions.len() + GROUP, "{}", form.as_bytes().len());
    }
}
