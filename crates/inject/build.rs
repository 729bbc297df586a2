//! Builds the two C objects that programs are given: the preloaded one and the driver plugin. They are embedded in the
//! command, so that one file is all there is to install.

use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-changed=plugin");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    let shim = ["caller", "dataset_lists", "file_lists", "log", "outcome", "settings", "wrappers"];
    let shim: Vec<PathBuf> = shim.iter().map(|name| format!("shim/{name}.c").into()).collect();
    let driver: Vec<PathBuf> = ["plugin/driver.c", "shim/log.c", "shim/settings.c"].iter().map(PathBuf::from).collect();
    for (name, sources) in [("libraddle_apply.so", shim), ("libraddle_apply_driver.so", driver)] {
        let object = out.join(name);
        // Elsewhere there is nothing to preload; an empty object says so.
        let made = if is_linux { link(&object, &sources) } else { std::fs::write(&object, []).is_ok() };
        assert!(made, "building {name} from C failed");
    }
}

/// One shared object that exports only what is marked. It needs nothing but the C library.
fn link(object: &Path, sources: &[PathBuf]) -> bool {
    let compiler = cc::Build::new().pic(true).opt_level(2).std("gnu11").cargo_metadata(false).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wl,-z,defs", "-o"]).arg(object);
    command.args(sources).args(["-ldl", "-lpthread"]);
    command.status().is_ok_and(|status| status.success())
}
