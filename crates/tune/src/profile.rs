//! Profiles: settings that were measured to help, each with its evidence, and the machine they were measured on.
//!
//! Written by `tune` and read by `apply`, `merge` and others. Invariants: a value is under `[settings]` if it only
//! affects how and when bytes are written, and under `[layout]` if it changes the file's contents, so that nobody
//! changes files by mistake; a profile of a newer format is refused, but unknown fields are accepted.

use crate::error::{Result, TuneError};
use crate::fingerprint::{FileSystem, Machine};
use crate::knob::{Knob, LibraryVersion, SettingValue, Settings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Format version that this program writes.
pub const FORM: u32 = 1;

/// Settings for one kind of work on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Format version, [`FORM`].
    pub form: u32,
    /// Program and version that measured it.
    pub program: String,
    /// Workload, with its scale: `occam-2005 at small`.
    pub workload: String,
    /// Time of the measurement, in seconds since 1970.
    pub measured_unix_s: u64,
    /// The oldest HDF5 that reads files written with all settings, layout included; absent if all versions do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readable_by: Option<LibraryVersion>,
    /// Maximum ratio of the file length to that with the defaults that was allowed.
    pub max_inflation: f64,
    /// Machine of the measurement.
    pub machine: Machine,
    /// File system that was written to.
    pub file_system: FileSystem,
    /// HDF5 library that was measured.
    pub hdf5: MeasuredLibrary,
    /// All settings together compared with the defaults, on data that the search had not used; absent if not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<Evidence>,
    /// Settings of how and when bytes are written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<Knob, MeasuredValue>,
    /// Settings that change the file's contents; applied to other programs only if the user allows it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layout: BTreeMap<Knob, MeasuredValue>,
    /// Options of `raddle idx write`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub idx: BTreeMap<IdxOption, MeasuredValue>,
}

/// An option of `raddle idx write` that a profile can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdxOption {
    /// Size of power-of-two boxes: `default`, `expanded`, `cube` or `64x64x64`.
    Box,
    /// Number of blocks per file.
    BlocksPerFile,
    /// Number of ranks that encode and write blocks.
    Aggregators,
}

impl IdxOption {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::BlocksPerFile => "blocks_per_file",
            Self::Aggregators => "aggregators",
        }
    }

    fn takes(self, value: &SettingValue) -> bool {
        matches!(
            (self, value),
            (Self::Box, SettingValue::Text(_)) | (Self::BlocksPerFile | Self::Aggregators, SettingValue::Whole(1..))
        )
    }
}

/// A libhdf5 that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLibrary {
    /// Version, such as `1.10.8`.
    pub version: String,
    /// `bundled`, or the file it was loaded from.
    pub library: String,
}

/// A value and its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredValue {
    /// Measured value of the setting.
    pub value: SettingValue,
    /// Whether to override a value chosen by the program. Raddle never writes it: users may set it.
    #[serde(default)]
    pub force: bool,
    /// Comparison with the default of this setting alone.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Comparison of a candidate with the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Median of the paired ratios to the default; a value below 1 means less of [`Evidence::metric`].
    pub ratio: f64,
    /// Bounds of the 95 % confidence interval of `ratio`.
    pub interval: [f64; 2],
    /// Number of blocks, each with one run of both.
    pub blocks: u32,
    /// Metric that was compared.
    pub metric: Metric,
    /// Ratio of the file length to that with the default.
    pub inflation: f64,
}

/// Metric of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Elapsed seconds.
    WallS,
    /// Seconds of processor time, user and system.
    CpuS,
    /// Number of read and write calls.
    Calls,
}

impl Metric {
    /// Returns the name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::WallS => "wall_s",
            Self::CpuS => "cpu_s",
            Self::Calls => "calls",
        }
    }
}

impl Profile {
    /// Reads the profile at `path`.
    ///
    /// # Errors
    /// If it cannot be read, is not a profile, has a newer format, or holds an invalid value.
    pub fn read(path: &Path) -> Result<Self> {
        let failed = |source| TuneError::Io { path: path.to_path_buf(), operation: "reading the profile", source };
        Self::parse(path, &std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Parses a profile; `path` is used in messages.
    ///
    /// # Errors
    /// As for [`Profile::read`].
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Form {
            form: u32,
        }
        let of_form = |source| TuneError::Form { path: path.to_path_buf(), what: "profile", source: Box::new(source) };
        // Checked first: a newer format may have fields that this one cannot read.
        let Form { form } = toml::from_str(text).map_err(of_form)?;
        if form > FORM {
            return Err(TuneError::Newer { path: path.to_path_buf(), found: form, known: FORM });
        }
        let profile: Self = toml::from_str(text).map_err(of_form)?;
        for (settings, changes_layout) in [(&profile.settings, false), (&profile.layout, true)] {
            for (knob, measured) in settings {
                if knob.changes_layout() != changes_layout {
                    let belongs = if changes_layout { "settings" } else { "layout" };
                    return Err(TuneError::Heading { path: path.to_path_buf(), knob: *knob, belongs });
                }
                let invalid = |source| TuneError::Value { path: path.to_path_buf(), source };
                knob.check(&measured.value).map_err(invalid)?;
            }
        }
        match profile.idx.iter().find(|(option, measured)| !option.takes(&measured.value)) {
            Some((option, measured)) => {
                let (path, value) = (path.to_path_buf(), measured.value.clone());
                Err(TuneError::IdxValue { path, option: option.name(), value })
            }
            None => Ok(profile),
        }
    }

    /// Serialises the profile as TOML.
    pub fn to_toml(&self) -> String {
        let head = "# HDF5 settings that raddle measured on this machine. `ratio` is that of `metric` to the default,\n\
                    # `interval` its 95 % confidence interval. What stands under [layout] changes what files hold.\n";
        // Every field is a plain value or a table with string keys, which TOML can represent.
        format!("{head}{}", toml::to_string(self).unwrap_or_else(|error| unreachable!("a profile is TOML: {error}")))
    }

    /// Writes the profile to `path`, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |source| TuneError::Io { path: path.to_path_buf(), operation: "writing the profile", source };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(self.to_toml().as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Returns the values that do not change the layout and, if `with_layout` is true, also those that do.
    pub fn values(&self, with_layout: bool) -> Settings {
        let layout = self.layout.iter().filter(|_| with_layout);
        Settings(self.settings.iter().chain(layout).map(|(knob, measured)| (*knob, measured.value.clone())).collect())
    }

    /// Adds a value under the heading it belongs to.
    pub fn put(&mut self, knob: Knob, measured: MeasuredValue) {
        let settings = if knob.changes_layout() { &mut self.layout } else { &mut self.settings };
        settings.insert(knob, measured);
        self.readable_by = self.values(true).readable_by();
    }

    /// Returns whether the profile may be valid for `machine` and `file_system`.
    pub fn is_for(&self, machine: &Machine, file_system: &FileSystem) -> bool {
        self.machine.is_like(machine) && self.file_system == *file_system
    }

    /// Returns the newest profile in `folder` that was measured on `machine` and `file_system`, with its path. Files
    /// that are not profiles are skipped.
    ///
    /// # Errors
    /// If the folder exists and cannot be listed.
    pub fn find(folder: &Path, machine: &Machine, file_system: &FileSystem) -> Result<Option<(PathBuf, Self)>> {
        let failed = |source| TuneError::Io { path: folder.to_path_buf(), operation: "listing profiles", source };
        let entries = match std::fs::read_dir(folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            entries => entries.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            paths.extend(path.extension().is_some_and(|extension| extension == "toml").then_some(path));
        }
        // Sorted by name, so that the choice between two profiles of the same second is stable.
        paths.sort();
        let fit = paths.into_iter().filter_map(|path| Some((Self::read(&path).ok()?, path)));
        let fit = fit.filter(|(profile, _)| profile.is_for(machine, file_system));
        Ok(fit.max_by_key(|(profile, _)| profile.measured_unix_s).map(|(profile, path)| (path, profile)))
    }
}

/// Returns the folder of the user's profiles: `$XDG_CONFIG_HOME/raddle/profiles`, otherwise
/// `~/.config/raddle/profiles`.
pub fn user_profile_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("raddle").join("profiles"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = include_str!("../examples/profile.toml");

    fn example() -> Profile {
        Profile::parse(Path::new("profile.toml"), EXAMPLE).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = example();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        profile.write(&path).unwrap();
        assert_eq!(Profile::read(&path).unwrap(), profile);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = profile.write(&folder.path().join("absent/mine.toml")).unwrap_err().to_string();
        assert!(error.contains("absent/mine.toml"), "{error}");
    }

    #[test]
    fn layout_is_given_only_where_it_is_asked_for() {
        let profile = example();
        assert_eq!(profile.values(false).get(Knob::ChunkCache), Some(&SettingValue::Whole(4 << 20)));
        assert_eq!(profile.values(false).get(Knob::Chunk), None);
        assert_eq!(profile.values(true).get(Knob::Chunk), Some(&SettingValue::Shape(vec![11, 360, 32])));
        assert_eq!(profile.readable_by, None);
        let mut paged = profile.clone();
        let measured = MeasuredValue { value: SettingValue::Whole(65_536), ..profile.layout[&Knob::Chunk].clone() };
        paged.put(Knob::FilePage, measured);
        assert_eq!(paged.readable_by, Some(LibraryVersion(1, 10)));
    }

    #[test]
    fn anything_but_a_profile_is_refused_with_its_place() {
        let refused = |text: &str| Profile::parse(Path::new("mine.toml"), text).unwrap_err().to_string();
        assert!(refused("form = 99\nnew = true").contains("format 99"));
        assert!(refused(&EXAMPLE.replace("max_inflation = 1.1", "max_inflation = \"much\"")).contains("line"));
        let misplaced = refused(&EXAMPLE.replace("[layout.chunk]", "[settings.chunk]"));
        assert!(misplaced.contains("belongs under [layout.chunk]"), "{misplaced}");
        let idx = EXAMPLE.replace("[layout.chunk]", "[idx.aggregators]").replace("[11, 360, 32]", "4");
        assert_eq!(
            Profile::parse(Path::new("mine.toml"), &idx).unwrap().idx[&IdxOption::Aggregators].value,
            SettingValue::Whole(4)
        );
        assert!(refused(&idx.replace("value = 4\n", "value = 0\n")).contains("aggregators cannot be 0"));
        let wrong = refused(&EXAMPLE.replace("[11, 360, 32]", "\"large\""));
        assert!(wrong.starts_with("mine.toml: chunk cannot be large"), "{wrong}");
    }

    #[test]
    fn the_newest_of_this_machine_is_found() {
        let profile = example();
        let folder = tempfile::tempdir().unwrap();
        let find = || Profile::find(folder.path(), &profile.machine, &profile.file_system).unwrap();
        assert!(find().is_none());
        let write = |name: &str, profile: &Profile| profile.write(&folder.path().join(name)).unwrap();
        write("a.toml", &Profile { measured_unix_s: 2, ..profile.clone() });
        write("b.toml", &Profile { measured_unix_s: 1, ..profile.clone() });
        let elsewhere = Machine { cores: 4096, ..profile.machine.clone() };
        write("c.toml", &Profile { measured_unix_s: 3, machine: elsewhere, ..profile.clone() });
        std::fs::write(folder.path().join("d.toml"), "not a profile").unwrap();
        let (path, found) = find().unwrap();
        assert!(path.ends_with("a.toml") && found.measured_unix_s == 2);
        let absent = Profile::find(&folder.path().join("absent"), &profile.machine, &profile.file_system);
        assert!(absent.unwrap().is_none());
    }
}
