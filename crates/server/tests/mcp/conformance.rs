//! The official conformance suite: every scenario is in the table of `tests/clients/conformance.md`, and all that apply pass.

use crate::clients::{repository, text, tool};
use crate::fixture::{Folders, Server};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// The eras, each by its newest version.
const ERAS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Scenarios that run at once: each starts a Node of its own.
const AT_ONCE: usize = 3;

/// What the table says of a scenario.
#[derive(Default)]
struct Row {
    run: String,
    /// Checks that do not apply.
    exempt: BTreeSet<String>,
}

fn table() -> BTreeMap<String, Row> {
    let text = std::fs::read_to_string(repository().join("tests/clients/conformance.md")).expect("the table");
    let mut table = BTreeMap::<String, Row>::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("| ")) {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let [name, run, reason, ..] = cells[..] else { panic!("{line}") };
        if name == "scenario" {
            continue;
        }
        assert!(matches!(run, "direct" | "stand-in") || !reason.is_empty(), "{name} has no reason");
        match name.split_once(" / ") {
            Some((scenario, check)) => {
                assert!(table.entry(scenario.into()).or_default().exempt.insert(check.into()), "{name} is there twice")
            }
            None => table.entry(name.into()).or_default().run = run.into(),
        }
    }
    table
}

fn suite() -> Command {
    let mut command = tool("node");
    let suite = "import(process.env.HEAPSTEAD_TEST_PACKAGES + '/@modelcontextprotocol/conformance/dist/index.js')";
    command.args(["-e", suite, "--"]);
    command
}

/// Scenarios of the suite, with the versions that they are for.
fn scenarios() -> BTreeMap<String, String> {
    let output = suite().args(["list", "--server"]).output().expect("it starts");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = listed.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split_once(' '));
    let scenarios: BTreeMap<_, _> = rows.map(|(name, versions)| (name.to_owned(), versions.to_owned())).collect();
    assert!(scenarios.len() > 30, "{}", text(&output));
    scenarios
}

/// Runs a scenario, and says which checks failed that should not have.
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

/// Ends with the test.
struct StandIn {
    url: String,
    process: Child,
}

impl StandIn {
    fn start(server: &str) -> Self {
        let mut process =
            tool("node").args(["stand_in.mjs", server]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut url = String::new();
        BufReader::new(process.stdout.take().expect("piped")).read_line(&mut url).expect("its address");
        Self { url: url.trim().to_owned(), process }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn every_scenario_that_applies_passes_and_none_is_forgotten() {
    let (table, scenarios) = (table(), scenarios());
    let names = |keys: Vec<&String>| keys.into_iter().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(table.keys().collect()), names(scenarios.keys().collect()), "the table and the suite differ");
    let server = Server::start();
    let direct = format!("{}/mcp", server.url);
    let stand_in = StandIn::start(&direct);
    let folders = Folders::new();
    let mut work = Vec::new();
    for (scenario, row) in &table {
        let url = match row.run.as_str() {
            "direct" => &direct,
            "stand-in" => &stand_in.url,
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
