//! Builds the preloaded object and the driver plugin, written in C, and the program that measures others. They are
//! embedded in the command, so that only a single file has to be installed.

use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=plugin");
    println!("cargo:rerun-if-changed=measure");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let shim = [
        "adapt",
        "adapt_files",
        "caller",
        "dataset_lists",
        "direct",
        "evidence",
        "file_lists",
        "given",
        "log",
        "outcome",
        "records",
        "settings",
        "transfers",
        "wrappers",
    ];
    let shim: Vec<PathBuf> = shim.iter().map(|name| format!("shim/{name}.c").into()).collect();
    let driver: Vec<PathBuf> = ["plugin/driver.c", "shim/log.c", "shim/settings.c"].iter().map(PathBuf::from).collect();
    let measure = vec![PathBuf::from("measure/measure.c")];
    let all = [
        ("libraddle_apply.so", shim, true),
        ("libraddle_apply_driver.so", driver, true),
        ("raddle_measure", measure, false),
    ];
    for (name, sources, is_shared) in all {
        let object = out.join(name);
        // On other systems there is nothing to preload, which an empty object indicates.
        let is_built = if is_linux { link(&object, &sources, is_shared) } else { std::fs::write(&object, []).is_ok() };
        assert!(is_built, "building {name} from C failed");
    }
}

/// Links a program, or a shared object that exports only marked functions. It depends on the C library only.
fn link(object: &Path, sources: &[PathBuf], is_shared: bool) -> bool {
    let compiler = cc::Build::new().pic(true).opt_level(2).std("gnu11").cargo_metadata(false).get_compiler();
    let mut command = compiler.to_command();
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    command
        .args(is_shared.then_some("-shared"))
        // Debug information would be most of these files. A program for musl holds that of its C library, too.
        .args(is_release.then_some("-s"))
        .args(["-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-z,defs", "-o"])
        .arg(object);
    command.args(sources).args(["-ldl", "-lpthread"]);
    command.status().is_ok_and(|status| status.success())
}
