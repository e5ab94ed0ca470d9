//! `heapstead heaps`: lists, shows, exports, imports, signs and deletes heaps, and removes unreferenced ones.

use super::EXIT_BAD_INPUT;
use super::backend::{Backend, BackendError, HeapFile, Needs};
use super::colours::Colours;
use super::flags::{ConfinementOptions, WhereOptions, heap_key};
use super::screen::Screen;
use super::table::{self, Table};
use clap::Subcommand;
use heapstead_service::{CollectRequest, SignRequest};
use heapstead_types::{EngineId, HeapKey};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  heapstead heaps ls                               heaps in the default folder
  heapstead heaps ls --url http://127.0.0.1:8420   heaps of a running server
  heapstead heaps show KEY --json                  size, age, engine and tags as JSON
  heapstead heaps export KEY my.heap               writes my.heap, and my.heap.json with the engine id
  heapstead heaps import my.heap --url URL         imports it on another server
  heapstead heaps rm KEY                           deletes it with its tags, unless a session or an execution needs it
  heapstead heaps upgrade KEY                      rebuilds it for this engine from the runs that led to it
  heapstead heaps gc --dry-run                     prints what would be removed
  heapstead heaps gc --unknown --dry-run           also heaps of `heapstead run`, which no database knows
  heapstead heaps sign --all --dry-run             prints which heaps have no signature, e.g. of an earlier version
  heapstead heaps sign KEY                         accepts a heap, wherever it came from
  heapstead heaps rotate-key                       signs new heaps with a new key
  heapstead heaps export-keys heaps.keys           for `import-keys` on another database that shares the heaps

Exit code: 0 success, 1 failure, 2 invalid input.";

/// Default page size.
const PAGE_HEAPS: u32 = 100;
/// Heaps per request when all are listed.
const BATCH_HEAPS: u32 = 1000;
const STANDARD: &str = "-";

#[derive(clap::Args)]
pub struct HeapsOptions {
    #[command(subcommand)]
    command: HeapsCommand,
}

#[derive(Subcommand)]
enum HeapsCommand {
    /// List heaps, sorted by key
    #[command(after_help = EXAMPLES)]
    Ls(Box<LsOptions>),
    /// Show size, age, engine and tags of a heap
    #[command(after_help = EXAMPLES)]
    Show(Box<ShowOptions>),
    /// Write a heap to a file, and the id of its engine to a second file
    #[command(after_help = EXAMPLES)]
    Export(Box<ExportOptions>),
    /// Import an exported heap after verifying it
    #[command(after_help = EXAMPLES)]
    Import(Box<ImportOptions>),
    /// Delete heaps with their tags; those that a session or an unfinished execution needs are refused
    #[command(after_help = EXAMPLES)]
    Rm(Box<RmOptions>),
    /// Rebuild heaps that another engine has written, by repeating the runs that led to them
    #[command(after_help = EXAMPLES)]
    Upgrade(Box<UpgradeOptions>),
    /// Remove expired heaps that no tag, session, recent log entry or running execution refers to
    #[command(after_help = EXAMPLES)]
    Gc(Box<GcOptions>),
    /// Sign heaps that are in the store, so that they can be restored; whoever signs a heap vouches for where it came from
    #[command(after_help = EXAMPLES)]
    Sign(Box<SignOptions>),
    /// Sign new heaps with a new key; heaps that older keys signed stay valid
    #[command(after_help = EXAMPLES)]
    RotateKey(Box<CommonOptions>),
    /// Write the keys that heaps are signed with to a file, for servers with another database on the same folder or bucket
    #[command(after_help = EXAMPLES)]
    ExportKeys(Box<KeyFileOptions>),
    /// Add the keys of another database, so that its heaps are restored; the newest of them signs new heaps
    #[command(after_help = EXAMPLES)]
    ImportKeys(Box<KeyFileOptions>),
}

#[derive(clap::Args)]
struct LsOptions {
    /// Maximum number of heaps, 1 to 10000
    #[arg(long, value_name = "COUNT", default_value_t = PAGE_HEAPS, value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "all")]
    limit: u32,
    /// Continue after this heap
    #[arg(long, value_name = "KEY", value_parser = heap_key)]
    cursor: Option<HeapKey>,
    /// List all heaps
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ShowOptions {
    /// Key of the heap: 64 lowercase hex digits
    #[arg(value_name = "KEY", value_parser = heap_key)]
    heap: HeapKey,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ExportOptions {
    /// Key of the heap: 64 lowercase hex digits
    #[arg(value_name = "KEY", value_parser = heap_key)]
    heap: HeapKey,
    /// File to write; `-` is standard output; default: KEY.heap
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct ImportOptions {
    /// File written by `export`; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Id of the engine that wrote the heap; default: the id in FILE.json; without either, the heap's V8 version is checked
    #[arg(long, value_name = "ID")]
    engine: Option<EngineId>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct RmOptions {
    /// Keys of the heaps: 64 lowercase hex digits each
    #[arg(value_name = "KEY", value_parser = heap_key, required = true)]
    heaps: Vec<HeapKey>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct UpgradeOptions {
    /// Keys of the heaps: 64 lowercase hex digits each
    #[arg(value_name = "KEY", value_parser = heap_key, required = true)]
    heaps: Vec<HeapKey>,
    #[command(flatten)]
    confinement: ConfinementOptions,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct GcOptions {
    /// Only print what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Also remove heaps that this database does not know; use it only if no other server shares the store
    #[arg(long)]
    unknown: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct SignOptions {
    /// Keys of heaps to sign, whatever their signature is now
    #[arg(value_name = "KEY", value_parser = heap_key, required_unless_present = "all", conflicts_with = "all")]
    heaps: Vec<HeapKey>,
    /// Sign all heaps that have no signature or one of an older key; heaps with an invalid signature, or one of another database, are only listed
    #[arg(long)]
    all: bool,
    /// Only print what would be signed
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
struct KeyFileOptions {
    /// File with the keys, which are secret: whoever has them can make heaps that these servers restore
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(clap::Args)]
pub struct CommonOptions {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: WhereOptions,
}

pub async fn heaps(options: HeapsOptions) -> ExitCode {
    let mut screen = Screen::new();
    let done = match options.command {
        HeapsCommand::Ls(options) => ls(&mut screen, *options).await,
        HeapsCommand::Show(options) => show(&mut screen, *options).await,
        HeapsCommand::Export(options) => export(&mut screen, *options).await,
        HeapsCommand::Import(options) => import(&mut screen, *options).await,
        HeapsCommand::Rm(options) => rm(&mut screen, *options).await,
        HeapsCommand::Upgrade(options) => upgrade(&mut screen, *options).await,
        HeapsCommand::Gc(options) => gc(&mut screen, *options).await,
        HeapsCommand::Sign(options) => sign(&mut screen, *options).await,
        HeapsCommand::RotateKey(options) => rotate_key(&mut screen, *options).await,
        HeapsCommand::ExportKeys(options) => export_keys(&mut screen, *options).await,
        HeapsCommand::ImportKeys(options) => import_keys(&mut screen, *options).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&screen, &error),
    }
}

/// Prints the error and the next step.
pub fn failed(screen: &Screen, error: &BackendError) -> ExitCode {
    show_error(screen, error);
    if error.is_bad_input() { ExitCode::from(EXIT_BAD_INPUT) } else { ExitCode::FAILURE }
}

pub fn show_error(screen: &Screen, error: &BackendError) {
    screen.error(&error.to_string());
    if let Some(hint) = error.next_step() {
        screen.next_step(&hint);
    }
}

pub fn print_json(screen: &mut Screen, value: &Value) {
    screen.output(format!("{value}\n").as_bytes());
}

async fn ls(screen: &mut Screen, options: LsOptions) -> Result<(), BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Heaps).await?;
    let mut page = backend.heaps(Some(if options.all { BATCH_HEAPS } else { options.limit }), options.cursor).await?;
    while let (true, Some(cursor)) = (options.all, next_cursor(&page)) {
        let mut next = backend.heaps(Some(BATCH_HEAPS), Some(cursor)).await?;
        let mut listed = page["heaps"].take();
        if let (Some(listed), Some(more)) = (listed.as_array_mut(), next["heaps"].as_array_mut()) {
            listed.append(more);
        }
        next["heaps"] = listed;
        page = next;
    }
    if options.common.json {
        print_json(screen, &page);
        return Ok(());
    }
    let heaps = page["heaps"].as_array().map(Vec::as_slice).unwrap_or_default();
    if heaps.is_empty() {
        screen.aside("there are no heaps");
        return Ok(());
    }
    let mut table = Table::new(Colours::of(&io::stdout()), ["HEAP", "SIZE", "STORED (UTC)"]);
    for heap in heaps {
        let size = table::size(heap["bytes"].as_u64().unwrap_or_default());
        table.row([text(&heap["heap"]).into(), size.into(), table::time(text(&heap["stored_at"])).into()]);
    }
    screen.output(table.text().as_bytes());
    if let Some(cursor) = next_cursor(&page) {
        screen.aside(&format!("there are more: `--cursor {cursor}` continues, `--all` lists all"));
    }
    Ok(())
}

fn next_cursor(page: &Value) -> Option<HeapKey> {
    page["next_cursor"].as_str()?.parse().ok()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

async fn show(screen: &mut Screen, options: ShowOptions) -> Result<(), BackendError> {
    let heap = Backend::open(&options.common.place, Needs::Heaps).await?.heap(options.heap).await?;
    if options.common.json {
        print_json(screen, &heap);
        return Ok(());
    }
    let colours = Colours::of(&io::stdout());
    let mut line = |name: &str, value: &str| screen.output(format!("{} {value}\n", colours.dim(&format!("{name:<8}"))).as_bytes());
    line("heap", text(&heap["heap"]));
    let bytes = heap["bytes"].as_u64().unwrap_or_default();
    line("size", &format!("{} ({bytes} bytes)", table::size(bytes)));
    line("stored", &format!("{} UTC", table::time(text(&heap["stored_at"]))));
    line("engine", heap["engine"].as_str().unwrap_or("not known"));
    let tags: Vec<_> = heap["tags"].as_object().into_iter().flatten().map(|(key, value)| format!("{key}={}", text(value))).collect();
    line("tags", if tags.is_empty() { "none".to_owned() } else { tags.join(", ") }.as_str());
    Ok(())
}

async fn export(screen: &mut Screen, options: ExportOptions) -> Result<(), BackendError> {
    let HeapFile { bytes, engine } = Backend::open(&options.common.place, Needs::Heaps).await?.export(options.heap).await?;
    let file = options.file.unwrap_or_else(|| format!("{}.heap", options.heap).into());
    let engine_text = engine.as_ref().map(ToString::to_string);
    if file.as_os_str() == STANDARD {
        screen.output(&bytes);
        screen.note(&format!("engine {}", engine_text.as_deref().unwrap_or("not known")));
        return Ok(());
    }
    if let Some(engine) = &engine_text {
        write_whole(&sidecar(&file), json!({ "engine": engine }).to_string().as_bytes())?;
    }
    write_whole(&file, &bytes)?;
    if options.common.json {
        print_json(screen, &json!({ "heap": options.heap, "file": file, "bytes": bytes.len(), "engine": engine_text }));
    } else {
        screen.note(&format!("wrote {} ({})", file.display(), table::size(bytes.len() as u64)));
    }
    Ok(())
}

/// The file next to a heap that names the engine that wrote it.
fn sidecar(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// Writes a file atomically.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BackendError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| BackendError::File { what: "written", path: path.into(), error })
}

async fn import(screen: &mut Screen, options: ImportOptions) -> Result<(), BackendError> {
    let bytes = read_file(&options.file)?;
    let engine = match options.engine {
        None if options.file.as_os_str() != STANDARD => read_engine(&sidecar(&options.file))?,
        given => given,
    };
    let is_known = engine.is_some();
    let answer = Backend::open(&options.common.place, Needs::Nothing).await?.import(HeapFile { bytes, engine }).await?;
    if options.common.json {
        print_json(screen, &answer);
        return Ok(());
    }
    screen.note(&format!("heap {}", text(&answer["heap"])));
    if !is_known {
        screen.aside("its engine is not known: the heap's V8 version is checked when it is used; `--engine ID` names the engine");
    }
    Ok(())
}

fn read_file(path: &Path) -> Result<Vec<u8>, BackendError> {
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == STANDARD {
        true => io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes),
        false => std::fs::read(path),
    };
    read.map_err(|error| BackendError::File { what: "read", path: path.into(), error })
}

/// Reads the engine id next to a heap. `None` if there is no such file.
fn read_engine(sidecar: &Path) -> Result<Option<EngineId>, BackendError> {
    let bytes = match std::fs::read(sidecar) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| BackendError::File { what: "read", path: sidecar.into(), error })?,
    };
    let bad = |why: String| BackendError::BadSidecar { sidecar: sidecar.into(), why };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
    text(&value["engine"]).parse().map(Some).map_err(|error: <EngineId as std::str::FromStr>::Err| bad(error.to_string()))
}

/// Those before one that is refused are deleted.
async fn rm(screen: &mut Screen, options: RmOptions) -> Result<(), BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    for heap in options.heaps {
        let answer = backend.delete_heap(heap).await?;
        match options.common.json {
            true => print_json(screen, &answer),
            false => screen.note(&format!("deleted {heap}")),
        }
    }
    Ok(())
}

async fn upgrade(screen: &mut Screen, options: UpgradeOptions) -> Result<(), BackendError> {
    let backend = Backend::open(&options.common.place, Needs::Database).await?;
    let replays = backend.replays(&options.confinement).await?;
    for heap in options.heaps {
        let answer = replays.upgrade_heap(heap).await?;
        match (options.common.json, text(&answer["upgraded"])) {
            (true, _) => print_json(screen, &answer),
            (false, upgraded) if upgraded == heap.to_string() => screen.note(&format!("{heap}: this engine can load it")),
            (false, upgraded) => {
                screen.output(format!("{upgraded}\n").as_bytes());
                screen.note(&format!("{heap}: rebuilt by repeating {} runs", answer["runs"]));
            }
        }
    }
    Ok(())
}

async fn gc(screen: &mut Screen, options: GcOptions) -> Result<(), BackendError> {
    let request = CollectRequest { dry_run: options.dry_run, unknown: options.unknown };
    let collected = Backend::open(&options.common.place, Needs::Heaps).await?.collect(request).await?;
    if options.common.json {
        print_json(screen, &collected);
        return Ok(());
    }
    let removed = collected["removed"].as_array().map(Vec::as_slice).unwrap_or_default();
    for key in removed {
        screen.output(format!("{}\n", text(key)).as_bytes());
    }
    let verb = if options.dry_run { "would remove" } else { "removed" };
    let size = table::size(collected["removed_bytes"].as_u64().unwrap_or_default());
    screen.note(&format!("{verb} {} heaps ({size}), kept {}", removed.len(), collected["kept"]));
    Ok(())
}

async fn sign(screen: &mut Screen, options: SignOptions) -> Result<(), BackendError> {
    let are_named = !options.heaps.is_empty();
    let request = SignRequest { heaps: options.heaps, dry_run: options.dry_run };
    let done = Backend::open(&options.common.place, Needs::Heaps).await?.sign(request).await?;
    if options.common.json {
        print_json(screen, &done);
        return Ok(());
    }
    let of = |field: &str| done[field].as_array().map(Vec::as_slice).unwrap_or_default();
    for key in of("signed") {
        screen.output(format!("{}\n", text(key)).as_bytes());
    }
    for skipped in of("skipped") {
        screen.error(&format!("not signed: {}", text(&skipped["why"])));
    }
    let verb = if options.dry_run { "would sign" } else { "signed" };
    screen.note(&format!(
        "{verb} {} heaps, {} were signed already, {} left as they are",
        of("signed").len(),
        done["unchanged"],
        of("skipped").len()
    ));
    match of("skipped").len() {
        count @ 1.. if are_named => Err(BackendError::NotSigned { count }),
        _ => Ok(()),
    }
}

async fn rotate_key(screen: &mut Screen, options: CommonOptions) -> Result<(), BackendError> {
    let answer = Backend::open(&options.place, Needs::Database).await?.rotate_heap_key().await?;
    match options.json {
        true => print_json(screen, &answer),
        false => screen.note("new heaps are signed with a new key: by running servers within a minute, by others from now on; `heapstead heaps sign --all` signs the others again"),
    }
    Ok(())
}

async fn export_keys(screen: &mut Screen, options: KeyFileOptions) -> Result<(), BackendError> {
    let keys = Backend::open(&options.common.place, Needs::Database).await?.export_heap_keys().await?;
    // With mode 0600.
    write_whole(&options.file, keys.as_bytes())?;
    match options.common.json {
        true => print_json(screen, &json!({ "file": options.file, "keys": keys.lines().count() })),
        false => screen.note(&format!("wrote {} keys to {}: keep them secret", keys.lines().count(), options.file.display())),
    }
    Ok(())
}

async fn import_keys(screen: &mut Screen, options: KeyFileOptions) -> Result<(), BackendError> {
    let text = String::from_utf8(read_file(&options.file)?).unwrap_or_default();
    let answer = Backend::open(&options.common.place, Needs::Nothing).await?.import_heap_keys(&text).await?;
    match options.common.json {
        true => print_json(screen, &answer),
        false => screen.note(&format!("added {} keys", answer["added"])),
    }
    Ok(())
}
