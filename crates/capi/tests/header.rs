//! Checks that `include/raddle_idx.h` is up to date with `src`; CAPI_HEADER=overwrite regenerates it.

use std::path::Path;

#[test]
fn the_header_is_that_of_the_functions() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_folder.join("cbindgen.toml")).expect("cbindgen.toml");
    let mut generated = Vec::new();
    cbindgen::generate_with_config(crate_folder, config).expect("a header").write(&mut generated);
    let path = crate_folder.join("include/raddle_idx.h");
    if std::env::var_os("CAPI_HEADER").is_some_and(|what| what == "overwrite") {
        std::fs::write(&path, &generated).expect("the header");
    }
    let existing = std::fs::read(&path).unwrap_or_default();
    assert!(
        existing == generated,
        "src was changed and the header not: CAPI_HEADER=overwrite cargo test -p raddle-capi --test header"
    );
    let text = String::from_utf8_lossy(&generated).into_owned();
    for name in ["call", "ranks", "reader", "writer"] {
        let source = std::fs::read_to_string(crate_folder.join(format!("src/{name}.rs"))).expect("a source");
        for exported in source.split("extern \"C\" fn raddle_idx_").skip(1) {
            let function = format!("raddle_idx_{}(", exported.split('(').next().unwrap_or_default());
            assert!(text.contains(&function), "{function}");
        }
    }
}
