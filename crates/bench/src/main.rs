//! `make bench`: prints a table of results, writes JSON and reports how noisy the machine was. `--check` fails if a bar is missed,
//! `--short` takes less time, `--only engine`, `confinement`, `server`, `sessions`, `live`,
//! `kernels` or `contexts` measures one part.

mod confinement;
mod engine;
mod instructions;
mod kernels;
mod noise;
mod raw_loop;
mod report;
mod resolve;
mod sample;
mod server;

use heapstead_engine::Artifacts;
use report::Report;
use sample::Effort;

#[tokio::main(worker_threads = 2)]
async fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if let [flag, folder, rounds] = arguments.as_slice()
        && flag == resolve::FLAG
    {
        resolve::run(folder.as_ref(), rounds.parse().unwrap_or_else(|_| fail("ROUNDS is not a number"))).await;
        return std::process::ExitCode::SUCCESS;
    }
    if let [flag, way, rounds] = arguments.as_slice()
        && flag == server::contexts::READS_FLAG
    {
        server::contexts::reads(way, rounds.parse().unwrap_or_else(|_| fail("ROUNDS is not a number"))).await;
        return std::process::ExitCode::SUCCESS;
    }
    let only = arguments.iter().skip_while(|argument| *argument != "--only").nth(1);
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    let artifacts = match Artifacts::find() {
        Ok(artifacts) => artifacts,
        Err(error) => {
            eprintln!("error: {error}");
            return std::process::ExitCode::FAILURE;
        }
    };
    let effort = if asked("--short") { Effort::Short } else { Effort::Full };
    let mut report = Report::new(noise::measure(effort));
    if wanted("engine") {
        engine::measure(&artifacts, effort, &mut report).await;
    }
    if wanted("confinement") {
        confinement::measure(&artifacts, effort, &mut report).await;
    }
    if wanted("server") {
        server::measure(&artifacts, effort, &mut report).await;
    }
    if wanted("sessions") {
        server::sessions::measure(effort, &mut report).await;
    }
    if wanted("live") {
        server::live::measure(&artifacts, effort, &mut report).await;
    }
    if wanted("kernels") {
        kernels::measure(&artifacts, effort, &mut report).await;
    }
    if wanted("contexts") {
        server::contexts::measure(effort, &mut report).await;
    }
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
