//! The `--config` file: server flags without their dashes, as TOML.
//!
//! ```toml
//! http-port = 8420
//! allowed-hosts = ["localhost", "heapstead.example"]
//! stateless = false
//! ```
//! Its values become the defaults of the flags, so the command line and environment variables take precedence.

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgMatches, Command};
use std::any::TypeId;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use toml::Value;

/// The command whose flags the file may contain.
const SERVER: &str = "serve";
/// The flag that names the file. It is not a key in it.
const CONFIG: &str = "config";

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("`--config` is `{}`, which can't be read: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("{}: it is not TOML: {error}", path.display())]
    NotToml { path: PathBuf, error: Box<toml::de::Error> },
    #[error("{}: `{key}` is not a setting: {allowed}", path.display())]
    UnknownKey { path: PathBuf, key: String, allowed: String },
    #[error("{}: `{key}` is {value}: {allowed}", path.display())]
    BadValue { path: PathBuf, key: String, value: String, allowed: String },
}

/// The command with the file's values as defaults, if the parsed arguments name a file.
pub fn with_file(command: Command, matches: &ArgMatches) -> Result<Option<Command>, ConfigError> {
    let (path, matches) = chosen(matches);
    let Some(file) = matches.try_get_one::<PathBuf>(CONFIG).ok().flatten() else { return Ok(None) };
    let settings = read(file, &command)?;
    Ok(Some(with_defaults(command, &path, &settings)))
}

/// The chosen subcommand at any depth.
fn chosen(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut deepest) = (Vec::new(), matches);
    while let Some((name, deeper)) = deepest.subcommand() {
        path.push(name.to_owned());
        deepest = deeper;
    }
    (path, deepest)
}

/// A flag's id, and its value as on the command line.
pub type Setting = (String, String);

fn read(path: &Path, command: &Command) -> Result<Vec<Setting>, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.into(), error })?;
    parse(path, &text, command)
}

/// The settings in the text of a file. Errors name its path.
pub fn parse(path: &Path, text: &str, command: &Command) -> Result<Vec<Setting>, ConfigError> {
    let table: toml::Table = text.parse().map_err(|error| ConfigError::NotToml { path: path.into(), error: Box::new(error) })?;
    table.into_iter().map(|(key, value)| setting(path, command, key, &value)).collect()
}

fn setting(path: &Path, command: &Command, key: String, value: &Value) -> Result<Setting, ConfigError> {
    let Some(flag) = server_flags(command).find(|flag| flag.get_long() == Some(&key)) else {
        return Err(ConfigError::UnknownKey { path: path.into(), allowed: allowed_keys(command, &key), key });
    };
    let bad = |allowed: String| ConfigError::BadValue { path: path.into(), key: key.clone(), value: value.to_string(), allowed };
    let text = as_argument(flag, value).map_err(|expected| bad(format!("expected {expected}")))?;
    check(flag, &text).map_err(bad)?;
    Ok((flag.get_id().to_string(), text))
}

pub fn server_flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let server = command.find_subcommand(SERVER);
    server.into_iter().flat_map(Command::get_arguments).filter(|flag| !matches!(flag.get_long(), None | Some(CONFIG | "help" | "version")))
}

fn allowed_keys(command: &Command, key: &str) -> String {
    let dashed = key.trim_start_matches('-').replace('_', "-").to_lowercase();
    let known: Vec<_> = server_flags(command).filter_map(Arg::get_long).collect();
    match known.contains(&dashed.as_str()) {
        true => format!("write `{dashed}`"),
        false => format!("allowed are {}", known.join(", ")),
    }
}

/// The value as text if it has the flag's type; else the expected type.
fn as_argument(flag: &Arg, value: &Value) -> Result<String, &'static str> {
    let parsed = flag.get_value_parser().type_id();
    let is_number = [TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>()].iter().any(|number| parsed == *number);
    match value {
        Value::Integer(number) if is_number => Ok(number.to_string()),
        _ if is_number => Err("a whole number, without quotes"),
        Value::Boolean(yes) if parsed == TypeId::of::<bool>() => Ok(yes.to_string()),
        _ if parsed == TypeId::of::<bool>() => Err("true or false, without quotes"),
        Value::Array(items) if flag.get_value_delimiter().is_some() => {
            let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
            Ok(texts.ok_or("a list of strings in quotes")?.join(","))
        }
        Value::String(text) => Ok(text.clone()),
        _ if flag.get_value_delimiter().is_some() => Err("a list of strings in quotes"),
        _ => Err("a string in quotes"),
    }
}

/// Checks that the flag accepts this value; else returns what it accepts.
fn check(flag: &Arg, text: &str) -> Result<(), String> {
    let alone = Command::new(SERVER).no_binary_name(true).arg(flag.clone());
    let flag = flag.get_long().unwrap_or_default();
    alone.try_get_matches_from([format!("--{flag}={text}")]).map(drop).map_err(|error| match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(choices)) if !choices.is_empty() => format!("allowed are {}", choices.join(", ")),
        _ => error.source().map_or_else(|| "it may not be empty".to_owned(), ToString::to_string),
    })
}

/// Only the chosen command reads the file, and only for flags that it has.
fn with_defaults(command: Command, path: &[String], settings: &[Setting]) -> Command {
    if let Some((name, deeper)) = path.split_first() {
        return command.mut_subcommand(name, |subcommand| with_defaults(subcommand, deeper, settings));
    }
    settings.iter().fold(command, |command, (id, text)| {
        let has_it = command.get_arguments().any(|flag| flag.get_id() == id.as_str());
        if has_it { command.mut_arg(id, |flag| flag.default_value(text.clone())) } else { command }
    })
}
