//! `heapstead auth`: adds, lists and revokes tokens. A running server applies each change immediately.

use super::EXIT_BAD_INPUT;
use super::colours::Colours;
use super::flags::{ConfigOptions, FlagError, TokenFileOptions, duration};
use super::heaps::print_json;
use super::screen::Screen;
use super::table::{self, Cell, Table};
use crate::auth::{Entry, Token, TokenFile, TokenFileError};
use clap::Subcommand;
use heapstead_types::{Permission, Principal};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  heapstead auth add acme/ann --auth-tokens tokens.toml      prints the token once
  heapstead auth add acme/ci --expires 30d --name pipeline   with HEAPSTEAD_AUTH_TOKENS set
  heapstead auth add acme/ann --permission heaps:import      may import heaps; needs `serve --allow-heap-import`
  heapstead auth ls                                          ids, owners and ages, never the tokens
  heapstead auth revoke ID                                   refuses it from the next request on
  heapstead serve --http-port 8420 --auth-tokens tokens.toml

Exit code: 0 success, 1 failure, 2 invalid input.";

#[derive(clap::Args)]
pub struct AuthOptions {
    #[command(subcommand)]
    command: AuthCommand,
}

#[derive(Subcommand)]
enum AuthCommand {
    /// Create a token; it is printed once and not stored
    #[command(after_help = EXAMPLES)]
    Add(AddOptions),
    /// List tokens
    #[command(after_help = EXAMPLES)]
    Ls(FileOptions),
    /// Revoke a token
    #[command(after_help = EXAMPLES)]
    Revoke(RevokeOptions),
}

#[derive(clap::Args)]
struct AddOptions {
    /// Principal that the token authenticates as: TENANT/SUBJECT
    #[arg(value_name = "OWNER", value_parser = owner)]
    owner: Principal,
    /// Lifetime of the token, e.g. 12h, 30d; if omitted, it does not expire
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<Duration>,
    /// Description of the token
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Grant this to the token; can be given several times. The only one is heaps:import
    #[arg(long, value_name = "PERMISSION")]
    permission: Vec<Permission>,
    #[command(flatten)]
    file: FileOptions,
}

#[derive(clap::Args)]
struct RevokeOptions {
    /// Id of the token, as shown by `ls`
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    file: FileOptions,
}

#[derive(clap::Args)]
struct FileOptions {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigOptions,
    #[command(flatten)]
    tokens: TokenFileOptions,
}

#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Flags(#[from] FlagError),
    #[error(transparent)]
    File(#[from] TokenFileError),
}

impl FileOptions {
    fn open(&self) -> Result<TokenFile, FlagError> {
        self.tokens.auth_tokens.as_deref().map(TokenFile::new).ok_or(FlagError::NoTokenFile)
    }
}

fn owner(text: &str) -> Result<Principal, String> {
    let owner: Principal = text.parse().map_err(|error| format!("{error}"))?;
    match owner.tenant() {
        Some(_) => Ok(owner),
        None => Err("expected TENANT/SUBJECT: this owner needs no token".into()),
    }
}

pub fn auth(options: AuthOptions) -> ExitCode {
    let mut screen = Screen::new();
    let done = match options.command {
        AuthCommand::Add(options) => add(&mut screen, options),
        AuthCommand::Ls(options) => ls(&mut screen, &options),
        AuthCommand::Revoke(options) => revoke(&mut screen, &options),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    screen.error(&error.to_string());
    match error {
        Failed::Flags(_) => ExitCode::from(EXIT_BAD_INPUT),
        Failed::File(error) => {
            if let TokenFileError::Unknown { .. } = error {
                screen.aside("next: `heapstead auth ls` lists the existing tokens");
            }
            ExitCode::FAILURE
        }
    }
}

fn add(screen: &mut Screen, options: AddOptions) -> Result<(), Failed> {
    let file = options.file.open()?;
    let token = Token::random();
    let created_at = Timestamp::now();
    let entry = Entry {
        id: token.id.clone(),
        owner: options.owner,
        name: options.name,
        sha256: Token::digest(token.text()),
        created_at,
        expires_at: options.expires.map(|lasts| created_at + lasts),
        permissions: options.permission.into_iter().collect(),
    };
    file.add(entry.clone())?;
    if options.file.json {
        let mut shown = shown(&entry);
        shown["token"] = token.text().into();
        print_json(screen, &shown);
        return Ok(());
    }
    screen.output(format!("{}\n", token.text()).as_bytes());
    let end = entry.expires_at.map_or(String::new(), |end| format!(" until {} UTC", table::time(&end.to_string())));
    screen.note(&format!("token {} for {}{end}: keep it, it is not shown again", entry.id, entry.owner));
    Ok(())
}

fn ls(screen: &mut Screen, options: &FileOptions) -> Result<(), Failed> {
    let entries = options.open()?.read()?;
    if options.json {
        print_json(screen, &json!({ "tokens": entries.iter().map(shown).collect::<Vec<_>>() }));
        return Ok(());
    }
    if entries.is_empty() {
        screen.aside("there are no tokens");
        return Ok(());
    }
    let mut table = Table::new(Colours::of(&io::stdout()), ["ID", "OWNER", "CREATED (UTC)", "EXPIRES (UTC)", "PERMISSIONS", "NAME"]);
    for entry in &entries {
        let end = entry.expires_at.map_or_else(|| "never".to_owned(), |end| table::time(&end.to_string()));
        table.row([
            entry.id.as_str().into(),
            entry.owner.to_string().into(),
            table::time(&entry.created_at.to_string()).into(),
            if entry.has_expired() { Cell::painted(format!("{end} (past)"), Colours::red) } else { end.into() },
            names(entry).join(" ").into(),
            entry.name.as_deref().unwrap_or_default().into(),
        ]);
    }
    screen.output(table.text().as_bytes());
    Ok(())
}

fn revoke(screen: &mut Screen, options: &RevokeOptions) -> Result<(), Failed> {
    let entry = options.file.open()?.revoke(&options.id)?;
    match options.file.json {
        true => print_json(screen, &shown(&entry)),
        false => screen.note(&format!("revoked {} of {}", entry.id, entry.owner)),
    }
    Ok(())
}

/// Leaves out the digest, which must not be shown.
fn shown(entry: &Entry) -> Value {
    let mut shown = json!({ "id": entry.id, "owner": entry.owner.to_string(), "created_at": entry.created_at.to_string() });
    if let Some(name) = &entry.name {
        shown["name"] = name.as_str().into();
    }
    if !entry.permissions.is_empty() {
        shown["permissions"] = names(entry).into();
    }
    if let Some(end) = entry.expires_at {
        shown["expires_at"] = end.to_string().into();
        shown["expired"] = entry.has_expired().into();
    }
    shown
}

/// The names of the token's permissions.
fn names(entry: &Entry) -> Vec<&'static str> {
    entry.permissions.iter().map(|permission| permission.as_str()).collect()
}
