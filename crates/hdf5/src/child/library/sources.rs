//! Checks the other files from which a dataset's values come: unless all are allowed and exist, nothing is read.
//!
//! libhdf5 opens any path that an external file list or a virtual dataset names, and returns fill values if a source is
//! missing. Here every mapping is followed beforehand, through virtual datasets of virtual datasets.
//!
//! Invariant: after [`check`] has returned `Ok`, reading the dataset opens only files that are allowed and existed.
//! [`SourceFiles::check_again`] looks for the same files before a later read.

use super::{OpenFile, dataspaces, open_file, properties, unsupported};
use crate::error::{Hdf5Error, Result};
use crate::ffi::{Call, Handle};
use hdf5_metno_sys::h5d::H5Dopen2;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_virtual_dsetname, H5Pget_virtual_filename};
use hdf5_metno_sys::h5s::{H5S_sel_type, H5Sget_select_npoints, H5Sget_select_type, H5Sget_simple_extent_npoints};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::ptr;

/// Longest chain of virtual datasets that is followed.
const MAX_DEPTH: u64 = 16;

/// Other files that the values of a dataset come from. All of them are allowed, and existed when they were checked.
pub(super) struct SourceFiles {
    /// Names as libhdf5 opens them, with the files that they led to.
    resolved: BTreeMap<PathBuf, ResolvedSource>,
}

/// File to which the name of a source led.
struct ResolvedSource {
    path: PathBuf,
    /// Device and number of the inode.
    identity: Option<(u64, u64)>,
}

impl ResolvedSource {
    fn new(path: PathBuf) -> Self {
        Self { identity: identity_of(&path), path }
    }

    /// Returns whether `name` leads to this file. One call of the system answers this for a file that is the same; a
    /// path is resolved by one call per folder, which takes seconds for thousands of sources before every read.
    fn is_at(&self, name: &Path) -> bool {
        self.identity.is_some() && identity_of(name) == self.identity
            || name.canonicalize().is_ok_and(|now| now == self.path)
    }
}

fn identity_of(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl SourceFiles {
    /// Fails unless all names still lead to the same files.
    pub(super) fn check_again(&self, call: Call<'_>) -> Result<()> {
        match self.resolved.iter().find(|(path, resolved)| !resolved.is_at(path)) {
            Some((path, _)) => {
                let missing = path.as_os_str().as_bytes().escape_ascii().to_string();
                Err(Hdf5Error::MissingSource { path: call.path.to_path_buf(), missing })
            }
            None => Ok(()),
        }
    }
}

/// Checks that all sources of the dataset with these creation properties are allowed and exist.
pub(super) fn check(file: &OpenFile, list: &Handle, call: Call<'_>) -> Result<SourceFiles> {
    let mut checks = Checks { file, call, seen: HashMap::new(), resolved: BTreeMap::new() };
    checks.follow(list, &file.path, None, 0)?;
    Ok(SourceFiles { resolved: checks.resolved })
}

/// Returns the current dimensions of the source dataset of mapping `number`, for a list that [`check`] has accepted.
pub(super) fn source_dims(file: &OpenFile, list: &Handle, number: usize, call: Call<'_>) -> Result<Vec<u64>> {
    let mut checks = Checks { file, call, seen: HashMap::new(), resolved: BTreeMap::new() };
    let file_name = checks.text("H5Pget_virtual_filename", list, number, H5Pget_virtual_filename)?;
    let dataset_name = checks.text("H5Pget_virtual_dsetname", list, number, H5Pget_virtual_dsetname)?;
    let dims = |dataset: &Handle| {
        let space = dataspaces::of_dataset(dataset, call)?;
        dataspaces::extent(file, &space, call).map(|extent| extent.dims().to_vec())
    };
    let (Some(file_name), Some(dataset_name)) = (literal(&file_name), literal(&dataset_name)) else {
        return Err(unsupported(call, "a virtual dataset with numbered sources".to_owned()));
    };
    if file_name == b"." {
        return dims(&checks.open_dataset(file.file.id(), &file.path, &dataset_name)?);
    }
    let path = checks.source(&file.path, &file_name)?;
    let source = open_file(&path)?;
    dims(&checks.open_dataset(source.id(), &path, &dataset_name)?)
}

/// One check of a dataset and all its sources.
struct Checks<'a> {
    file: &'a OpenFile,
    call: Call<'a>,
    /// Sources already followed, identified by file and dataset, with their numbers of elements. It also ends cycles.
    seen: HashMap<(PathBuf, Vec<u8>), i64>,
    /// Paths of the sources, as in [`SourceFiles`].
    resolved: BTreeMap<PathBuf, ResolvedSource>,
}

impl Checks<'_> {
    /// Follows the sources of a dataset. `holder` is the path of the file that holds it, and `opened` is the identifier
    /// of that file (`None` for the child's file).
    fn follow(&mut self, list: &Handle, holder: &Path, opened: Option<&Handle>, depth: u64) -> Result<()> {
        for (name, _, _) in properties::external_files(list, self.call)? {
            self.present(holder, &name)?;
        }
        if !properties::is_virtual(list, self.call)? {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            let (path, what) = (self.call.path.to_path_buf(), "a chain of virtual datasets".to_owned());
            return Err(Hdf5Error::Limit { path, what, limit: MAX_DEPTH });
        }
        for number in 0..properties::mapping_count(list, self.call)? {
            let file_name = self.text("H5Pget_virtual_filename", list, number, H5Pget_virtual_filename)?;
            let dataset_name = self.text("H5Pget_virtual_dsetname", list, number, H5Pget_virtual_dsetname)?;
            let (Some(file_name), Some(dataset_name)) = (literal(&file_name), literal(&dataset_name)) else {
                let what = "a virtual dataset with numbered sources (%b in their names)".to_owned();
                return Err(unsupported(self.call, what));
            };
            let is_elsewhere = file_name != b".";
            let path = if is_elsewhere { self.source(holder, &file_name)? } else { holder.to_path_buf() };
            let source = (path, dataset_name);
            if !self.seen.contains_key(&source) {
                let other = is_elsewhere.then(|| open_file(&source.0)).transpose()?;
                self.follow_source(other.as_ref().or(opened), source.clone(), depth)?;
            }
            self.check_length(list, number, &source)?;
        }
        Ok(())
    }

    /// Notes the length of a source in the file `opened` (`None` for the child's file), and follows its sources.
    fn follow_source(
        &mut self,
        opened: Option<&Handle>,
        (path, dataset_name): (PathBuf, Vec<u8>),
        depth: u64,
    ) -> Result<()> {
        let file = opened.map_or(self.file.file.id(), Handle::id);
        let dataset = self.open_dataset(file, &path, &dataset_name)?;
        let call = Call::of_object(&path, &dataset_name);
        let space = dataspaces::of_dataset(&dataset, call)?;
        // SAFETY: a dataspace is open.
        let elements = unsafe { H5Sget_simple_extent_npoints(space.id()) };
        let list = properties::creation_list(&dataset, call)?;
        self.seen.insert((path.clone(), dataset_name), elements);
        self.follow(&list, &path, opened, depth + 1)
    }

    /// Fails if mapping `number` refers to a whole source whose number of elements has changed. libhdf5 then refuses some
    /// reads, and returns other values than before in the rest.
    fn check_length(&self, list: &Handle, number: usize, source: &(PathBuf, Vec<u8>)) -> Result<()> {
        let selected = properties::source_space(list, number, self.call)?;
        // SAFETY: a dataspace is open.
        if unsafe { H5Sget_select_type(selected.id()) } != H5S_sel_type::H5S_SEL_ALL {
            return Ok(());
        }
        // SAFETY: as above.
        let mapped = unsafe { H5Sget_select_npoints(properties::virtual_space(list, number, self.call)?.id()) };
        let found = self.seen.get(source).copied().unwrap_or(mapped);
        // An unlimited selection has a negative number of elements.
        let (Ok(mapped), Ok(found)) = (u64::try_from(mapped), u64::try_from(found)) else { return Ok(()) };
        if mapped == found {
            return Ok(());
        }
        let (file, dataset) = source;
        let changed = format!("{} in {}", dataset.escape_ascii(), file.as_os_str().as_bytes().escape_ascii());
        Err(Hdf5Error::ChangedSource { path: self.call.path.to_path_buf(), changed, mapped, found })
    }

    /// Opens a source dataset.
    fn open_dataset(&self, file: hid_t, path: &Path, name: &[u8]) -> Result<Handle> {
        let call = Call::of_object(path, name);
        let c_name = call.c_string("H5Dopen", name)?;
        // SAFETY: a file is open, the name is terminated; we own the new identifier.
        let dataset = unsafe { call.handle("H5Dopen", H5Dopen2(file, c_name.as_ptr(), H5P_DEFAULT)) };
        dataset.map_err(|_| self.missing(format!("dataset {} of {}", name.escape_ascii(), path.display())))
    }

    /// Returns the path of a virtual dataset's source file if it is allowed and exists. If no file has the absolute
    /// name of the source, libhdf5 uses a file of the same name in the folder of the dataset's file, so that files can
    /// be moved together. If there is none in this folder or the current one, and the path of the dataset's file is a
    /// symbolic link, it uses one in the folder of the file that the link leads to.
    fn source(&mut self, holder: &Path, name: &[u8]) -> Result<PathBuf> {
        let named = Path::new(OsStr::from_bytes(name));
        let in_folder = match named.is_absolute() {
            true => named.file_name().filter(|_| !named.exists()),
            false => Some(named.as_os_str()),
        };
        let Some(in_folder) = in_folder else { return self.present(holder, name) };
        let exists_next_to = |holder: &Path| folder_of(holder).join(in_folder).exists();
        let is_elsewhere = || exists_next_to(holder) || Path::new(in_folder).exists();
        match holder.canonicalize() {
            Ok(real) if !is_elsewhere() && exists_next_to(&real) => self.present(&real, in_folder.as_bytes()),
            _ if exists_next_to(holder) => self.present(holder, in_folder.as_bytes()),
            _ => self.present(holder, name),
        }
    }

    /// Returns the path of another file if it is allowed and exists.
    fn present(&mut self, holder: &Path, name: &[u8]) -> Result<PathBuf> {
        let named = Path::new(OsStr::from_bytes(name));
        let escaped = name.escape_ascii().to_string();
        let path = folder_of(holder).join(named);
        let of_file = folder_of(&self.file.path).canonicalize();
        let of_target = self.file.path.canonicalize().map(|target| folder_of(&target).to_path_buf());
        let is_inside =
            |path: &Path| [&of_file, &of_target].into_iter().flatten().any(|folder| path.starts_with(folder));
        // Links are resolved, because a link in the folder may lead anywhere.
        let resolved = path.canonicalize();
        let is_allowed = self.file.any_foreign_file
            || match &resolved {
                Ok(resolved) => is_inside(resolved),
                // Whether files outside exist is not revealed.
                Err(_) if named.is_absolute() => folder_of(named).canonicalize().is_ok_and(|folder| is_inside(&folder)),
                Err(_) => named.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)),
            };
        if !is_allowed {
            return Err(Hdf5Error::ForeignFile { path: self.call.path.to_path_buf(), foreign: escaped });
        }
        match resolved {
            Ok(resolved) if self.file.replaced.as_ref() == Some(&resolved) => {
                Err(Hdf5Error::ReplacedSource { path: self.call.path.to_path_buf(), foreign: escaped })
            }
            // A FIFO or a device would block libhdf5.
            Ok(resolved) if resolved.is_file() => {
                self.resolved.insert(path.clone(), ResolvedSource::new(resolved));
                Ok(path)
            }
            _ => Err(self.missing(escaped)),
        }
    }

    fn missing(&self, missing: String) -> Hdf5Error {
        Hdf5Error::MissingSource { path: self.call.path.to_path_buf(), missing }
    }

    /// Returns a name of a mapping.
    fn text(
        &self,
        function: &str,
        list: &Handle,
        number: usize,
        get: unsafe extern "C" fn(hid_t, usize, *mut c_char, usize) -> isize,
    ) -> Result<Vec<u8>> {
        // SAFETY: the creation list of a virtual dataset with this mapping; without a buffer, only the length is
        // returned.
        let len = self.call.count(function, unsafe { get(list.id(), number, ptr::null_mut(), 0) })?;
        let mut text = vec![0_u8; len + 1];
        // SAFETY: the buffer has room for the name and its terminator.
        self.call.count(function, unsafe { get(list.id(), number, text.as_mut_ptr().cast(), text.len()) })?;
        text.truncate(len);
        Ok(text)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Returns the name that a source name stands for: `%%` is a percent sign. Returns `None` if it stands for a series
/// (`%b` is a block number).
fn literal(name: &[u8]) -> Option<Vec<u8>> {
    let mut literal = Vec::with_capacity(name.len());
    let mut bytes = name.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'%' && bytes.next() != Some(&b'%') {
            return None;
        }
        literal.push(byte);
    }
    Some(literal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_percent_signs_are_one() {
        assert_eq!(literal(b"5%%b.h5"), Some(b"5%b.h5".to_vec()));
        assert_eq!(literal(b"5%b.h5"), None);
        assert_eq!(literal(b"5%"), None);
    }
}
