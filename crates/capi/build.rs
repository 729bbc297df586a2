//! The name under which programs find the shared library when they start. Its number grows when programs that were linked
//! before could no longer use it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libraddle_idx.so.0");
    }
}
