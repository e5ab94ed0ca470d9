//! How the JavaScript that V8 evaluated was made from the source of its run. With both, a replay evaluates the same JavaScript, whatever a later
//! version would make of the source, its stacks have the same positions, and V8 gives its scripts the same numbers.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | bit 0: the source was TypeScript; bit 1: the result stays on the heap; bit 2: positions follow; bit 3: V8 had refused another script; bit 4: positions of that one come first |
//! | 1– | if bit 4 is set, the number of groups of those positions, as an LEB128 number; positions, in groups of four: for each number, its difference to the one in the group before, as an LEB128 number with the sign in the lowest bit |

use crate::leb128::{push_number, take_number};

/// A script whose form is longer is recorded as its source.
pub const SCRIPT_FORM_BYTES_MAX: usize = 1 << 20;

const IS_TYPESCRIPT: u8 = 1;
const KEEPS_RESULT: u8 = 2;
const HAS_POSITIONS: u8 = 4;
const WAS_REFUSED: u8 = 8;
const REFUSED_HAD_POSITIONS: u8 = 16;
const KNOWN: u8 = IS_TYPESCRIPT | KEEPS_RESULT | HAS_POSITIONS | WAS_REFUSED | REFUSED_HAD_POSITIONS;
/// Numbers of a position: line and column in the JavaScript, line and column in the source.
const GROUP: usize = 4;

/// A [`Derivation`], encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptForm(Vec<u8>);

/// How JavaScript was made from a source. The default is that of a source that was evaluated as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Derivation {
    pub is_typescript: bool,
    pub keeps_result: bool,
    /// A script that V8 did not compile, before this one.
    pub refused: Option<RefusedScript>,
    /// In groups of four. None if positions in the JavaScript are those in the source.
    pub positions: Option<Vec<i32>>,
}

/// What a script that V8 did not compile has left behind, besides its number: its positions are on the heap.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedScript {
    pub positions: Option<Vec<i32>>,
}

impl Default for ScriptForm {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl ScriptForm {
    /// None if it is too long.
    pub fn new(derivation: &Derivation) -> Option<Self> {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let refused_positions = derivation.refused.as_ref().and_then(|refused| refused.positions.as_deref());
        let mut bytes = vec![
            flag(derivation.is_typescript, IS_TYPESCRIPT)
                | flag(derivation.keeps_result, KEEPS_RESULT)
                | flag(derivation.positions.is_some(), HAS_POSITIONS)
                | flag(derivation.refused.is_some(), WAS_REFUSED)
                | flag(refused_positions.is_some(), REFUSED_HAD_POSITIONS),
        ];
        if let Some(positions) = refused_positions {
            push_number(&mut bytes, (positions.len() / GROUP) as u64);
            push_positions(&mut bytes, positions);
        }
        push_positions(&mut bytes, derivation.positions.as_deref().unwrap_or_default());
        (bytes.len() <= SCRIPT_FORM_BYTES_MAX).then_some(Self(bytes))
    }

    /// None if this is no form, or one of a later version.
    pub fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        let is_known = bytes.first().is_some_and(|flags| flags & !KNOWN == 0);
        (is_known && bytes.len() <= SCRIPT_FORM_BYTES_MAX).then_some(Self(bytes))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Whether the JavaScript is the source.
    pub fn is_source(&self) -> bool {
        self.0 == [0]
    }

    /// Positions that can't be read are left out.
    pub fn derivation(&self) -> Derivation {
        let (flags, mut rest) = self.0.split_first().map_or((0, &[][..]), |(flags, rest)| (*flags, rest));
        let has = |bit| flags & bit != 0;
        let refused_positions = has(REFUSED_HAD_POSITIONS).then(|| {
            let groups = take_number(&mut rest).unwrap_or(0);
            take_positions(&mut rest, usize::try_from(groups).unwrap_or(usize::MAX))
        });
        Derivation {
            is_typescript: has(IS_TYPESCRIPT),
            keeps_result: has(KEEPS_RESULT),
            refused: has(WAS_REFUSED).then_some(RefusedScript { positions: refused_positions }),
            positions: has(HAS_POSITIONS).then(|| take_positions(&mut rest, usize::MAX)),
        }
    }
}

/// Stops soon after [`SCRIPT_FORM_BYTES_MAX`].
fn push_positions(bytes: &mut Vec<u8>, positions: &[i32]) {
    let mut last = [0; GROUP];
    for (index, number) in positions.iter().enumerate() {
        if bytes.len() > SCRIPT_FORM_BYTES_MAX {
            return;
        }
        let before = std::mem::replace(&mut last[index % GROUP], *number);
        let difference = i64::from(*number) - i64::from(before);
        push_number(bytes, difference.unsigned_abs() << 1 | u64::from(difference < 0));
    }
}

/// Removes this many groups from the start, or as many as there are.
fn take_positions(bytes: &mut &[u8], groups_max: usize) -> Vec<i32> {
    let (mut numbers, mut last) = (Vec::new(), [0_i32; GROUP]);
    while numbers.len() / GROUP < groups_max
        && let Some(encoded) = take_number(bytes)
    {
        let difference = (encoded >> 1) as i64 * if encoded & 1 == 0 { 1 } else { -1 };
        let number = &mut last[numbers.len() % GROUP];
        *number = i64::from(*number).wrapping_add(difference) as i32;
        numbers.push(*number);
    }
    numbers.truncate(numbers.len() / GROUP * GROUP);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn positions() -> impl Strategy<Value = Option<Vec<i32>>> {
        option::of(vec(any::<[i32; GROUP]>(), 0..50).prop_map(|groups| groups.concat()))
    }

    proptest! {
        #[test]
        fn a_form_is_read_as_it_was_written(
            (is_typescript, keeps_result) in any::<(bool, bool)>(),
            refused in option::of(positions().prop_map(|positions| RefusedScript { positions })),
            positions in positions(),
        ) {
            let derivation = Derivation { is_typescript, keeps_result, refused, positions };
            let form = ScriptForm::new(&derivation).expect("short");
            prop_assert_eq!(form.is_source(), derivation == Derivation::default());
            let read = ScriptForm::from_bytes(form.into_bytes()).expect("a form");
            prop_assert_eq!(read.derivation(), derivation);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in vec(any::<u8>(), 0..100), flags in 0..=KNOWN) {
            for bytes in [[&[flags], &bytes[..]].concat(), bytes] {
                let Some(form) = ScriptForm::from_bytes(bytes) else { continue };
                let Derivation { refused, positions, .. } = form.derivation();
                for positions in [positions, refused.and_then(|refused| refused.positions)] {
                    prop_assert!(positions.is_none_or(|numbers| numbers.len() % GROUP == 0));
                }
            }
        }
    }

    #[test]
    fn a_form_is_bounded() {
        let positions: Vec<i32> = (0..SCRIPT_FORM_BYTES_MAX as i32).collect();
        assert_eq!(ScriptForm::new(&Derivation { positions: Some(positions), ..Derivation::default() }), None);
        assert_eq!(ScriptForm::from_bytes(vec![0; SCRIPT_FORM_BYTES_MAX + 1]), None);
        assert_eq!(ScriptForm::from_bytes(Vec::new()), None);
        assert_eq!(ScriptForm::from_bytes(vec![KNOWN + 1]), None, "of a later version");
    }

    /// The generated code of an enum has about one position for each of its words.
    #[test]
    fn positions_take_little() {
        let positions: Vec<i32> = (1..1000).flat_map(|n| [n, 5 + n % 7, n / 2, 9]).collect();
        let numbers = positions.len();
        let form = ScriptForm::new(&Derivation { positions: Some(positions), ..Derivation::default() }).expect("short");
        assert!(form.as_bytes().len() <= 1 + numbers + GROUP, "{}", form.as_bytes().len());
    }
}
