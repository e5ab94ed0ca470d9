//! The `heapstead` binary.

fn main() -> std::process::ExitCode {
    heapstead::main()
}
