//! `raddle apply`: runs a program with HDF5 settings it knows nothing about, or prints them as source code.

use super::print;
use crate::exit::Exit;
use crate::options::setting::Setting;
use crate::options::size::Size;
use crate::render::apply;
use crate::standard_error;
use raddle::Error;
use raddle::options::profile::newest;
use raddle_core::output::stripes::{self, StripeSource, Stripes};
use raddle_inject::emit::{Language, source};
use raddle_inject::install::{Objects, default_folder};
use raddle_inject::plan::{AdaptOptions, ApplyPlan, ApplyRequest};
use raddle_inject::program::{Program, Route, find};
use raddle_inject::{InjectError, patch};
use raddle_mpi::launcher;
use raddle_tune::knob::Knob;
use raddle_tune::profile::Profile;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

/// Variable that names the folder of the libraries.
pub(crate) const FOLDER_VARIABLE: &str = "RADDLE_APPLY_FOLDER";

/// Options of `raddle apply`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ApplyArgs {
    /// Profile written by `raddle tune` [default: the newest for this machine and file system]
    profile: Option<PathBuf>,

    /// Program to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Set NAME to VALUE, for example alignment=1MiB; overrides the profile
    #[arg(short, long, value_name = "NAME=VALUE")]
    set: Vec<Setting>,

    /// Set NAME even if the program has chosen a value itself
    #[arg(long = "override", value_name = "NAME", value_parser = knob)]
    forced: Vec<Knob>,

    /// Size each dataset's chunk cache to one sweep through it, up to SIZE; 0 leaves caches alone [default: that of the
    /// profile, or 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    auto_cache: Option<u64>,

    /// Choose chunk caches and alignment from what the program reads and writes, up to --auto-cache, without a profile
    #[arg(long)]
    adapt: bool,

    /// With --adapt: align large objects of new files to SIZE [default: the stripes of Lustre or GPFS; no alignment
    /// elsewhere]
    #[arg(long, value_name = "SIZE", requires = "adapt")]
    block: Option<Size>,

    /// Also apply settings that change the contents of files: chunks, filters, format, pages
    #[arg(long)]
    allow_layout: bool,

    /// Make metadata calls collective in MPI programs; hangs programs whose ranks open different objects
    #[arg(long)]
    collective_metadata: bool,

    /// Give FOLDER the stripes of the profile before the program starts (Lustre's `lfs setstripe`)
    #[arg(long, value_name = "FOLDER")]
    stripe: Vec<PathBuf>,

    /// Write a line per file (what was set, kept, refused) to FILE; `-`: standard error, `none`: nowhere
    #[arg(long, value_name = "FILE", default_value = "-")]
    log: PathBuf,

    /// Folder for the libraries that are loaded into the program; on a cluster, one that all hosts see
    #[arg(long, value_name = "FOLDER", env = FOLDER_VARIABLE, hide_env_values = true)]
    folder: Option<PathBuf>,

    /// Show how the settings would be applied and which ones, without starting the program
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Print the settings as source code or as shell variables, without starting the program
    #[arg(long, value_name = "FORM", value_enum, conflicts_with = "dry_run")]
    emit: Option<EmitForm>,

    /// HDF5 source folder, for --emit hdf5-patch
    #[arg(long, value_name = "FOLDER", required_if_eq("emit", "hdf5-patch"))]
    hdf5_source: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  raddle apply -- python3 analysis.py
      chunk caches sized to each dataset, nothing else
  raddle apply --adapt -- ./simulation input.nml
      settings chosen from what the program does
  raddle apply mine.toml -- ./simulation input.nml
      settings found by `raddle tune`
  mpirun -n 4 raddle apply mine.toml -- ./simulation
      every rank; on any number of hosts
  raddle apply --set alignment=1MiB --dry-run -- h5repack in.h5 out.h5
  raddle apply mine.toml --emit h5py
      the same settings, for use in a script

The program is not modified and need not know about raddle. Settings that it chooses itself are kept, unless \
--override is given.";

/// Advice for a command line without the dashes.
pub const BEFORE_PROGRAM: &str = "give the program after two dashes: raddle apply -- python3 analysis.py";

/// Output form of `--emit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum EmitForm {
    /// A C function that creates a file access property list
    C,
    /// Arguments of h5py.File
    H5py,
    /// Calls of Python's netCDF4, with the equivalent C calls
    Netcdf,
    /// Environment variables for a shell: eval "$(raddle apply … --emit env)"
    Env,
    /// A patch that makes the settings the defaults of HDF5
    #[value(name = "hdf5-patch")]
    BoxData,
}

fn knob(text: &str) -> Result<Knob, String> {
    let found = Knob::ALL.into_iter().find(|knob| knob.name() == text);
    found.ok_or_else(|| format!("known names are {}", Knob::ALL.map(Knob::name).join(", ")))
}

fn size_or_none(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { text.parse::<Size>().map(|size| size.0).map_err(|error| error.to_string()) }
}

/// Reads a profile. Other files may be meant as programs.
fn read_profile(path: &Path) -> Result<Profile, Error> {
    let is_profile = path.exists() && path.extension().is_some_and(|extension| extension == "toml");
    let read = Profile::read(path).map_err(|error| Error::of_tune(&error));
    read.map_err(|error| if is_profile { error } else { error.hint(BEFORE_PROGRAM) })
}

/// Returns the stripe length of the working folder, on Lustre and GPFS; 0 elsewhere, where alignment has gained
/// nothing.
fn block_of_folder() -> u64 {
    match stripes::of_folder(Path::new(".")) {
        Ok(Stripes { source: StripeSource::Block, .. }) | Err(_) => 0,
        Ok(stripes) => stripes.len_bytes,
    }
}

impl ApplyArgs {
    /// Collects the requested settings, and the file of the profile if there is one.
    fn wishes(&self) -> Result<(ApplyRequest, Option<PathBuf>), Error> {
        let (path, profile) = match &self.profile {
            Some(path) => (Some(path.clone()), Some(read_profile(path)?)),
            // Explicit settings suffice without a profile.
            None if !self.set.is_empty() || self.adapt => (None, None),
            None => newest(Path::new(".")).map_err(|error| Error::of_tune(&error))?.unzip(),
        };
        let mut wishes = ApplyRequest {
            allow_layout: self.allow_layout,
            allow_collective_metadata: self.collective_metadata,
            log: Some(self.log.clone()).filter(|log| log != Path::new("none")),
            ..ApplyRequest::default()
        };
        if let Some(profile) = &profile {
            wishes.add(profile);
        }
        wishes.settings.0.extend(self.set.iter().map(|setting| (setting.knob, setting.value.clone())));
        wishes.take_auto();
        wishes.auto_chunk_cache_bytes = self.auto_cache.unwrap_or(wishes.auto_chunk_cache_bytes);
        wishes.forced.extend(&self.forced);
        wishes.adapt = self.adapt.then(|| AdaptOptions {
            block_bytes: self.block.map_or_else(block_of_folder, |size| size.0),
            is_block_everywhere: self.block.is_some(),
        });
        if let Some(log) = wishes.log.as_mut().filter(|log| *log != Path::new("-")) {
            // The program may change its working folder.
            *log = std::path::absolute(&*log).map_err(|cause| Error::writing(&self.log, &cause))?;
        }
        Ok((wishes, path))
    }

    fn objects(&self) -> Result<Objects, Error> {
        let folder = self.folder.clone().map_or_else(default_folder, Ok).map_err(|error| of_inject(&error))?;
        Objects::within(&folder).map_err(|error| of_inject(&error))
    }
}

/// Starts the program; returns only if that fails.
pub fn run(arguments: &ApplyArgs) -> Result<Exit, Error> {
    let (wishes, profile) = arguments.wishes()?;
    if let Some(form) = arguments.emit {
        return emit(arguments, &wishes, form);
    }
    if arguments.command.is_empty() {
        return Err(Error::usage("no program to start").hint(BEFORE_PROGRAM));
    }
    let program = find(&arguments.command).map_err(|error| of_inject(&error))?;
    let objects = arguments.objects()?;
    let plan = ApplyPlan::new(&wishes, &program, &objects, |name| std::env::var_os(name));
    if arguments.dry_run {
        print(&apply::text(&program, &plan, profile.as_deref(), &wishes))?;
        return Ok(Exit::Done);
    }
    check_log(arguments)?;
    install(&objects, &plan)?;
    let leads = launcher::launched().is_none_or(|launched| launched.is_first());
    if leads {
        if wishes.log.is_some() {
            print_notes(&program, &plan);
        }
        arguments.stripe.iter().try_for_each(|folder| set_stripes(&plan, folder))?;
    }
    let mut command = std::process::Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]).envs(plan.environment.iter().map(|(name, value)| (name, value)));
    // Replaces this process: the program keeps its process id, parent and signals, and has its own exit code.
    let cause = command.exec();
    Err(Error::usage(&format!("{}: cannot be started: {cause}", arguments.command[0].to_string_lossy())))
}

fn print_notes(program: &Program, plan: &ApplyPlan) {
    apply::notes(program, plan)
        .iter()
        .for_each(|note| standard_error::print_line(format_args!("raddle apply: {note}")));
}

/// Checks that the log can be written, because a log that cannot would not stop the program.
fn check_log(arguments: &ApplyArgs) -> Result<(), Error> {
    if arguments.log == Path::new("-") || arguments.log == Path::new("none") {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(&arguments.log);
    opened.map(drop).map_err(|cause| Error::writing(&arguments.log, &cause))
}

fn install(objects: &Objects, plan: &ApplyPlan) -> Result<(), Error> {
    objects.install().map_err(|error| of_inject(&error))?;
    if plan.hints.is_empty() { Ok(()) } else { objects.install_hints(&plan.hints).map_err(|error| of_inject(&error)) }
}

/// Sets the stripes of a folder. Stripes that cannot be set are reported but do not prevent the start.
fn set_stripes(plan: &ApplyPlan, folder: &Path) -> Result<(), Error> {
    let Some(command) = plan.stripe_command(folder) else {
        return Err(Error::usage("--stripe: the settings contain no stripes")
            .hint("for example --set stripe_count=8 --set stripe_size=16MiB"));
    };
    let done = std::process::Command::new(&command[0]).args(&command[1..]).output();
    let refused = match done {
        Err(cause) => Some(format!("lfs cannot be run: {cause}")),
        Ok(done) if !done.status.success() => Some(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        Ok(_) => None,
    };
    let folder = crate::render::escape::path(folder);
    match refused {
        Some(reason) => standard_error::print_line(format_args!(
            "raddle apply: {folder}: refused stripes ({})",
            crate::render::escape::text(&reason)
        )),
        None => standard_error::print_line(format_args!("raddle apply: {folder}: set {}", plan.stripes)),
    }
    Ok(())
}

fn emit(arguments: &ApplyArgs, wishes: &ApplyRequest, form: EmitForm) -> Result<Exit, Error> {
    let text = match form {
        EmitForm::C => source(&wishes.settings_with_auto(), Language::C),
        EmitForm::H5py => source(&wishes.settings_with_auto(), Language::H5py),
        EmitForm::Netcdf => source(&wishes.settings_with_auto(), Language::Netcdf),
        EmitForm::Env => {
            let objects = arguments.objects()?;
            // Covers any program that the shell starts later.
            let any = Route::Preload { libraries: Vec::new() };
            let any = Program { path: PathBuf::new(), through: Vec::new(), has_mpi: true, route: any };
            let program = if arguments.command.is_empty() {
                any
            } else {
                find(&arguments.command).map_err(|error| of_inject(&error))?
            };
            let plan = ApplyPlan::new(wishes, &program, &objects, |name| std::env::var_os(name));
            install(&objects, &plan)?;
            print_notes(&program, &plan);
            apply::exports(&plan)
        }
        EmitForm::BoxData => {
            for knob in patch::left_out(&wishes.settings_with_auto()) {
                standard_error::print_line(format_args!(
                    "note: {knob} has no single place in the source for its default; left out"
                ));
            }
            let source = arguments.hdf5_source.as_deref().unwrap_or(Path::new("."));
            patch::patch(&wishes.settings, source).map_err(|error| of_inject(&error))?
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}

/// Converts the error of a program that cannot be intercepted.
pub(super) fn of_inject(error: &InjectError) -> Error {
    let failure = |exit| Error::new(exit, &error.to_string());
    match error {
        InjectError::Separator { .. } | InjectError::NoFolder => {
            failure(Exit::Usage).hint("name a folder: --folder FOLDER")
        }
        InjectError::NoProgram { name } if Path::new(name).is_file() => {
            failure(Exit::Usage).hint(&format!("this folder is not searched for programs: write ./{name}"))
        }
        InjectError::NotExecutable { .. } => failure(Exit::Usage)
            .hint("start it with its interpreter, as in python3 analysis.py, or make it executable with chmod +x"),
        InjectError::NoProgram { .. } | InjectError::System => failure(Exit::Usage),
        InjectError::Io { operation: "writing" | "making the folder", .. } => {
            failure(Exit::Output).hint("name a folder that can be written: --folder FOLDER")
        }
        _ => failure(Exit::InputRefused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_inject::plan::AUTO_CHUNK_CACHE_BYTES;

    #[test]
    fn the_default_of_the_cache_is_the_plan_s() {
        assert_eq!(size_or_none("256MiB"), Ok(AUTO_CHUNK_CACHE_BYTES));
        assert_eq!(size_or_none("0"), Ok(0));
    }
}
