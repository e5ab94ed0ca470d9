//! Searches entities by words, without opening a session.

use crate::catalogs::Catalogs;
use crate::entity::{Entity, EntityKind};
use serde::Serialize;
use std::cmp::Reverse;

/// Further words are ignored.
const WORDS_MAX: usize = 16;

// Weight of a matched word, by where it matches.
const WHOLE_NAME: u32 = 20;
const NAME_WORD: u32 = 8;
const NAME_BEGINNING: u32 = 5;
const NAME_PART: u32 = 3;
const MEMBER: u32 = 3;
const CATALOG: u32 = 2;
const DESCRIPTION_WORD: u32 = 2;
const DESCRIPTION_BEGINNING: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hit<'a> {
    pub catalog: &'a str,
    pub entity: &'a str,
    pub kind: EntityKind,
    pub signature: &'a str,
    pub description: &'a str,
}

impl<'a> Hit<'a> {
    fn of(catalog: &'a str, entity: &'a Entity) -> Self {
        Self { catalog, entity: &entity.name, kind: entity.kind, signature: &entity.signature, description: &entity.description }
    }
}

impl Catalogs {
    /// All entities by name.
    pub fn all(&self, limit: usize) -> Vec<Hit<'_>> {
        let entities = self.iter().flat_map(|catalog| catalog.entities().iter().map(|entity| Hit::of(&catalog.name, entity)));
        entities.take(limit).collect()
    }

    /// Best match first: by total weight, then by the number of matched words, then by name.
    pub fn search(&self, words: &str, limit: usize) -> Vec<Hit<'_>> {
        let mut words: Vec<_> = split(words).take(WORDS_MAX).collect();
        words.sort();
        words.dedup();
        let mut found = Vec::new();
        for catalog in self.iter() {
            let catalog_words: Vec<_> = split(&catalog.name).collect();
            for entity in catalog.entities() {
                let text = Text::of(entity, &catalog_words);
                let weights: Vec<u32> = words.iter().map(|word| text.weight(word)).filter(|weight| *weight > 0).collect();
                if !weights.is_empty() {
                    found.push((Reverse(weights.iter().sum::<u32>()), Reverse(weights.len()), &catalog.name, entity));
                }
            }
        }
        found.sort_by(|one, other| (one.0, one.1, one.2, &one.3.name).cmp(&(other.0, other.1, other.2, &other.3.name)));
        found.into_iter().take(limit).map(|(_, _, catalog, entity)| Hit::of(catalog, entity)).collect()
    }
}

/// The words of an entity, by field.
struct Text<'a> {
    name: String,
    name_words: Vec<String>,
    members: Vec<String>,
    catalog: &'a [String],
    description: Vec<String>,
}

impl<'a> Text<'a> {
    fn of(entity: &Entity, catalog: &'a [String]) -> Self {
        let members = entity.methods.iter().flat_map(|method| split(&method.name).chain(split(&method.description)));
        Self {
            name: entity.name.to_lowercase(),
            name_words: split(&entity.name).collect(),
            members: members.collect(),
            catalog,
            description: split(&entity.description).collect(),
        }
    }

    fn weight(&self, word: &str) -> u32 {
        let is = |known: &String| known == word;
        // Prefixes of one or two letters match too many words.
        let begins = |known: &String| word.len() > 2 && known.starts_with(word);
        let name = match () {
            () if self.name == word => WHOLE_NAME,
            () if self.name_words.iter().any(is) => NAME_WORD,
            () if self.name_words.iter().any(begins) => NAME_BEGINNING,
            () if word.len() > 2 && self.name.contains(word) => NAME_PART,
            () => 0,
        };
        let description = match () {
            () if self.description.iter().any(is) => DESCRIPTION_WORD,
            () if self.description.iter().any(begins) => DESCRIPTION_BEGINNING,
            () => 0,
        };
        let member = if self.members.iter().any(is) { MEMBER } else { 0 };
        let catalog = if self.catalog.iter().any(is) { CATALOG } else { 0 };
        name + description + member + catalog
    }
}

/// Lowercase words, one at a time, because a query may be long. `standardDeviation` and `standard_deviation` are both two words.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|character: char| !character.is_alphanumeric());
        let mut was_lower = false;
        let end = rest.find(|character: char| {
            let is_end = !character.is_alphanumeric() || (character.is_uppercase() && was_lower);
            was_lower = character.is_lowercase() || character.is_numeric();
            is_end
        });
        let (word, later) = rest.split_at(end.unwrap_or(rest.len()));
        rest = later;
        (!word.is_empty()).then(|| word.chars().flat_map(char::to_lowercase).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn text_is_split_into_words() {
        let words: Vec<_> = split("standardDeviation of_a-Sample, ISOWeek2").collect();
        assert_eq!(words, ["standard", "deviation", "of", "a", "sample", "isoweek2"]);
        assert_eq!(split(" …,").next(), None);
    }
}
