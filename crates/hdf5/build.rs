//! Compiles the C shim (the planning driver, and the set-up of libhdf5) against the headers of the libhdf5 that is
//! linked, so that a change of a driver class or of a signature is a compile error and not a crash.

fn main() {
    println!("cargo::rerun-if-changed=shim");
    // hdf5-metno-sys tells its direct dependents where the bundled headers lie.
    println!("cargo::rerun-if-env-changed=DEP_HDF5_INCLUDE");
    let Ok(include) = std::env::var("DEP_HDF5_INCLUDE") else {
        println!("cargo::error=hdf5-metno-sys did not tell its include folder (DEP_HDF5_INCLUDE)");
        return;
    };
    cc::Build::new()
        .file("shim/library.c")
        .file("shim/planning_driver.c")
        .file("shim/gaps.c")
        .file("shim/filters.c")
        .include(include)
        // GNU for pread and pwrite. A function that is not declared returns an int: an offset cut to 32 bits.
        .std("gnu11")
        .define("_FILE_OFFSET_BITS", "64")
        .flag("-Werror=implicit-function-declaration")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .compile("raddle_hdf5_shim");
}
