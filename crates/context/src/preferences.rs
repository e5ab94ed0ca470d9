//! Preferences and custom values that a caller sets. `null` removes an entry. If one value exceeds a limit, all are refused and nothing
//! changes.

use crate::json_size::json_bytes;
use crate::limits::{
    CUSTOM_BYTES_MAX, CUSTOM_DEPTH_MAX, CUSTOM_KEY_BYTES_MAX, CUSTOM_KEYS_MAX, CUSTOM_VALUE_BYTES_MAX, LANGUAGE_BYTES_MAX, MAX_RESULTS_MAX,
};
use crate::record::{OutputFormat, Preferences};
use crate::{Record, Refused};
use serde_json::{Map, Value};

impl Record {
    /// Sets `output_format`, `max_results` and `language`.
    pub fn set_preferences(&mut self, given: &Map<String, Value>) -> Result<(), Refused> {
        let mut preferences = self.user_preferences.clone();
        for (name, value) in given {
            set_preference(&mut preferences, name, value)?;
        }
        self.user_preferences = preferences;
        Ok(())
    }

    pub fn set_custom(&mut self, given: &Map<String, Value>) -> Result<(), Refused> {
        let mut custom = self.custom.clone();
        for (key, value) in given {
            if value.is_null() {
                custom.remove(key);
            } else {
                check_key(key)?;
                check_value(key, value)?;
                custom.insert(key.clone(), value.clone());
            }
        }
        if custom.len() > CUSTOM_KEYS_MAX {
            return Err(refused(
                "custom",
                format!("{} keys", custom.len()),
                format!("at most {CUSTOM_KEYS_MAX} are allowed; null removes one"),
            ));
        }
        let bytes = json_bytes(&custom);
        if bytes > CUSTOM_BYTES_MAX {
            let allowed = format!("at most {CUSTOM_BYTES_MAX} are allowed for all keys and values together; null removes one");
            return Err(refused("custom", format!("{bytes} bytes"), allowed));
        }
        self.custom = custom;
        Ok(())
    }
}

fn set_preference(preferences: &mut Preferences, name: &str, value: &Value) -> Result<(), Refused> {
    let parameter = format!("user_preferences.{}", shown(name));
    let wrong = |allowed: String| refused(&parameter, shown(&value.to_string()), allowed);
    match name {
        "output_format" => {
            preferences.output_format = serde_json::from_value::<Option<OutputFormat>>(value.clone())
                .map_err(|_| wrong("json, markdown, plain or null are allowed".into()))?;
        }
        "max_results" => {
            let fits = |number: &u64| (1..=MAX_RESULTS_MAX).contains(number);
            let number = whole_number(value).filter(fits);
            if number.is_none() && !value.is_null() {
                return Err(wrong(format!("a whole number from 1 to {MAX_RESULTS_MAX} or null is allowed")));
            }
            preferences.max_results = number;
        }
        "language" => {
            let fits = |tag: &&str| {
                (1..=LANGUAGE_BYTES_MAX).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            };
            let tag = value.as_str().filter(fits);
            if tag.is_none() && !value.is_null() {
                return Err(wrong(format!(
                    "a language tag such as `en` or `pt-BR` (letters, digits and dashes, at most {LANGUAGE_BYTES_MAX}) or null is allowed"
                )));
            }
            preferences.language = tag.map(str::to_owned);
        }
        _ => {
            return Err(refused(
                "user_preferences",
                format!("`{}`", shown(name)),
                "output_format, max_results and language are allowed".into(),
            ));
        }
    }
    Ok(())
}

/// JSON has one number type, so 5.0 is a whole number.
fn whole_number(value: &Value) -> Option<u64> {
    let whole = |number: &f64| number.fract() == 0.0 && (0.0..=MAX_RESULTS_MAX as f64).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|number| number as u64))
}

fn check_key(key: &str) -> Result<(), Refused> {
    let fits = (1..=CUSTOM_KEY_BYTES_MAX).contains(&key.len()) && !key.chars().any(char::is_control);
    let allowed = || format!("a key has 1 to {CUSTOM_KEY_BYTES_MAX} bytes, none of them a control character");
    if fits { Ok(()) } else { Err(refused("custom", format!("`{}` ({} bytes)", shown(key), key.len()), allowed())) }
}

fn check_value(key: &str, value: &Value) -> Result<(), Refused> {
    let parameter = format!("custom.{}", shown(key));
    if !is_shallow(value, CUSTOM_DEPTH_MAX) {
        return Err(refused(
            &parameter,
            format!("more than {CUSTOM_DEPTH_MAX} levels deep"),
            format!("at most {CUSTOM_DEPTH_MAX} levels are allowed"),
        ));
    }
    let bytes = json_bytes(value);
    if bytes > CUSTOM_VALUE_BYTES_MAX {
        return Err(refused(
            &parameter,
            format!("{bytes} bytes"),
            format!("at most {CUSTOM_VALUE_BYTES_MAX} are allowed; keep a summary or an id instead"),
        ));
    }
    Ok(())
}

fn is_shallow(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_shallow(item, levels - 1)),
        Value::Object(members) => levels > 0 && members.values().all(|member| is_shallow(member, levels - 1)),
        _ => true,
    }
}

pub fn refused(parameter: &str, value: String, allowed: String) -> Refused {
    Refused { parameter: parameter.to_owned(), value, allowed }
}

/// Shortens a refused value for an error message.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionId, Timestamp};
    use serde_json::json;

    fn record() -> Record {
        Record::new(SessionId::from_bytes([1; 32]), Timestamp::from_ms(0))
    }

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().expect("an object")
    }

    #[test]
    fn preferences_are_set_and_removed() {
        let mut record = record();
        record.set_preferences(&object(json!({ "output_format": "markdown", "max_results": 5, "language": "pt-BR" }))).expect("set");
        assert_eq!(
            serde_json::to_value(&record.user_preferences).expect("json"),
            json!({ "output_format": "markdown", "max_results": 5, "language": "pt-BR" })
        );
        record.set_preferences(&object(json!({ "max_results": 7.0 }))).expect("set");
        assert_eq!(record.user_preferences.max_results, Some(7));
        record.set_preferences(&object(json!({ "max_results": null, "language": null }))).expect("set");
        assert_eq!(serde_json::to_value(&record.user_preferences).expect("json"), json!({ "output_format": "markdown" }));
    }

    #[test]
    fn a_wrong_preference_is_refused_by_name_and_changes_nothing() {
        for (given, parameter, allowed) in [
            (json!({ "max_results": 3, "output_format": "xml" }), "user_preferences.output_format", "json, markdown, plain"),
            (json!({ "max_results": 0 }), "user_preferences.max_results", "1 to 10000"),
            (json!({ "max_results": 10001 }), "user_preferences.max_results", "1 to 10000"),
            (json!({ "max_results": 1.5 }), "user_preferences.max_results", "whole number"),
            (json!({ "language": "e\nn" }), "user_preferences.language", "language tag"),
            (json!({ "language": "x".repeat(36) }), "user_preferences.language", "at most 35"),
            (json!({ "colour": "red" }), "user_preferences", "output_format, max_results and language"),
        ] {
            let mut changed = record();
            let error = changed.set_preferences(&object(given)).expect_err("refused");
            assert_eq!(error.parameter, parameter);
            assert!(error.to_string().contains(allowed), "{error}");
            assert_eq!(changed, record());
        }
    }

    #[test]
    fn custom_values_are_set_replaced_and_removed() {
        let mut record = record();
        record.set_custom(&object(json!({ "a": 1, "b": { "c": [true] } }))).expect("set");
        record.set_custom(&object(json!({ "a": null, "b": "x", "never": null }))).expect("set");
        assert_eq!(json!(record.custom), json!({ "b": "x" }));
    }

    #[test]
    fn custom_values_past_a_bound_are_refused_and_change_nothing() {
        let deep = (0..CUSTOM_DEPTH_MAX + 1).fold(json!(1), |inner, _| json!([inner]));
        let many: Map<_, _> = (0..=CUSTOM_KEYS_MAX).map(|key| (key.to_string(), json!(1))).collect();
        let much: Map<_, _> = (0..5).map(|key| (key.to_string(), json!("x".repeat(CUSTOM_VALUE_BYTES_MAX - 2)))).collect();
        for (given, value, allowed) in [
            (json!({ "k": "x".repeat(CUSTOM_VALUE_BYTES_MAX - 1) }), "16385 bytes", "16384"),
            (json!({ "k": "\0".repeat(3000) }), "18002 bytes", "16384"),
            (json!({ "k": deep }), "levels deep", "32 levels"),
            (json!({ "": 1 }), "0 bytes", "1 to 128"),
            (json!({ "x".repeat(129): 1 }), "129 bytes", "1 to 128"),
            (json!({ "a\u{1}": 1 }), "2 bytes", "control"),
            (many.into(), "101 keys", "100"),
            (much.into(), "bytes", "65536"),
        ] {
            let mut changed = record();
            let error = changed.set_custom(&object(given)).expect_err("refused");
            assert!(error.parameter.starts_with("custom") && error.value.contains(value) && error.allowed.contains(allowed), "{error}");
            assert_eq!(changed, record());
        }
    }

    #[test]
    fn a_value_of_the_allowed_depth_survives_its_storage() {
        let mut record = record();
        let deep = (0..CUSTOM_DEPTH_MAX).fold(json!(1), |inner, _| json!({ "k": inner }));
        record.set_custom(&object(json!({ "deep": deep }))).expect("set");
        let bytes = serde_json::to_vec(&record).expect("json");
        assert_eq!(crate::migration::read(&bytes), Ok(record));
    }
}
