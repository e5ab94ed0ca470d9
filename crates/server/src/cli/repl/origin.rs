//! Where a fork comes from. Its first turn is a comment that names the turns of the other session which led to its state.

const BEGIN: &str = "// fork of ";
const TURNS: &str = ": turns ";
const SESSION: &str = " of ";

#[derive(Debug, PartialEq, Eq)]
pub struct Origin {
    /// The handle of the other session.
    pub session: String,
    /// First and last turn of each part, in order.
    turns: Vec<(u64, u64)>,
}

impl Origin {
    /// These turns, in order.
    pub fn new(session: &str, turns: impl IntoIterator<Item = u64>) -> Self {
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for turn in turns {
            match parts.last_mut() {
                Some((_, last)) if *last + 1 == turn => *last = turn,
                _ => parts.push((turn, turn)),
            }
        }
        Self { session: session.to_owned(), turns: parts }
    }

    pub fn has(&self, turn: u64) -> bool {
        self.turns.iter().any(|(first, last)| (*first..=*last).contains(&turn))
    }

    /// The code of the first turn of a fork of the session with this name.
    pub fn code(&self, name: &str) -> String {
        let name: String = name.chars().map(|character| if character.is_control() { ' ' } else { character }).collect();
        let parts: Vec<_> = self.turns.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        format!("{BEGIN}{name}{TURNS}{}{SESSION}{}", parts.join(","), self.session)
    }

    /// None if it is the code of another turn.
    pub fn parse(code: &str) -> Option<Self> {
        let (rest, session) = code.trim().strip_prefix(BEGIN)?.rsplit_once(SESSION)?;
        let (_, parts) = rest.rsplit_once(TURNS)?;
        let part = |part: &str| part.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
        let turns = parts.split(',').filter(|part| !part.is_empty()).map(part).collect::<Option<_>>()?;
        Some(Self { session: session.to_owned(), turns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_turn_of_a_fork_names_the_turns_before_it() {
        for (turns, text) in [(&[][..], ""), (&[0], "0-0"), (&[0, 1, 2, 5, 7, 8], "0-2,5-5,7-8")] {
            let origin = Origin::new("00-11", turns.iter().copied());
            let code = origin.code("a name: turns\n of it");
            assert_eq!(code, format!("// fork of a name: turns  of it: turns {text} of 00-11"));
            assert_eq!(Origin::parse(&format!("{code}\n")).as_ref(), Some(&origin), "{code}");
            assert!((0..10).all(|turn| origin.has(turn) == turns.contains(&turn)), "{code}");
        }
        for other in ["1", "// fork of a", "// fork of a: turns x of b", "// fork of a: turns 1 of b"] {
            assert_eq!(Origin::parse(other), None, "{other}");
        }
    }
}
