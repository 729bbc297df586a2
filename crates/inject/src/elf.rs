//! The parts of an ELF file that decide how settings reach a program: whether the dynamic linker starts it, and whether
//! it contains an HDF5.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Kind of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramKind {
    /// A script, with the words after `#!`.
    Script(Vec<String>),
    /// An executable of this system.
    Executable(Executable),
    /// Any other file.
    Other,
}

/// Properties of an executable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Whether the dynamic linker starts the executable and can preload objects.
    pub is_dynamic: bool,
    /// Whether the executable is for another machine or word size than this command, in which case the objects do not
    /// fit.
    pub is_foreign: bool,
}

const PT_INTERP: u32 = 3;

/// Reads the first `len` bytes of a file, or fewer.
fn beginning(path: &Path, len: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Inspects the beginning of the file at `path`.
pub(crate) fn look(path: &Path) -> std::io::Result<ProgramKind> {
    // Headers lie at the beginning: 64 KiB have room for a thousand program headers.
    let head = beginning(path, 64 << 10)?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        return Ok(ProgramKind::Script(String::from_utf8_lossy(line).split_whitespace().map(str::to_owned).collect()));
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(ProgramKind::Other);
    }
    let current_exe_head = beginning(Path::new("/proc/self/exe"), 64).ok();
    let machine = |bytes: &[u8]| bytes.get(18..20).map(<[u8]>::to_vec);
    let is_foreign =
        head.get(4..6) != Some(&[2, 1]) || current_exe_head.is_some_and(|current| machine(&current) != machine(&head));
    let is_dynamic = !is_foreign && has_interpreter(&head).unwrap_or(false);
    Ok(ProgramKind::Executable(Executable { is_dynamic, is_foreign }))
}

/// Returns whether a program header of a 64-bit little-endian file names a dynamic linker.
fn has_interpreter(head: &[u8]) -> Option<bool> {
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = head.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (table, size, count) = (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
    for header in 0..count {
        if number(table.checked_add(header * size)?, 4)? == u64::from(PT_INTERP) {
            return Some(true);
        }
    }
    Some(false)
}

/// Traces of an HDF5 in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Version, from the string that every libhdf5 contains.
    pub version: Option<String>,
    /// Whether this libhdf5 reads the driver from the environment: version 1.13 or later.
    pub takes_drivers: bool,
}

/// Searches the file at `path` for the strings of a libhdf5.
pub(crate) fn hdf5_inside(path: &Path) -> std::io::Result<Inside> {
    let bytes = std::fs::read(path)?;
    let mut inside = Inside::default();
    for (at, _) in bytes.iter().enumerate().filter(|&(_, &byte)| byte == b'H') {
        let rest = &bytes[at..];
        inside.takes_drivers |= rest.starts_with(b"HDF5_DRIVER\0");
        if let Some(version) = rest.strip_prefix(b"HDF5 library version: ")
            && version.first().is_some_and(u8::is_ascii_digit)
        {
            let digits = version.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
            inside.version = Some(digits.map(|&byte| char::from(byte)).collect());
        }
    }
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_programs_and_texts_are_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "#! /usr/bin/env python3 -u\nprint()\n").unwrap();
        let words = ["/usr/bin/env", "python3", "-u"].map(str::to_owned).to_vec();
        assert_eq!(look(&path).unwrap(), ProgramKind::Script(words));
        std::fs::write(&path, "text").unwrap();
        assert_eq!(look(&path).unwrap(), ProgramKind::Other);
        let executable = std::env::current_exe().unwrap();
        assert_eq!(
            look(&executable).unwrap(),
            ProgramKind::Executable(Executable { is_dynamic: true, is_foreign: false })
        );
    }

    #[test]
    fn headers_that_end_early_or_lie_are_not_dynamic() {
        let mut head = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        head.truncate(4096);
        for length in 0..200 {
            // It only must not panic.
            let _ = has_interpreter(&head[..length]);
        }
        head[32..40].fill(0xff);
        assert_eq!(has_interpreter(&head), None);
    }

    #[test]
    fn a_library_is_found_by_its_strings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, b"..HDF5 library version: %d.%d\0HDF5 library version: 1.14.6\0HDF5_DRIVER\0").unwrap();
        let inside = hdf5_inside(&path).unwrap();
        assert_eq!(inside, Inside { version: Some("1.14.6".to_owned()), takes_drivers: true });
    }
}
