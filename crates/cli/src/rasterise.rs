//! Conversion of SVG to PNG by an installed program: rsvg-convert, or else a headless browser.
//!
//! raddle has no renderer itself, because text needs fonts, which these programs find. Invariant: a program that
//! produces no picture is an error, whatever its exit code.

use std::ffi::OsString;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Pixels per unit of a figure: letters of 12 units are 24 pixels high.
const PIXELS_PER_UNIT: f64 = 2.0;

/// Programs that can convert pictures, best first.
const PROGRAMS: [&str; 4] = ["rsvg-convert", "chromium", "chromium-browser", "google-chrome"];

/// A program that converts pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rasteriser {
    program: PathBuf,
    is_browser: bool,
}

impl Rasteriser {
    /// Finds the first of the programs that raddle can use on `PATH`.
    pub fn find() -> Option<Self> {
        let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
        let of = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        PROGRAMS.iter().find_map(|name| Some(Self { program: of(name)?, is_browser: *name != PROGRAMS[0] }))
    }

    /// Lists the supported programs, for messages.
    pub fn known() -> String {
        PROGRAMS.join(", ")
    }

    /// Converts the figure `svg`, which is `width` by `height` units, to the picture `png`.
    ///
    /// # Errors
    /// If the program does not run or produces no picture.
    pub fn make(&self, svg: &Path, png: &Path, width: f64, height: f64) -> Result<()> {
        let pixels = [width, height].map(|units| (units * PIXELS_PER_UNIT).ceil() as u64);
        let mut command = Command::new(&self.program);
        // A separate settings folder, because the user's browser may be running.
        let settings_folder = tempfile::tempdir()?;
        if self.is_browser {
            command.args(["--headless", "--disable-gpu", "--hide-scrollbars"]);
            if is_root() {
                // A browser run by root refuses its sandbox; the page it shows is trusted.
                command.args(["--no-sandbox", "--no-zygote"]);
            }
            command.arg(with("--user-data-dir=", settings_folder.path()));
            command.arg(format!("--window-size={},{}", pixels[0], pixels[1]));
            command.arg(with("--screenshot=", &std::path::absolute(png)?));
            command.arg(with("file://", &std::path::absolute(svg)?));
        } else {
            command.args(["--width", &pixels[0].to_string(), "--output"]).arg(png).arg(svg);
        }
        let done = command.stdin(Stdio::null()).output()?;
        let has_picture = std::fs::metadata(png).is_ok_and(|found| found.len() > 0);
        if has_picture && done.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let last = words.lines().next_back().unwrap_or_default();
        Err(Error::other(format!("{} produced no picture: {} {last}", self.program.display(), done.status)))
    }
}

fn with(option: &str, path: &Path) -> OsString {
    let mut text = OsString::from(option);
    text.push(path);
    text
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // Files of this process in /proc belong to its user.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}
