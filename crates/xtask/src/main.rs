//! `cargo run -p xtask -- tidy`: checks the dependency rules between crates, where SQL is, the tests and files that documents
//! name, and a few style rules.
//! `cargo run -p xtask -- wording`: lists phrases in comments that could be plainer.

mod references;
mod threats;
mod tidy;
mod wording;

fn main() -> std::process::ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => match tidy::check(&workspace()) {
            Ok(()) => std::process::ExitCode::SUCCESS,
            Err(complaints) => {
                for complaint in complaints {
                    eprintln!("tidy: {complaint}");
                }
                std::process::ExitCode::FAILURE
            }
        },
        Some("wording") => {
            wording::suggestions(&tidy::files(&workspace())).iter().for_each(|suggestion| println!("{suggestion}"));
            std::process::ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: xtask tidy | wording");
            std::process::ExitCode::FAILURE
        }
    }
}

fn workspace() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
