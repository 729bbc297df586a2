//! How this program was built, and the versions of the libraries that it contains.

use std::fmt::Write;

/// Build of this program, as recorded by `build.rs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Version of raddle.
    pub version: &'static str,
    /// Commit of the sources. A source archive does not know it.
    pub commit: Option<&'static str>,
    /// Features that are compiled in.
    pub features: Vec<&'static str>,
    /// Platform for which the program is compiled.
    pub target: &'static str,
    /// Profile of cargo: `release` for optimised builds, otherwise `debug`.
    pub profile: &'static str,
    /// Name and version of the compiler.
    pub compiler: &'static str,
}

impl Build {
    /// Returns how this program was built.
    pub fn this() -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("RADDLE_BUILD_COMMIT"),
            features: [("mpi", cfg!(feature = "mpi"))]
                .iter()
                .filter(|(_, is_on)| *is_on)
                .map(|(name, _)| *name)
                .collect(),
            target: env!("RADDLE_BUILD_TARGET"),
            profile: env!("RADDLE_BUILD_PROFILE"),
            compiler: env!("RADDLE_BUILD_COMPILER"),
        }
    }
}

/// Returns the names and versions of the contained libraries that report a version.
pub fn libraries() -> Vec<(&'static str, String)> {
    [raddle_hdf5::ffi::library_versions(), raddle_codec::library_versions()].concat()
}

/// Formats the line that `--version` prints.
pub fn brief() -> String {
    format!("raddle {}\n", Build::this().version)
}

/// Formats all that is known of this build, one fact a line.
pub fn verbose() -> String {
    let build = Build::this();
    let features = if build.features.is_empty() { "none".to_owned() } else { build.features.join(", ") };
    let mpi = raddle_mpi::library();
    // Some libraries describe themselves in several lines.
    let mpi = mpi.as_deref().map_or("none", |text| text.lines().next().unwrap_or_default());
    let mut text = brief();
    let facts = [
        ("commit", build.commit.unwrap_or("unknown")),
        ("features", &features),
        ("target", build.target),
        ("profile", build.profile),
        ("compiler", build.compiler),
        ("MPI", mpi),
    ];
    let libraries = libraries();
    let libraries = libraries.iter().map(|(name, version)| (*name, version.as_str()));
    for (name, value) in facts.into_iter().chain(libraries) {
        let _ = writeln!(text, "{name}: {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_that_of_the_short_version() {
        let text = verbose();
        assert_eq!(text.lines().next().unwrap(), brief().trim_end());
        for name in ["commit", "features", "target", "profile", "compiler", "MPI", "HDF5", "zlib", "zstd", "lz4"] {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            assert!(line.is_some_and(|value| !value.is_empty()), "{name}: {text}");
        }
    }
}
