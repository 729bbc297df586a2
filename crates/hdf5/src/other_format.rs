//! Recognition of other file formats by their first bytes, so that an error message can name the format and suggest a
//! remedy.
//!
//! This module does not read such files. Invariant: file names are not considered, and unrecognised formats are not
//! guessed.

use serde::{Deserialize, Serialize};

/// A format that is not HDF5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OtherFormat {
    /// An empty file.
    Empty,
    /// netCDF before version 4: classic, 64-bit offset, 64-bit data.
    NetCdf3,
    /// ROOT.
    Root,
    /// HDF version 4 and earlier.
    Hdf4,
    /// GRIB, edition 1 or 2.
    Grib,
    /// FITS.
    Fits,
    /// MATLAB before version 7.3.
    Matlab5,
    /// A NumPy array.
    Npy,
    /// Apache Parquet.
    Parquet,
    /// A zip archive, including `.npz` and zipped Zarr.
    Zip,
    /// Data compressed by gzip.
    Gzip,
    /// Data compressed by bzip2.
    Bzip2,
    /// Data compressed by xz.
    Xz,
    /// Data compressed by zstd.
    Zstd,
    /// A tar archive.
    Tar,
    /// A page in HTML, as web servers send instead of a file.
    WebPage,
    /// An XML document, as object stores send instead of a file.
    Xml,
    /// A pointer of Git LFS to a file that was not fetched.
    GitLfs,
}

/// File signatures and their formats.
const SIGNATURES: [(&[u8], OtherFormat); 17] = [
    (b"CDF\x01", OtherFormat::NetCdf3),
    (b"CDF\x02", OtherFormat::NetCdf3),
    (b"CDF\x05", OtherFormat::NetCdf3),
    // The version of the file follows, which is small or, after an extension, negative: text may begin with `root`, too.
    (b"root\x00", OtherFormat::Root),
    (b"root\xff", OtherFormat::Root),
    (b"\x0e\x03\x13\x01", OtherFormat::Hdf4),
    (b"GRIB", OtherFormat::Grib),
    (b"SIMPLE  =", OtherFormat::Fits),
    (b"MATLAB 5.0 MAT-file", OtherFormat::Matlab5),
    (b"\x93NUMPY", OtherFormat::Npy),
    (b"PAR1", OtherFormat::Parquet),
    (b"PK\x03\x04", OtherFormat::Zip),
    (b"PK\x05\x06", OtherFormat::Zip),
    (b"\x1f\x8b", OtherFormat::Gzip),
    (b"BZh", OtherFormat::Bzip2),
    (b"\xfd7zXZ\x00", OtherFormat::Xz),
    (b"\x28\xb5\x2f\xfd", OtherFormat::Zstd),
];

/// Beginnings of text files and their formats, in lower case.
const BEGINNINGS: [(&str, OtherFormat); 4] = [
    ("<!doctype html", OtherFormat::WebPage),
    ("<html", OtherFormat::WebPage),
    ("<?xml", OtherFormat::Xml),
    ("version https://git-lfs.github.com/", OtherFormat::GitLfs),
];

/// Signature of POSIX tar and its offset in bytes, after the fields for the first file's name, owner and checksum.
const TAR: (usize, &[u8]) = (257, b"ustar");

impl OtherFormat {
    /// Number of bytes that suffice to recognise a format: the header of a tar archive, and text after blank lines.
    pub const SIGNATURE_LEN_BYTES: usize = 512;

    /// Returns the format of a file that begins with `start`: the whole file or its first [`Self::SIGNATURE_LEN_BYTES`]
    /// bytes.
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.is_empty() {
            return Some(Self::Empty);
        }
        if start.get(TAR.0..).is_some_and(|rest| rest.starts_with(TAR.1)) {
            return Some(Self::Tar);
        }
        let by_bytes = SIGNATURES.iter().find(|(signature, _)| start.starts_with(signature)).map(|&(_, format)| format);
        by_bytes.or_else(|| Self::of_text(start))
    }

    /// Returns the format of text; a byte order mark, blanks and the case of letters are ignored.
    fn of_text(start: &[u8]) -> Option<Self> {
        let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
        let begins_with =
            |words: &str| text.get(..words.len()).is_some_and(|first| first.eq_ignore_ascii_case(words.as_bytes()));
        BEGINNINGS.iter().find(|(words, _)| begins_with(words)).map(|&(_, format)| format)
    }

    /// Returns a noun phrase for the format, for example `a netCDF-3 file`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Empty => "an empty file",
            Self::NetCdf3 => "a netCDF-3 file",
            Self::Root => "a ROOT file",
            Self::Hdf4 => "an HDF4 file",
            Self::Grib => "a GRIB file",
            Self::Fits => "a FITS file",
            Self::Matlab5 => "a MATLAB file before version 7.3",
            Self::Npy => "a NumPy array (.npy)",
            Self::Parquet => "a Parquet file",
            Self::Zip => "a zip archive",
            Self::Gzip => "compressed by gzip",
            Self::Bzip2 => "compressed by bzip2",
            Self::Xz => "compressed by xz",
            Self::Zstd => "compressed by zstd",
            Self::Tar => "a tar archive",
            Self::WebPage => "a web page (HTML)",
            Self::Xml => "an XML document",
            Self::GitLfs => "a pointer of Git LFS",
        }
    }

    /// Returns a suggestion for obtaining HDF5 files from files of this format.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Empty => "copy the files again from their source",
            Self::NetCdf3 => "convert netCDF-3 files with `nccopy -k nc4 IN OUT`",
            Self::Root => "convert the events of ROOT files with `raddle events convert`",
            Self::Hdf4 => "convert HDF4 files with `h4toh5 IN OUT`",
            Self::Grib => "convert GRIB files with `cdo -f nc4 copy IN OUT`",
            Self::Fits => "convert FITS files, for example with astropy and h5py",
            Self::Matlab5 => "save MATLAB files again with `save -v7.3`",
            Self::Npy => "write NumPy arrays to HDF5 files with h5py",
            Self::Parquet => "convert Parquet files, for example with pandas",
            Self::Zip => "unpack zip archives (.npz, zipped Zarr) and convert their contents",
            Self::Gzip => "decompress the files with `gunzip`",
            Self::Bzip2 => "decompress the files with `bunzip2`",
            Self::Xz => "decompress the files with `unxz`",
            Self::Zstd => "decompress the files with `unzstd`",
            Self::Tar => "unpack tar archives with `tar -xf`",
            Self::WebPage | Self::Xml => {
                "download the files again: these hold a message of the server, such as an error or a login page"
            }
            Self::GitLfs => "fetch the files with `git lfs pull`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_name_their_formats() {
        for (signature, format) in SIGNATURES {
            assert!(signature.len() <= OtherFormat::SIGNATURE_LEN_BYTES);
            assert_eq!(OtherFormat::of(&[signature, b"more"].concat()), Some(format));
            assert_eq!(OtherFormat::of(&signature[..signature.len() - 1]), None);
        }
        for (text, format) in BEGINNINGS {
            assert_eq!(OtherFormat::of(text.as_bytes()), Some(format));
            assert_eq!(OtherFormat::of(&text.as_bytes()[..text.len() - 1]), None);
        }
        assert_eq!(OtherFormat::of(b"\xef\xbb\xbf\r\n <!DOCTYPE HTML PUBLIC>"), Some(OtherFormat::WebPage));
        assert_eq!(OtherFormat::of(&[&[0; TAR.0], TAR.1].concat()), Some(OtherFormat::Tar));
        assert_eq!(OtherFormat::of(b"CDF\x03"), None);
        assert_eq!(OtherFormat::of(b"root:x:0:0:root:/root:/bin/sh\n"), None);
        assert_eq!(OtherFormat::of(b""), Some(OtherFormat::Empty));
    }
}
