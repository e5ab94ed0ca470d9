//! Configuration files: every accepted setting is a known flag with a value that the flag accepts on the command line.

use heapstead_server::fuzzing::configuration;

pub fn run(text: &str) {
    match configuration(text) {
        Ok(settings) => assert!(settings.iter().all(|(flag, _)| !flag.is_empty() && flag != "config")),
        Err(error) => assert!(error.contains("config.toml"), "the error names the file: {error}"),
    }
}
