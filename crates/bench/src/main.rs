//! `make bench`: prints a table, writes JSON, and says how noisy the machine was. `--check` fails when a bar is missed, `--short` takes less time.

mod engine;
mod noise;
mod raw_loop;
mod report;
mod sample;
mod server;

use heapstead_engine::Artifacts;
use report::Report;
use sample::Effort;

#[tokio::main(worker_threads = 2)]
async fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let artifacts = match Artifacts::find() {
        Ok(artifacts) => artifacts,
        Err(error) => {
            eprintln!("error: {error}");
            return std::process::ExitCode::FAILURE;
        }
    };
    let effort = if asked("--short") { Effort::Short } else { Effort::Full };
    let mut report = Report::new(noise::measure(effort));
    engine::measure(&artifacts, effort, &mut report).await;
    server::measure(&artifacts, effort, &mut report).await;
    report.print();
    match report.write() {
        Ok(file) => eprintln!("written to {}", file.display()),
        Err(error) => eprintln!("the report can't be written: {error}"),
    }
    match asked("--check") && !report.all_met() {
        true => std::process::ExitCode::FAILURE,
        false => std::process::ExitCode::SUCCESS,
    }
}

fn fail(why: &str) -> ! {
    eprintln!("error: {why}");
    std::process::exit(1)
}
