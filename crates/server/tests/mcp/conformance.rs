//! The official conformance suite: every scenario is in the table of `tests/clients/conformance.md`, and all that apply pass. A second
//! table there lists the declared capabilities, so that no reason for an omitted scenario can become outdated.

use crate::clients::{repository, text, tool};
use crate::fixture::{Folders, Server};
use crate::peer::{Http, initialize, result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// The eras, each by its newest version.
const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Concurrent scenarios; each starts its own Node process.
const AT_ONCE: usize = 3;

/// Scenarios that need exactly one capability. They run exactly where it is declared.
const NEED: [(&str, &str); 7] = [
    ("tools-list", "tools"),
    ("resources-list", "resources"),
    ("resources-subscribe", "resources.subscribe"),
    ("resources-unsubscribe", "resources.subscribe"),
    ("logging-set-level", "logging"),
    ("prompts-list", "prompts"),
    ("completion-complete", "completions"),
];

/// A table row of a scenario.
#[derive(Default)]
struct Row {
    run: String,
    /// Checks that do not apply.
    exempt: BTreeSet<String>,
}

/// The rows of the table whose first column has this title.
fn rows(title: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("tests/clients/conformance.md")).expect("the document");
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("| {title} |"))).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<_> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "there is no table of {title}");
    rows
}

/// Where a capability is declared: in each era, and in stateless mode.
struct Declared(BTreeMap<String, [bool; 3]>);

impl Declared {
    fn read() -> Self {
        let row = |cells: Vec<String>| {
            let [name, columns @ ..] = &cells[..] else { panic!("{cells:?}") };
            let said = |cell: &String| match cell.as_str() {
                "yes" => true,
                "no" => false,
                other => panic!("{name}: {other}"),
            };
            let columns: Vec<_> = columns.iter().map(said).collect();
            (name.clone(), columns.try_into().expect("three columns"))
        };
        Self(rows("capability").into_iter().map(row).collect())
    }

    fn in_column(&self, column: usize) -> BTreeSet<&str> {
        self.0.iter().filter(|(_, columns)| columns[column]).map(|(name, _)| name.as_str()).collect()
    }

    fn nowhere(&self, name: &str) -> bool {
        *self.0.get(name).unwrap_or_else(|| panic!("`{name}` is not in the table of capabilities")) == [false; 3]
    }
}

/// Capabilities and their members in the table's notation. Of nested members, only the leaves are named.
fn names(capabilities: &Value) -> BTreeSet<String> {
    fn add(name: &str, value: &Value, names: &mut BTreeSet<String>) {
        let members = value.as_object().filter(|members| !members.is_empty());
        let is_top = !name.contains('.');
        if value != false && (members.is_none() || is_top) {
            names.insert(name.to_owned());
        }
        for (member, value) in members.into_iter().flatten() {
            add(&format!("{name}.{member}"), value, names);
        }
    }
    let mut found = BTreeSet::new();
    for (name, value) in capabilities.as_object().expect("capabilities") {
        match name.as_str() {
            "extensions" => found.extend(value.as_object().expect("extensions").keys().map(|name| format!("extensions/{name}"))),
            _ => add(name, value, &mut found),
        }
    }
    found
}

fn table(declared: &Declared) -> BTreeMap<String, Row> {
    let mut table = BTreeMap::<String, Row>::new();
    for cells in rows("scenario") {
        let [name, run, reason] = &cells[..] else { panic!("{cells:?}") };
        let runs = matches!(run.as_str(), "direct" | "proxy");
        assert!(runs || (run == "–" && !reason.is_empty()), "{name} has no reason");
        let undeclared = reason.strip_suffix("` is not declared").and_then(|reason| reason.strip_prefix('`'));
        assert!(undeclared.is_none_or(|capability| declared.nowhere(capability)), "{name}: {reason}, but it is");
        match name.split_once(" / ") {
            Some((scenario, check)) => {
                assert!(table.entry(scenario.into()).or_default().exempt.insert(check.into()), "{name} is there twice")
            }
            None => table.entry(name.into()).or_default().run = run.into(),
        }
    }
    for (scenario, capability) in NEED {
        assert_eq!(table[scenario].run == "–", declared.nowhere(capability), "{scenario} is run where `{capability}` is declared");
    }
    table
}

fn suite() -> Command {
    let mut command = tool("node");
    let suite = "import(process.env.HEAPSTEAD_TEST_PACKAGES + '/@modelcontextprotocol/conformance/dist/index.js')";
    command.args(["-e", suite, "--"]);
    command
}

/// The scenarios of the suite with their protocol versions.
fn scenarios() -> BTreeMap<String, String> {
    let output = suite().args(["list", "--server"]).output().expect("it starts");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(' '));
    let scenarios: BTreeMap<_, _> = rows.map(|(name, versions)| (name.to_owned(), versions.to_owned())).collect();
    assert!(scenarios.len() > 30, "{}", text(&output));
    scenarios
}

/// Runs a scenario. Returns the failed checks that are not exempt.
fn run(scenario: &str, version: Option<&str>, url: &str, exempt: &BTreeSet<String>, folder: &Path) -> Vec<String> {
    let out = folder.join(format!("{scenario}-{}", version.unwrap_or("extension")));
    let mut command = suite();
    command.args(["server", "--url", url, "--scenario", scenario, "-o"]).arg(&out);
    command.args(version.into_iter().flat_map(|version| ["--spec-version", version]));
    let output = command.output().expect("it starts");
    let files = std::fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.path().join("checks.json"));
    let checks: Vec<Value> = files
        .filter_map(|file| std::fs::read(file).ok())
        .flat_map(|bytes| serde_json::from_slice::<Vec<Value>>(&bytes).expect("checks"))
        .collect();
    let of = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    if of("SUCCESS").count() == 0 {
        return vec![format!("{scenario} at {version:?} checked nothing: {}", text(&output))];
    }
    let failed = of("FAILURE").filter(|check| !exempt.contains(check["id"].as_str().unwrap_or_default()));
    failed.map(|check| format!("{scenario} at {version:?}: {} {}", check["id"], check["errorMessage"])).collect()
}

/// Stops with the test.
struct Proxy {
    url: String,
    process: Child,
}

impl Proxy {
    fn start(server: &str) -> Self {
        let mut process = tool("node").args(["proxy.mjs", server]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut url).expect("its address");
        Self { url: url.trim().to_owned(), process }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Regression: the document said that logging and subscriptions are not declared long after they were.
#[tokio::test]
async fn the_documented_capabilities_are_the_declared_ones() {
    let declared = Declared::read();
    for (mode, columns) in [(&[][..], [0, 1]), (&["--stateless"], [2, 2])] {
        let server = Server::start_with(&Folders::new(), mode);
        let client = Http::modern(&server, &[]);
        let introduced = result(client.all(&initialize(ERAS[0])).await.pop().expect("an answer"));
        let discovered = result(client.ask("server/discover", json!({})).await);
        for (answer, column) in [introduced, discovered].iter().zip(columns) {
            let found = names(&answer["capabilities"]);
            let found: BTreeSet<_> = found.iter().map(String::as_str).collect();
            assert_eq!(found, declared.in_column(column), "{mode:?}, column {column}: {answer}");
        }
    }
}

#[test]
fn every_applicable_scenario_passes_and_none_is_missing() {
    let (table, scenarios) = (table(&Declared::read()), scenarios());
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(table.keys().collect()), names(scenarios.keys().collect()), "the table and the suite differ");
    let server = Server::start();
    let direct = format!("{}/mcp", server.url);
    let proxy = Proxy::start(&direct);
    let folders = Folders::new();
    let mut work = Vec::new();
    for (scenario, row) in &table {
        let url = match row.run.as_str() {
            "direct" => &direct,
            "proxy" => &proxy.url,
            _ => continue,
        };
        let versions = &scenarios[scenario];
        match versions.contains("extension") {
            true => work.push((scenario, None, url, &row.exempt)),
            false => work.extend(ERAS.iter().filter(|era| versions.contains(*era)).map(|era| (scenario, Some(*era), url, &row.exempt))),
        }
    }
    let (count, work, failures) = (work.len(), Mutex::new(work), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic").pop();
                    let Some((scenario, version, url, exempt)) = next else { return };
                    let failed = run(scenario, version, url, exempt, folders.path());
                    failures.lock().expect("no panic").extend(failed);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    assert!(failures.is_empty(), "of {count} runs:\n{}", failures.join("\n"));
}
