//! `heapstead doctor`: checks everything a run needs, one line each, and says how to fix what is missing.

use super::colours::Colours;
use super::flags::{HeapPlace, ServeOptions};
use super::kernel;
use super::memory_bound::MemoryBound;
use super::screen::Screen;
use super::{EXIT_BAD_INPUT, serve};
use crate::auth::{self, TokenFile};
use crate::startup::{self, StartupError};
use heapstead_engine::{Artifacts, OptionalLayer, StatefulJit, cgroup};
use heapstead_service::{ContextPlace, ExecutionOutcome, OneShot, OneShotMode, OneShotRequest, Stores};
use heapstead_types::Limits;
use rustix::fs::{Access, access, statvfs};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use tokio::net::TcpListener;

pub const EXAMPLES: &str = "\
Examples:
  heapstead doctor                             prints one line per check
  heapstead doctor --http-port 8420            also checks that the port is free
  heapstead doctor --config heapstead.toml     checks what a server with this file needs
  heapstead doctor --json                      prints JSON
  heapstead doctor --limits --max-queued 100   prints the memory that such a server can use at most

Exit code: 0 if everything is present, 1 if something is missing.";

/// Required by the worker; Linux 5.19 and newer have it.
const LANDLOCK_ABI_MIN: i64 = 2;
/// Space for a few hundred small heaps.
const FREE_MB_MIN: u64 = 256;

#[derive(clap::Args)]
pub struct DoctorOptions {
    #[command(flatten)]
    server: ServeOptions,
    /// Print the most memory that a server with these flags can use, and what it consists of, instead of the checks
    #[arg(long)]
    limits: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

#[derive(serde::Serialize)]
struct Check {
    name: String,
    ok: bool,
    /// Everything works, but an optional layer of confinement is missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warning: bool,
    /// The finding.
    detail: String,
    /// How to fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn new<E: std::fmt::Display>(name: &str, found: Result<String, E>, fix: &str) -> Self {
        let (ok, fix) = (found.is_ok(), found.is_err().then(|| fix.to_owned()));
        let detail = found.unwrap_or_else(|problem| problem.to_string());
        Self { name: name.to_owned(), ok, warning: false, detail, fix }
    }

    /// A layer of confinement that not every kernel has.
    fn layer(layer: &OptionalLayer) -> Self {
        let check = Self::new(&layer.name, layer.outcome.clone(), fix_of_layer(&layer.name));
        Self { ok: true, warning: !check.ok, ..check }
    }
}

pub async fn doctor(options: DoctorOptions) -> ExitCode {
    let mut screen = Screen::new();
    if options.limits {
        return limits(&options, &mut screen);
    }
    let mut report = Report { ok: true, checks: Vec::new() };
    let mut report_checks = |checks: Vec<Check>| {
        for check in checks {
            report.ok &= check.ok;
            if !options.json {
                screen.output(line(&check).as_bytes());
            }
            report.checks.push(check);
        }
    };
    // Each result is shown as soon as it is known. The engine is slow, so it comes after the checks of what it needs.
    report_checks(parts());
    report_checks(kernel_checks());
    report_checks(engine(&options.server).await);
    report_checks(heaps(&options.server).await);
    report_checks(vec![database(&options.server).await]);
    report_checks(signatures(&options.server).await);
    report_checks(contexts(&options.server).await);
    report_checks(authentication(&options.server).await);
    report_checks(ports(&options.server).await);
    if options.json {
        match serde_json::to_string(&report) {
            Ok(json) => screen.output(format!("{json}\n").as_bytes()),
            Err(error) => screen.error(&format!("the report has no JSON form: {error}")),
        }
    } else {
        let missing = report.checks.iter().filter(|check| !check.ok).count();
        let warnings = report.checks.iter().filter(|check| check.warning).count();
        screen.aside(&match (missing, warnings) {
            (0, 0) => "everything is present".to_owned(),
            (0, _) => format!("everything required is present; {warnings} warnings: see → above"),
            _ => format!("{missing} missing: see → above"),
        });
    }
    if report.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The memory that a server with these flags can use.
fn limits(options: &DoctorOptions, screen: &mut Screen) -> ExitCode {
    if let Err(error) = options.server.check_limits() {
        screen.error(&error.to_string());
        return ExitCode::from(EXIT_BAD_INPUT);
    }
    let bound = MemoryBound::new(&options.server);
    let text =
        if options.json { serde_json::to_string(&bound).map(|json| json + "\n") } else { Ok(bound.table(Colours::of(&std::io::stdout()))) };
    match text {
        Ok(text) => screen.output(text.as_bytes()),
        Err(error) => screen.error(&format!("the report has no JSON form: {error}")),
    }
    ExitCode::SUCCESS
}

fn line(check: &Check) -> String {
    let colours = Colours::of(&std::io::stdout());
    let mark = match (check.ok, check.warning) {
        (false, _) => colours.red("✗"),
        (true, true) => colours.yellow("!"),
        (true, false) => colours.green("✓"),
    };
    let fix = check.fix.as_ref().map_or(String::new(), |fix| format!("\n    {} {fix}", colours.cyan("→")));
    format!("{mark} {}: {}{fix}\n", check.name, check.detail)
}

/// The files of the engine.
fn parts() -> Vec<Check> {
    const FIX: &str = "run `make build`, or set HEAPSTEAD_ENGINE_DIR to the folder that holds the engine's parts";
    let (host, worker) = match Artifacts::find() {
        Ok(parts) => (usable(&parts.host, Access::EXEC_OK), usable(&parts.worker, Access::READ_OK)),
        Err(error) => {
            let find = |part: fn(Artifacts) -> PathBuf| {
                let paths: Vec<PathBuf> = error.searched.iter().map(|folder| part(Artifacts::in_folder(folder))).collect();
                let there = paths.iter().find(|path| path.exists()).map(|path| path.display().to_string());
                there.ok_or_else(|| {
                    format!("there is no {}", paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", no "))
                })
            };
            (find(|parts| parts.host), find(|parts| parts.worker))
        }
    };
    vec![Check::new("V8 host", host, FIX), Check::new("worker library", worker, FIX)]
}

fn usable(path: &Path, how: Access) -> Result<String, String> {
    match access(path, how) {
        Ok(()) => Ok(path.display().to_string()),
        Err(error) => Err(format!("{} can't be used: {error}", path.display())),
    }
}

fn kernel_checks() -> Vec<Check> {
    let landlock = match kernel::landlock_abi() {
        Ok(abi) if abi >= LANDLOCK_ABI_MIN => Ok(format!("ABI {abi}")),
        Ok(abi) => Err(format!("ABI {abi}, at least {LANDLOCK_ABI_MIN} is needed")),
        Err(error) => Err(format!("not available: {error}")),
    };
    let available = |answer: Result<(), String>| answer.map(|()| "available".to_owned());
    vec![
        Check::new(
            "Landlock",
            landlock,
            "use Linux 5.19 or newer, and boot it with `landlock` in its `lsm=` list; in a container, let the system calls landlock_* through",
        ),
        Check::new(
            "seccomp",
            available(kernel::seccomp_kills().map_err(|error| format!("not available: {error}"))),
            "use a kernel with CONFIG_SECCOMP_FILTER (any distribution's own has it); in a container, let the system call seccomp through",
        ),
        Check::new(
            "pidfd_open",
            available(kernel::pidfd().map_err(|error| format!("not available: {error}"))),
            "use Linux 5.3 or newer; in a container, let the system call pidfd_open through",
        ),
        Check::new(
            "memfd sealing",
            available(kernel::sealed_memory().map_err(|error| format!("not available: {error}"))),
            "use Linux 3.17 or newer; in a container, let the system call memfd_create through",
        ),
        Check { name: "cgroup".to_owned(), ok: true, warning: false, detail: cgroup(), fix: None },
    ]
}

/// Not required: without a cgroup, the limits of each worker hold, and the scheduler bounds their sum.
fn cgroup() -> String {
    match cgroup::delegated() {
        Ok(group) => format!("{} is delegated: a server puts its workers into a group of their own", group.display()),
        Err(why) => format!("not used: {why}. A service manager can delegate one, systemd with `Delegate=cpu memory pids` in the unit"),
    }
}

/// How an operator can make a layer of confinement available.
fn fix_of_layer(name: &str) -> &'static str {
    match name {
        "speculation" => "the kernel decides: boot without `mitigations=off`, or update the processor's microcode",
        "user id" => "start the server as a user without privileges, or as root with CAP_KILL, CAP_SETGID and CAP_SETUID",
        _ => {
            "allow unprivileged user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns); in a container, let clone with CLONE_NEWUSER, mount and pivot_root through; not in a chroot"
        }
    }
}

/// End to end: starts an engine and runs code in a confined worker. Also the layers of confinement that the kernel may lack.
async fn engine(server: &ServeOptions) -> Vec<Check> {
    let began = Instant::now();
    let started = match server.confinement.config() {
        Ok(config) => startup::start_engine(config, || Screen::new().aside("starting the engine …")).await,
        Err(error) => Err(error.into()),
    };
    let layers: Vec<Check> = started.iter().flat_map(|engine| engine.layers()).map(Check::layer).collect();
    let optional: Vec<Check> =
        started.iter().flat_map(|engine| [stateful_jit(engine.stateful_jit()), live_sessions(engine.live())]).collect();
    let found = match started {
        Err(error) => Err(format!("it does not start: {error}")),
        Ok(engine) => {
            let started_ms = began.elapsed().as_millis();
            let began = Instant::now();
            let run =
                OneShot::begin(&engine, OneShotRequest { code: "1+1".into(), mode: OneShotMode::Stateless, limits: Limits::default() })
                    .await;
            match run.finish().await.end {
                ExecutionOutcome::Completed { result, .. } if result == "2" => {
                    Ok(format!("{}, started in {started_ms} ms, ran 1+1 in {} ms", engine.info().id, began.elapsed().as_millis()))
                }
                ExecutionOutcome::Completed { result, .. } => Err(format!("1+1 gave {result}")),
                end => Err(format!("1+1 did not run: {}", end.error().unwrap_or_default())),
            }
        }
    };
    let engine = Check::new("engine", found, "fix what is missing above; if nothing is, rebuild the parts with `make build`");
    std::iter::once(engine).chain(optional).chain(layers).collect()
}

/// Not required: without it, stateful code is slower.
fn stateful_jit(state: &StatefulJit) -> Check {
    let found = match state {
        StatefulJit::On => Ok("optimised".to_owned()),
        StatefulJit::Off => Ok("interpreted, because of `--stateful-jit=off` or `--jitless`".to_owned()),
        StatefulJit::Unavailable { why } => Err(format!("interpreted: {why}")),
    };
    let check = Check::new("stateful code", found, "rebuild the worker library and the V8 host together with `make build`");
    Check { ok: true, warning: !check.ok, ..check }
}

/// Not required: without it, every turn of a session restores a heap.
fn live_sessions(state: &Result<(), String>) -> Check {
    let found = state.clone().map(|()| "available".to_owned()).map_err(|why| format!("not available: {why}"));
    let check = Check::new("live sessions", found, "allow user and PID namespaces, and seccomp user notification, where the server runs");
    Check { ok: true, warning: !check.ok, ..check }
}

async fn heaps(server: &ServeOptions) -> Vec<Check> {
    match server.stores.heaps.place() {
        Err(error) => vec![Check::new("heaps", Err(error), "correct the flags")],
        Ok(HeapPlace::Folder(folder)) => heap_folder(folder),
        Ok(HeapPlace::Bucket { settings, cache }) => {
            let opened = server.stores.heaps.open();
            // A bucket that does not answer takes until its timeout.
            let found = match opened {
                Ok(heaps) => tokio::task::spawn_blocking(move || heaps.check()).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let found = found.and_then(|checked| checked.map_err(|error| error.to_string()));
            let found = found.map(|()| format!("the bucket `{}` can be written to and read", settings.bucket));
            let fix = "check `--s3-bucket`, `--s3-endpoint`, `--s3-region` and the credentials (or the AWS_… variables), and that they may put, get and list";
            let mut checks = vec![Check::new("S3", found, fix)];
            if let Some((folder, _)) = cache {
                let found = startup::open_heaps(folder)
                    .and_then(|heaps| Ok(heaps.check()?))
                    .map(|()| format!("{} can be written to", folder.display()));
                checks.push(Check::new(
                    "heap cache",
                    found,
                    "give this account the right to write there, or choose another folder with `--cache-dir DIR`",
                ));
            }
            checks
        }
    }
}

fn heap_folder(folder: &Path) -> Vec<Check> {
    let opened = startup::open_heaps(folder).and_then(|heaps| Ok(heaps.check()?));
    let found = opened.map(|()| format!("{} can be written to", folder.display()));
    let fix = "give this account the right to write there, or choose another folder with `--directory-path DIR`";
    vec![
        Check::new("heap folder", found, fix),
        Check::new("disk space", free_space(folder), "free some space there, or choose another folder with `--directory-path DIR`"),
    ]
}

async fn database(server: &ServeOptions) -> Check {
    let folder = &server.stores.database.session_db_path;
    let found = match startup::open_database(folder) {
        Ok(database) => database.records.check().await.map_err(StartupError::from),
        Err(error) => Err(error),
    };
    let fix = "give this account the right to write there, or choose another folder with `--session-db-path DIR`";
    Check::new("database", found.map(|()| format!("{} can be read and written", folder.display())), fix)
}

/// Whether heaps of an earlier version have to be signed. If the stores can't be read, other checks say so.
async fn signatures(server: &ServeOptions) -> Vec<Check> {
    if server.stateless {
        return Vec::new();
    }
    let (Ok(heaps), Ok(database)) = (server.stores.heaps.open(), startup::open_database(&server.stores.database.session_db_path)) else {
        return Vec::new();
    };
    let found = match Stores::open(heaps, database, server.policy()).heaps().count_unsigned().await {
        Err(_) => return Vec::new(),
        Ok(0) => Ok("no unsigned heap was found".to_owned()),
        Ok(_) => Err("some heaps have no signature, and are not restored"),
    };
    vec![Check::new("heap signatures", found, "if you trust all heaps in the store, run `heapstead heaps sign --all` with the same flags")]
}

/// The context store, if there is one.
async fn contexts(server: &ServeOptions) -> Vec<Check> {
    let settings = match server.contexts.settings(&server.stores.database.session_db_path) {
        Err(error) => return vec![Check::new("contexts", Err(error), "correct the flags")],
        Ok(settings) => settings.filter(|_| !server.stateless),
    };
    let Some(settings) = settings else { return Vec::new() };
    let fix = match &settings.place {
        ContextPlace::Redis { .. } => {
            "start Redis, or check `--redis-url` and `--context-key-file`; without it, a server runs without contexts"
        }
        _ => {
            "give this account the right to write there, or choose another folder with `--session-db-path DIR`; check `--context-key-file`"
        }
    };
    vec![Check::new("contexts", settings.check().await, fix)]
}

/// Authentication, if it is configured.
async fn authentication(server: &ServeOptions) -> Vec<Check> {
    let settings = match server.auth.check_exposure(server.bind_host).and_then(|()| server.auth.settings()) {
        Ok(settings) => settings,
        Err(error) => return vec![Check::new("authentication", Err(error), "correct the flags")],
    };
    let mut checks = Vec::new();
    if let Some(path) = &settings.tokens {
        checks.push(Check::new(
            "tokens",
            tokens(path),
            "make the file accessible to this account only (`chmod 600`), or choose another with `--auth-tokens FILE`",
        ));
    }
    if let Some(jwt) = &settings.jwt {
        let found = auth::probe_keys(&jwt.jwks_url).await;
        let found = found.map(|count| format!("{count} keys at {}", jwt.jwks_url)).map_err(|error| format!("{}: {error}", jwt.jwks_url));
        checks.push(Check::new(
            "JWKS",
            found,
            "check `--jwks-url`, and that this machine can reach it; the issuer's documentation names the URL",
        ));
    }
    checks
}

fn tokens(path: &Path) -> Result<String, String> {
    let file = TokenFile::new(path);
    let count = file.read().map_err(|error| error.to_string())?.len();
    match file.too_open() {
        Ok(None) => Ok(format!("{count} in {}", path.display())),
        Ok(Some(mode)) => Err(format!("{} is readable by all users of this machine (mode {mode:03o})", path.display())),
        Err(error) => Err(format!("{} can't be inspected: {error}", path.display())),
    }
}

/// The configured ports. Without any, the server uses stdio.
async fn ports(server: &ServeOptions) -> Vec<Check> {
    let mut checks = Vec::new();
    for port in [server.http_port, server.sse_port].into_iter().flatten() {
        let address = SocketAddr::new(server.bind_host, port);
        let found = TcpListener::bind(address).await;
        let fix = found.as_ref().err().map(serve::listen_hint).unwrap_or_default();
        let found = found.map(|_| format!("{address} is free")).map_err(|error| format!("{address} can't be listened on: {error}"));
        checks.push(Check::new("port", found, fix));
    }
    checks
}

fn free_space(folder: &Path) -> Result<String, String> {
    let disk = statvfs(folder).map_err(|error| format!("{} can't be queried: {error}", folder.display()))?;
    let free_mb = (disk.f_bavail * disk.f_frsize) >> 20;
    match free_mb {
        FREE_MB_MIN.. => Ok(format!("{free_mb} MB free")),
        _ => Err(format!("{free_mb} MB free, at least {FREE_MB_MIN} MB should be")),
    }
}
