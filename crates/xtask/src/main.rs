//! `cargo run -p xtask -- tidy`: what a crate may not know can be read off its `Cargo.toml`, and this reads it.

mod tidy;

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
        _ => {
            eprintln!("usage: xtask tidy");
            std::process::ExitCode::FAILURE
        }
    }
}

fn workspace() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
