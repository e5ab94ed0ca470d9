//! The baseline: V8 alone, in one process, doing the same work. See `crates/worker/src/vm/bench.rs`.

use heapstead_engine::Artifacts;
use std::io::{BufRead, BufReader, Result, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

pub struct RawLoop {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RawLoop {
    pub fn start(artifacts: &Artifacts) -> Result<Self> {
        let mut child = Command::new(&artifacts.host)
            .arg("raw-loop")
            .arg(&artifacts.base_heap)
            .env_clear()
            .env("LD_PRELOAD", &artifacts.worker)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn ask(&mut self, what: &str) -> Result<String> {
        writeln!(self.input, "{what}")?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// One round: creates an isolate from the base heap, evaluates, and takes a snapshot if `what` is `stateful`.
    pub fn round(&mut self, what: &str) -> Result<Duration> {
        let answer = self.ask(what)?;
        answer.parse().map(Duration::from_nanos).map_err(|_| std::io::Error::other(format!("the raw loop answered {answer:?}")))
    }

    /// Bytes of V8's empty snapshot and of the base heap.
    pub fn sizes(&mut self) -> Result<(f64, f64)> {
        let answer = self.ask("sizes")?;
        let numbers: Vec<f64> = answer.split(' ').filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            [empty, base] => Ok((empty, base)),
            _ => Err(std::io::Error::other(format!("the raw loop answered {answer:?}"))),
        }
    }
}

impl Drop for RawLoop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
