//! The section about this program: how it was built, and what it contains.

use super::{Check, Section};
use crate::versions::{Build, libraries};
use raddle_codec::processor_features;
use serde_json::json;

/// Makes the section about this program.
pub(super) fn section() -> Section {
    let build = Build::this();
    let mut checks = vec![Check::ok("version", build.version).value(build.version)];
    checks.push(match build.commit {
        Some(commit) => Check::ok("commit", commit).value(commit),
        None => Check::ok("commit", "unknown to this build"),
    });
    let features = if build.features.is_empty() { "none".to_owned() } else { build.features.join(", ") };
    checks.push(Check::ok("features", features).value(json!(build.features)));
    let how = format!("{}, {}, {}", build.target, build.profile, build.compiler);
    let value = json!({ "target": build.target, "profile": build.profile, "compiler": build.compiler });
    checks.push(match build.profile {
        "release" => Check::ok("build", how).value(value),
        _ => Check::note("build", how)
            .value(value)
            .remedy("this build is slow and for development; make build makes the fast one, target/release/raddle"),
    });
    checks.extend(
        libraries().into_iter().map(|(name, version)| Check::ok(name, format!("{version}, built in")).value(version)),
    );
    checks.push(of_features(&processor_features()));
    Section::new("raddle", checks)
}

/// Describes the features of the processor that faster code needs.
fn of_features(features: &[(&str, bool)]) -> Check {
    let names = |has: bool| -> Vec<&str> {
        features.iter().filter(|(_, is_present)| *is_present == has).map(|(name, _)| *name).collect()
    };
    let (present, absent) = (names(true), names(false));
    let check = match (present.is_empty(), absent.is_empty()) {
        (_, false) => Check::note("code", format!("inflates more slowly: this processor lacks {}", absent.join(", "))),
        (false, true) => Check::ok("code", format!("uses {} to inflate", present.join(", "))),
        (true, true) => Check::ok("code", "the same for all processors of this kind"),
    };
    check.value(json!(present))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Mark;

    #[test]
    fn absent_features_are_named() {
        let check = of_features(&[("bmi1", true), ("bmi2", false), ("avx2", false)]);
        assert_eq!((check.mark, check.value), (Mark::Note, Some(json!(["bmi1"]))));
        assert!(check.found.ends_with("lacks bmi2, avx2"), "{}", check.found);
        assert_eq!(of_features(&[("avx2", true)]).found, "uses avx2 to inflate");
        assert_eq!(of_features(&[]).mark, Mark::Ok);
    }

    #[test]
    fn the_library_that_writes_files_is_named() {
        let checks = section().checks;
        let hdf5 = checks.iter().find(|check| check.name == "HDF5").unwrap();
        assert!(hdf5.found.starts_with(|first: char| first.is_ascii_digit()), "{hdf5:?}");
    }
}
