//! The page about commands and flags, from clap's own description of them.

use crate::cli::{Cli, config};
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

const START: &str = "\
# Commands and flags

Made from the code by `make reference`; do not edit it by hand.

Every flag is also a variable, and every flag of the server a key of the TOML file that `--config` names. What is on the command line beats a variable, which beats the file, which beats the default:

```toml
# heapstead serve --config heapstead.toml
http-port = 8420
directory-path = \"/var/lib/heapstead/heaps\"
session-db-path = \"/var/lib/heapstead/sessions\"
allowed-hosts = [\"localhost\", \"heapstead.example\"]
stateless = false
```

A key that is not known, a value of the wrong type or out of bounds is an error that names the file, the key, the value and what is allowed. Paths that do not begin with `/` are seen from where the command was started.
Flags that are true or false are true when they are named, and false as `--flag=false`.

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

/// All of them for the server; for other commands their own, and the names of those they share with it.
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
        let _ = writeln!(page, "As for the server: {}.\n", names.join(", "));
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
