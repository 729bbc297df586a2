//! Records how the command is built: target, profile, compiler and, if it is known, the commit.

use std::process::Command;

/// File that cargo adds to a published package; it names the commit.
const PACKAGED: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=RADDLE_COMMIT");
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let unknown = || "unknown".to_owned();
    record("TARGET", &variable("TARGET").unwrap_or_else(unknown));
    record("PROFILE", &variable("PROFILE").unwrap_or_else(unknown));
    record("COMPILER", &variable("RUSTC").and_then(|compiler| version(&compiler)).unwrap_or_else(unknown));
    // The repository is not asked here: cargo could not know when the answer changes. Makefile and workflows set the
    // variable.
    if let Some(commit) = variable("RADDLE_COMMIT").or_else(packaged) {
        record("COMMIT", &commit);
    }
}

fn record(name: &str, value: &str) {
    println!("cargo:rustc-env=RADDLE_BUILD_{name}={value}");
}

fn version(compiler: &str) -> Option<String> {
    let output = Command::new(compiler).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Returns the commit of a package from the registry: the hexadecimal number after `sha1`.
fn packaged() -> Option<String> {
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let behind = text.split_once("\"sha1\"")?.1.split('"').nth(1)?;
    behind.chars().all(|digit| digit.is_ascii_hexdigit()).then(|| behind.to_owned())
}
