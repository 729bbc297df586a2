//! SVG to PNG, by a program of the machine: rsvg-convert, else a browser without a window.
//!
//! Not a renderer of our own: text needs fonts, which a browser finds. Invariant: a program that gives no picture is an error,
//! whatever its exit code says.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pixels for a unit of a figure: letters of 12 units are 24 high.
const PIXELS_PER_UNIT: f64 = 2.0;

/// What can make pictures, the better first.
const PROGRAMS: [&str; 4] = ["rsvg-convert", "chromium", "chromium-browser", "google-chrome"];

/// A program that makes pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rasteriser {
    program: PathBuf,
    is_browser: bool,
}

impl Rasteriser {
    /// The first one on `PATH`.
    pub fn find() -> Option<Self> {
        let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
        let of = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        PROGRAMS.iter().find_map(|name| Some(Self { program: of(name)?, is_browser: *name != PROGRAMS[0] }))
    }

    /// What there may be, for messages.
    pub fn known() -> String {
        PROGRAMS.join(", ")
    }

    /// Makes the picture `png` of the figure in `svg`, which is `width` by `height` units.
    ///
    /// # Errors
    /// If the program does not run or gives no picture.
    pub fn make(&self, svg: &Path, png: &Path, width: f64, height: f64) -> Result<()> {
        let pixels = [width, height].map(|units| (units * PIXELS_PER_UNIT).ceil() as u64);
        let mut command = Command::new(&self.program);
        // Its folder for settings: the user's browser may be running.
        let own = tempfile::tempdir()?;
        if self.is_browser {
            command.args(["--headless", "--disable-gpu", "--hide-scrollbars"]);
            if is_root() {
                // A browser of root refuses its sandbox; what it shows is ours.
                command.args(["--no-sandbox", "--no-zygote"]);
            }
            command.arg(with("--user-data-dir=", own.path()));
            command.arg(format!("--window-size={},{}", pixels[0], pixels[1]));
            command.arg(with("--screenshot=", &std::path::absolute(png)?));
            command.arg(with("file://", &std::path::absolute(svg)?));
        } else {
            command.args(["--width", &pixels[0].to_string(), "--output"]).arg(png).arg(svg);
        }
        let done = command.stdin(Stdio::null()).output()?;
        let is_made = std::fs::metadata(png).is_ok_and(|found| found.len() > 0);
        if is_made && done.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let last = words.lines().next_back().unwrap_or_default();
        Err(Error::other(format!("{} gave no picture: {} {last}", self.program.display(), done.status)))
    }
}

fn with(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // What belongs to this process belongs to its user.
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
