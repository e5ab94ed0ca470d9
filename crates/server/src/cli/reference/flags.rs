//! Generates the page of commands and flags from clap's definitions.

use crate::cli::{Cli, config};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

const START: &str = "\
# Commands and flags

Generated from the code by `make reference`. Do not edit.

Every flag has an environment variable, and every flag of the server is a key in the TOML file of `--config`. Precedence: command line, environment variable, file, default:

```toml
# heapstead serve --config heapstead.toml
http-port = 8420
directory-path = \"/var/lib/heapstead/heaps\"
session-db-path = \"/var/lib/heapstead/sessions\"
allowed-hosts = [\"localhost\", \"heapstead.example\"]
stateless = false
```

An unknown key, or a value of the wrong type or out of range, is an error that names the file, the key, the value and the allowed values. Relative paths are relative to the working directory.
A boolean flag is true if it is given without a value; `--flag=false` turns it off.

";

pub fn page() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut page = START.to_owned();
    let shared: Vec<String> =
        config::server_flags(&cli).filter_map(Arg::get_long).map(str::to_owned).chain(["config".to_owned()]).collect();
    for command in cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        describe(&mut page, command, "heapstead", &shared);
    }
    page
}

fn describe(page: &mut String, command: &Command, parent: &str, shared: &[String]) {
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(page, "## `{name}`\n\n{about}.\n");
    let deeper: Vec<_> = command.get_subcommands().filter(|command| command.get_name() != "help").collect();
    if deeper.is_empty() {
        arguments(page, command, shared);
    }
    if let Some(examples) = command.get_after_help().filter(|_| parent == "heapstead") {
        let _ = writeln!(page, "```\n{examples}\n```\n");
    }
    for command in deeper {
        describe(page, command, &name, shared);
    }
}

/// Lists all flags of the server. For other commands, lists their own flags and names those shared with the server.
fn arguments(page: &mut String, command: &Command, shared: &[String]) {
    let is_server = command.get_name() == "serve";
    let known = |argument: &&Arg| !matches!(argument.get_long(), Some("help" | "version"));
    let is_shared = |argument: &Arg| !is_server && argument.get_long().is_some_and(|long| shared.iter().any(|name| name == long));
    let (also, own): (Vec<_>, Vec<_>) = command.get_arguments().filter(known).partition(|argument| is_shared(argument));
    if !own.is_empty() {
        page.push_str("| flag | variable | default | meaning |\n|---|---|---|---|\n");
        for argument in own {
            row(page, argument);
        }
        page.push('\n');
    }
    if !also.is_empty() {
        let names: Vec<_> = also.iter().filter_map(|argument| argument.get_long()).map(|long| format!("`--{long}`")).collect();
        let _ = writeln!(page, "Shared with the server: {}.\n", names.join(", "));
    }
}

fn row(page: &mut String, argument: &Arg) {
    let takes_value = argument.get_action().takes_values();
    let value =
        argument.get_value_names().and_then(|names| names.first()).filter(|_| takes_value).map(ToString::to_string).unwrap_or_default();
    let flag = match argument.get_long() {
        Some(long) if argument.is_require_equals_set() => format!("--{long}[={value}]"),
        Some(long) => format!("--{long} {value}"),
        None => value,
    };
    let variable = argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
    let defaults: Vec<_> = argument.get_default_values().iter().filter(|_| takes_value).map(|value| value.to_string_lossy()).collect();
    let default = if defaults.is_empty() { String::new() } else { format!("`{}`", defaults.join(",")) };
    let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let choices: Vec<_> = argument.get_possible_values().iter().map(|choice| format!("`{}`", choice.get_name())).collect();
    if takes_value && !choices.is_empty() {
        let _ = write!(help, ": {}", choices.join(" or "));
    }
    let _ = writeln!(page, "| `{}` | {variable} | {default} | {} |", flag.trim_end(), help.replace('|', "\\|"));
}
