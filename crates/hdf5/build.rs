//! Compiles the C shim (the planning driver, and the set-up of libhdf5) against the headers of the linked
//! libhdf5, so that a change to a driver class or signature is a compile error instead of a crash.

fn main() {
    println!("cargo::rerun-if-changed=shim");
    // hdf5-metno-sys passes the location of the bundled headers to its direct dependents.
    println!("cargo::rerun-if-env-changed=DEP_HDF5_INCLUDE");
    let Ok(include) = std::env::var("DEP_HDF5_INCLUDE") else {
        println!("cargo::error=hdf5-metno-sys did not set its include folder (DEP_HDF5_INCLUDE)");
        return;
    };
    cc::Build::new()
        .file("shim/library.c")
        .file("shim/planning_driver.c")
        .file("shim/gaps.c")
        .file("shim/filters.c")
        .include(include)
        // GNU for pread and pwrite. An undeclared function would return an int, truncating offsets to 32 bits.
        .std("gnu11")
        .define("_FILE_OFFSET_BITS", "64")
        .flag("-Werror=implicit-function-declaration")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("raddle_hdf5_shim");
}
