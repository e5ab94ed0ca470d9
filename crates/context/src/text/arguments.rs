//! The recorded form of a call's arguments: secrets masked, long values truncated, all within a limit.

use super::cut_chars;
use super::mask::{MASK, hides, mask};
use crate::json_size::json_bytes;
use crate::limits::{ARG_CHARS_MAX, ARGS_BYTES_MAX};
use serde_json::{Map, Value};

/// Nesting depth of arrays and objects that is recorded.
const DEPTH_MAX: usize = 4;
/// Members of one array or object that are recorded.
const MEMBERS_MAX: usize = 20;
const NAME_CHARS_MAX: usize = 64;
/// Characters read beyond the cut, so that a secret that spans it is recognised.
const LOOKAHEAD_CHARS: usize = 200;
const MORE: &str = "…";

pub fn cut_args(args: &Map<String, Value>) -> Map<String, Value> {
    let mut left = ARGS_BYTES_MAX - "{}".len();
    members(args, DEPTH_MAX, &mut left)
}

/// Shrinks `value` to the bytes left. `None` if not even a placeholder fits.
fn cut(value: &Value, depth: usize, left: &mut usize) -> Option<Value> {
    let small = match value {
        Value::String(text) => Value::String(cut_text(text)),
        Value::Array(_) | Value::Object(_) if depth == 0 => MORE.into(),
        Value::Array(items) => return array(items, depth - 1, left),
        Value::Object(object) => {
            take(left, "{}".len())?;
            return Some(Value::Object(members(object, depth - 1, left)));
        }
        other => other.clone(),
    };
    [small, MORE.into()].into_iter().find(|small| take(left, json_bytes(small)).is_some())
}

fn members(object: &Map<String, Value>, depth: usize, left: &mut usize) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in object.iter().take(MEMBERS_MAX) {
        let shown = cut_chars(&mask(&cut_chars(name, NAME_CHARS_MAX + LOOKAHEAD_CHARS)), NAME_CHARS_MAX);
        let before = *left;
        let small = take(left, json_bytes(&shown) + ":,".len()).and_then(|()| {
            let hidden = hides(name, value).then(|| Value::from(MASK));
            cut(hidden.as_ref().unwrap_or(value), depth, left)
        });
        let Some(small) = small else {
            *left = before;
            break;
        };
        kept.insert(shown, small);
    }
    if kept.len() < object.len() && take(left, "\"…\":\"…\",".len()).is_some() {
        kept.insert(MORE.into(), MORE.into());
    }
    kept
}

fn array(items: &[Value], depth: usize, left: &mut usize) -> Option<Value> {
    take(left, "[]".len())?;
    let mut kept = Vec::new();
    for item in items.iter().take(MEMBERS_MAX) {
        let before = *left;
        match take(left, ",".len()).and_then(|()| cut(item, depth, left)) {
            Some(small) => kept.push(small),
            None => {
                *left = before;
                break;
            }
        }
    }
    if kept.len() < items.len() && take(left, "\"…\",".len()).is_some() {
        kept.push(MORE.into());
    }
    Some(Value::Array(kept))
}

fn cut_text(text: &str) -> String {
    let end = text.char_indices().nth(ARG_CHARS_MAX + LOOKAHEAD_CHARS).map_or(text.len(), |(end, _)| end);
    let masked = mask(&text[..end]);
    let shown = cut_chars(&masked, ARG_CHARS_MAX);
    if end < text.len() && !shown.ends_with(MORE) { format!("{shown}{MORE}") } else { shown }
}

fn take(left: &mut usize, bytes: usize) -> Option<()> {
    *left = left.checked_sub(bytes)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn cut_json(value: Value) -> Value {
        Value::Object(cut_args(value.as_object().expect("an object")))
    }

    #[test]
    fn small_arguments_stay_as_they_are() {
        let args = json!({ "code": "1 + 1\n2", "n": 5, "deep": { "list": [1, null, true, { "a": 1.5 }] } });
        assert_eq!(cut_json(args.clone()), args);
    }

    #[test]
    fn secrets_are_masked_by_name_and_by_shape() {
        let args = json!({ "password": "x", "nested": { "apiKey": ["a"], "flag_secret": true }, "code": "f('ghp_0123456789abc')" });
        assert_eq!(cut_json(args), json!({ "password": "***", "nested": { "apiKey": "***", "flag_secret": true }, "code": "f('***')" }));
    }

    #[test]
    fn a_secret_at_the_cut_is_not_shown_by_half() {
        let text = format!("{} sk-{}", "x ".repeat(ARG_CHARS_MAX / 2 - 5), "Q".repeat(300));
        let cut = cut_json(json!({ "code": text })).to_string();
        assert!(!cut.contains("sk-") && !cut.contains("QQ"), "{cut}");
    }

    #[test]
    fn the_long_the_deep_and_the_many_are_cut() {
        let cut = cut_json(json!({ "text": "a".repeat(1 << 20), "list": vec![1; 1000], "deep": [[[[[[1]]]]]] }));
        assert_eq!(cut["text"].as_str().map(|text| text.chars().count()), Some(ARG_CHARS_MAX));
        assert_eq!((cut["list"].as_array().map(Vec::len), &cut["list"][20]), (Some(21), &json!("…")));
        assert_eq!(cut["deep"], json!([[[["…"]]]]));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\0-\u{1f}]{0,900}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 60, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..25).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..12).prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_arguments_fit(members in prop::collection::btree_map(any::<String>(), any_json(), 0..25)) {
            let cut = cut_args(&members.into_iter().collect());
            prop_assert!(json_bytes(&cut) <= ARGS_BYTES_MAX, "{}", json_bytes(&cut));
        }
    }
}
