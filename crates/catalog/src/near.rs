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
    let edits = strsim::osa_distance(wanted, &known);
    let length = wanted.chars().count().max(known.chars().count());
    let is_part = wanted.chars().count() >= 3 && (known.contains(wanted) || (known.chars().count() >= 3 && wanted.contains(&known)));
    if edits <= (length / 3).max(1) { Some(edits) } else { is_part.then_some(length) }
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
}
