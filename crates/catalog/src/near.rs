//! Suggests similar names for an unknown name.

use crate::limits::NEAR_MAX;

/// At most a few names, best first: equal except for case, then with a common prefix or containing it, then within a few edits.
pub fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let mut found: Vec<(usize, &str)> = known.into_iter().filter_map(|known| Some((distance(&wanted, known)?, known))).collect();
    found.sort_unstable();
    found.into_iter().take(NEAR_MAX).map(|(_, name)| name.to_owned()).collect()
}

fn distance(wanted: &str, known: &str) -> Option<usize> {
    let known = known.to_lowercase();
    let edits = edits(wanted, &known);
    let length = wanted.chars().count().max(known.chars().count());
    let is_part = wanted.chars().count() >= 3 && (known.contains(wanted) || (known.chars().count() >= 3 && wanted.contains(&known)));
    if edits <= (length / 3).max(1) { Some(edits) } else { is_part.then_some(length) }
}

/// Edit distance: insertions, deletions, substitutions and swaps of adjacent characters.
fn edits(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = last[j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first() {
        let known = ["mean", "median", "mode", "standardDeviation", "quantile"];
        let near = |name| near(name, known);
        for (name, expected) in [
            ("Mean", &["mean", "median"][..]),
            ("maen", &["mean"]),
            ("meen", &["mean"]),
            ("deviation", &["standardDeviation"]),
            ("quantiles", &["quantile"]),
            ("medan", &["mean", "median"]),
        ] {
            assert_eq!(near(name), expected, "{name}");
        }
        assert!(near("zzz").is_empty() && near("").is_empty());
    }

    #[test]
    fn edits_are_counted() {
        for (from, to, count) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("äb", "ab", 1), ("maen", "mean", 1)]
        {
            assert_eq!(edits(from, to), count);
            assert_eq!(edits(to, from), count);
        }
    }
}
