//! The plan for a program: the settings that reach it, those that do not, with the reasons, and its environment.

use crate::install::Objects;
use crate::program::{Program, Route};
use raddle_tune::knob::{Knob, PropertyListKind, SettingValue, Settings};
use raddle_tune::profile::Profile;
use raddle_tune::translate::hints;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Environment variable with the settings, read by both objects.
pub const SETTINGS_VARIABLE: &str = "RADDLE_APPLY";
/// Environment variable that names the log: a path, or `-` for standard error.
pub const LOG_VARIABLE: &str = "RADDLE_APPLY_LOG";
/// Name of the driver in its C source.
const DRIVER: &str = "raddle_apply";
/// HDF5's default plugin path, which the environment variable replaces.
const DEFAULT_PLUGINS: &str = "/usr/local/hdf5/lib/plugin";

/// Maximum chunk cache of a dataset by default. A cache size is an upper bound: memory that a program does not touch is
/// not used. Sweeps seen in practice need from 3 MiB (an ocean model's rows) to about 100 MiB (wide images).
pub const AUTO_CHUNK_CACHE_BYTES: u64 = 256 << 20;

/// Request to apply settings to a program, with the choices of the user.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyRequest {
    /// Settings to apply.
    pub settings: Settings,
    /// Settings that override the program's choice.
    pub forced: BTreeSet<Knob>,
    /// Whether to apply settings that change the contents of files.
    pub allow_layout: bool,
    /// Whether to make metadata calls collective, which hangs programs whose ranks open different objects.
    pub allow_collective_metadata: bool,
    /// Maximum chunk cache of a dataset, sized to one sweep, in bytes; 0 to leave caches unchanged.
    pub auto_chunk_cache_bytes: u64,
    /// Whether caches and alignment follow the program's behaviour, up to `auto_chunk_cache_bytes` of cache; if absent,
    /// caches follow shapes alone.
    pub adapt: Option<AdaptOptions>,
    /// Destination of a line per file: a file, or `-` for standard error; absent for no log.
    pub log: Option<PathBuf>,
}

/// Options of adapting to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptOptions {
    /// Stripe or block size of the file system, to which large objects of new files are aligned; 0 for none.
    pub block_bytes: u64,
    /// Whether the block size applies to all file systems, and not only to the file system of the folder in which the
    /// program starts.
    pub is_block_everywhere: bool,
}

impl Default for ApplyRequest {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            forced: BTreeSet::new(),
            allow_layout: false,
            allow_collective_metadata: false,
            auto_chunk_cache_bytes: AUTO_CHUNK_CACHE_BYTES,
            adapt: None,
            log: Some("-".into()),
        }
    }
}

impl ApplyRequest {
    /// Moves [`Knob::AutoChunkCache`], if it is among the settings, to the maximum cache size.
    pub fn take_auto(&mut self) {
        if let Some(SettingValue::Whole(most_bytes)) = self.settings.0.remove(&Knob::AutoChunkCache) {
            self.auto_chunk_cache_bytes = most_bytes;
        }
    }

    /// Returns the settings, with the maximum cache size as [`Knob::AutoChunkCache`], for programs that set them
    /// themselves.
    pub fn settings_with_auto(&self) -> Settings {
        match self.auto_chunk_cache_bytes {
            0 => self.settings.clone(),
            most_bytes => self.settings.clone().and(Knob::AutoChunkCache, SettingValue::Whole(most_bytes)),
        }
    }

    /// Adds the settings of `profile`.
    pub fn add(&mut self, profile: &Profile) {
        for (knob, measured) in profile.settings.iter().chain(&profile.layout) {
            self.settings.0.insert(*knob, measured.value.clone());
            if measured.force {
                self.forced.insert(*knob);
            }
        }
    }
}

/// A setting that is not applied.
#[derive(Debug, Clone, PartialEq)]
pub struct OmittedSetting {
    /// Setting that is not applied.
    pub knob: Knob,
    /// Value that is not applied.
    pub value: SettingValue,
    /// Reason why the setting is not applied.
    pub reason: &'static str,
}

/// Plan for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyPlan {
    /// Settings passed to HDF5.
    pub applied: Settings,
    /// MPI-IO hints, one per line; empty if there are none.
    pub hints: String,
    /// Stripes of the output's folder.
    pub stripes: Settings,
    /// Settings that are not applied.
    pub left_out: Vec<OmittedSetting>,
    /// Reason why adaptation, if requested, is not available for the program.
    pub not_adapted: Option<&'static str>,
    /// Variables added to the program's environment.
    pub environment: Vec<(&'static str, OsString)>,
}

impl ApplyPlan {
    /// Plans `wishes` for `program`, with the objects at `objects`. `inherited` returns environment variables.
    pub fn new(
        wishes: &ApplyRequest,
        program: &Program,
        objects: &Objects,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let mut plan = Self {
            applied: Settings::default(),
            hints: String::new(),
            stripes: Settings::default(),
            left_out: Vec::new(),
            not_adapted: if wishes.adapt.is_some() { reason_against_adapting(&program.route) } else { None },
            environment: Vec::new(),
        };
        for (&knob, value) in &wishes.settings.0 {
            match reason_against(knob, wishes, program) {
                Some(reason) => plan.left_out.push(OmittedSetting { knob, value: value.clone(), reason }),
                None if knob.place() == PropertyListKind::MpiHints => {}
                None if knob.place() == PropertyListKind::Folder => drop(plan.stripes.0.insert(knob, value.clone())),
                None => drop(plan.applied.0.insert(knob, value.clone())),
            }
        }
        if program.has_mpi {
            // In the form that ROMIO reads from a file.
            plan.hints = hints(&wishes.settings).iter().map(|(key, value)| format!("{key} {value}\n")).collect();
        }
        plan.set_environment(wishes, program, objects, inherited);
        plan
    }

    fn set_environment(
        &mut self,
        wishes: &ApplyRequest,
        program: &Program,
        objects: &Objects,
        inherited: impl Fn(&str) -> Option<OsString>,
    ) {
        // Settings that the shim sizes automatically are not passed.
        let auto = match program.route {
            Route::Preload { .. } => wishes.auto_chunk_cache_bytes,
            _ => 0,
        };
        let mut text = encode(&self.applied, &wishes.forced);
        let mut add = |name: &str, value: u64| {
            text.push_str(&format!("{}{name}={value}", if text.is_empty() { "" } else { ";" }));
        };
        if auto > 0 {
            add("auto_chunk_cache", auto);
        }
        if let Some(adapt) = wishes.adapt.filter(|_| self.not_adapted.is_none()) {
            add("adapt", 1);
            if adapt.block_bytes > 0 {
                add(if adapt.is_block_everywhere { "!adapt_block" } else { "adapt_block" }, adapt.block_bytes);
            }
        }
        match program.route {
            _ if text.is_empty() => {}
            Route::Preload { .. } => {
                let preload = joined(objects.shim.as_os_str(), inherited("LD_PRELOAD").as_deref());
                self.environment.push(("LD_PRELOAD", preload));
            }
            Route::Driver { .. } => {
                self.environment.push(("HDF5_DRIVER", DRIVER.into()));
                let others = inherited("HDF5_PLUGIN_PATH").unwrap_or_else(|| DEFAULT_PLUGINS.into());
                self.environment.push(("HDF5_PLUGIN_PATH", joined(objects.drivers.as_os_str(), Some(&others))));
            }
            Route::None { .. } => text.clear(),
        }
        if !text.is_empty() {
            self.environment.push((SETTINGS_VARIABLE, text.into()));
            if let Some(log) = &wishes.log {
                self.environment.push((LOG_VARIABLE, log.clone().into()));
            }
        }
        if !self.hints.is_empty() {
            self.environment.push(("ROMIO_HINTS", objects.hints(&self.hints).into()));
            // Open MPI also has another implementation of MPI-IO, which does not read hints from files.
            if inherited("OMPI_MCA_io").is_none() {
                self.environment.push(("OMPI_MCA_io", "^ompio".into()));
            }
        }
    }

    /// Returns the command that stripes `folder`; `None` if there is nothing to set.
    pub fn stripe_command(&self, folder: &Path) -> Option<Vec<OsString>> {
        let options = [(Knob::StripeCount, "-c"), (Knob::StripeSize, "-S")];
        let values = options.iter().filter_map(|(knob, option)| Some((*option, self.stripes.whole(*knob)?)));
        let options: Vec<OsString> =
            values.flat_map(|(option, value)| [option.into(), value.to_string().into()]).collect();
        if options.is_empty() {
            return None;
        }
        Some(["lfs", "setstripe"].map(OsString::from).into_iter().chain(options).chain([folder.into()]).collect())
    }
}

/// Returns the reason why `knob` is not applied to `program`; `None` if it is applied.
fn reason_against(knob: Knob, wishes: &ApplyRequest, program: &Program) -> Option<&'static str> {
    if knob.changes_layout() && !wishes.allow_layout {
        return Some("it changes what files hold: --allow-layout applies it");
    }
    if knob == Knob::CollectiveMetadata && !wishes.allow_collective_metadata {
        return Some("it hangs programs whose ranks open different objects: --collective-metadata applies it");
    }
    match knob.place() {
        PropertyListKind::MpiHints if !program.has_mpi => return Some("the program uses no MPI"),
        PropertyListKind::MpiHints | PropertyListKind::Folder => return None,
        PropertyListKind::Transfer => return Some("the program's transfers are left unchanged"),
        PropertyListKind::Process => {
            return Some("raddle does not replace the zlib of other programs: preload another one with LD_PRELOAD");
        }
        _ => {}
    }
    if matches!(knob, Knob::Szip | Knob::SzipEntropy) {
        return Some("szip is not applied to datasets of other programs");
    }
    let is_placement = matches!(knob, Knob::Alignment | Knob::AlignmentThreshold | Knob::MetaBlock);
    match program.route {
        Route::Preload { .. } => None,
        Route::Driver { .. } if is_placement => None,
        Route::Driver { .. } => Some("HDF5 is linked statically into the program, where only placement can be set"),
        Route::None { .. } => Some("the program cannot be reached"),
    }
}

/// Returns the reason why a program that settings reach by `route` cannot be adapted to; `None` if it can.
fn reason_against_adapting(route: &Route) -> Option<&'static str> {
    match route {
        Route::Preload { .. } => None,
        Route::Driver { .. } => Some("HDF5 is linked statically into the program, whose accesses cannot be observed"),
        Route::None { .. } => Some("the program cannot be reached"),
    }
}

/// Serialises settings for both objects: `NAME=VALUE` separated by `;`, with `!` before a forced one.
fn encode(settings: &Settings, forced: &BTreeSet<Knob>) -> String {
    let pair = |(knob, value): (&Knob, &SettingValue)| {
        let mark = if forced.contains(knob) { "!" } else { "" };
        let value = match value {
            SettingValue::Flag(flag) => u8::from(*flag).to_string(),
            value => value.to_string(),
        };
        format!("{mark}{knob}={value}")
    };
    settings.0.iter().map(pair).collect::<Vec<_>>().join(";")
}

fn joined(first: &OsStr, others: Option<&OsStr>) -> OsString {
    let mut text = first.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        text.push(":");
        text.push(others);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(route: Route, has_mpi: bool) -> Program {
        Program { path: "/bin/program".into(), through: Vec::new(), has_mpi, route }
    }

    fn preload() -> Route {
        Route::Preload { libraries: Vec::new() }
    }

    fn variable<'a>(plan: &'a ApplyPlan, name: &str) -> Option<&'a str> {
        plan.environment.iter().find(|(variable, _)| *variable == name).and_then(|(_, value)| value.to_str())
    }

    fn wishes() -> ApplyRequest {
        let settings = Settings::default()
            .and(Knob::Alignment, SettingValue::Whole(1 << 20))
            .and(Knob::Sieve, SettingValue::Whole(1 << 17))
            .and(Knob::Gzip, SettingValue::Whole(1))
            .and(Knob::CollectiveMetadata, SettingValue::Flag(true))
            .and(Knob::CbNodes, SettingValue::Whole(4))
            .and(Knob::StripeCount, SettingValue::Whole(8));
        ApplyRequest { settings, ..ApplyRequest::default() }
    }

    #[test]
    fn what_changes_files_or_may_hang_is_left_out_unless_asked_for() {
        let objects = Objects::within(Path::new("/objects")).unwrap();
        let plan = ApplyPlan::new(&wishes(), &program(preload(), true), &objects, |_| None);
        assert_eq!(variable(&plan, "RADDLE_APPLY"), Some("alignment=1048576;sieve=131072;auto_chunk_cache=268435456"));
        let left: Vec<Knob> = plan.left_out.iter().map(|left| left.knob).collect();
        assert_eq!(left, [Knob::CollectiveMetadata, Knob::Gzip]);
        let mut allowed = wishes();
        (allowed.allow_layout, allowed.allow_collective_metadata, allowed.auto_chunk_cache_bytes) = (true, true, 0);
        allowed.forced.insert(Knob::Alignment);
        let plan = ApplyPlan::new(&allowed, &program(preload(), true), &objects, |_| None);
        let reported = "!alignment=1048576;sieve=131072;collective_metadata=1;gzip=1";
        assert_eq!(variable(&plan, "RADDLE_APPLY"), Some(reported));
        assert!(plan.left_out.is_empty());
    }

    #[test]
    fn a_program_with_hdf5_inside_gets_the_driver_and_placement_only() {
        let objects = Objects::within(Path::new("/objects")).unwrap();
        let route = Route::Driver { version: Some("2.0.0".to_owned()) };
        let plan = ApplyPlan::new(&wishes(), &program(route, false), &objects, |_| None);
        assert_eq!(variable(&plan, "RADDLE_APPLY"), Some("alignment=1048576"));
        assert_eq!(variable(&plan, "LD_PRELOAD"), None);
        assert_eq!(variable(&plan, "HDF5_DRIVER"), Some("raddle_apply"));
        assert!(variable(&plan, "HDF5_PLUGIN_PATH").unwrap().ends_with("/drivers:/usr/local/hdf5/lib/plugin"));
        assert_eq!(plan.hints, "");
    }

    #[test]
    fn a_program_is_adapted_to_where_its_accesses_pass_by() {
        let objects = Objects::within(Path::new("/objects")).unwrap();
        let adapt = AdaptOptions { block_bytes: 1 << 20, is_block_everywhere: true };
        let wishes = ApplyRequest { adapt: Some(adapt), ..ApplyRequest::default() };
        let plan = ApplyPlan::new(&wishes, &program(preload(), false), &objects, |_| None);
        let reported = "auto_chunk_cache=268435456;adapt=1;!adapt_block=1048576";
        assert_eq!((variable(&plan, "RADDLE_APPLY"), plan.not_adapted), (Some(reported), None));
        let plan = ApplyPlan::new(&wishes, &program(Route::Driver { version: None }, false), &objects, |_| None);
        assert_eq!(variable(&plan, "RADDLE_APPLY"), None);
        assert!(plan.not_adapted.unwrap().contains("observed"));
    }

    #[test]
    fn what_the_environment_has_is_kept() {
        let objects = Objects::within(Path::new("/objects")).unwrap();
        let has = |name: &str| (name == "LD_PRELOAD" || name == "OMPI_MCA_io").then(|| "own.so".into());
        let plan = ApplyPlan::new(&wishes(), &program(preload(), true), &objects, has);
        assert!(variable(&plan, "LD_PRELOAD").unwrap().ends_with("libraddle_apply.so:own.so"));
        assert_eq!(variable(&plan, "OMPI_MCA_io"), None);
        assert_eq!(plan.hints, "cb_nodes 4\n");
        assert!(variable(&plan, "ROMIO_HINTS").unwrap().contains("/hints-"));
    }

    #[test]
    fn stripes_are_a_command_of_lustre() {
        let objects = Objects::within(Path::new("/objects")).unwrap();
        let plan = ApplyPlan::new(&wishes(), &program(preload(), false), &objects, |_| None);
        let command = plan.stripe_command(Path::new("/scratch")).unwrap();
        assert_eq!(command, ["lfs", "setstripe", "-c", "8", "/scratch"]);
    }
}
