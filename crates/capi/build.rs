//! Sets the soname under which programs find the shared library at run time. Its number is increased when previously
//! linked programs could no longer use the library.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libraddle_idx.so.0");
    }
}
