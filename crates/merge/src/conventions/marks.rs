//! Formats that fixed names of objects or attributes identify, and that rules of the user can describe.
//!
//! Their readers take sizes, numbers or whole documents from objects that a concatenation would double or leave as they
//! are. Invariant: only marks that no other format has are listed.

use super::FileView;

/// Mark that identifies a format.
enum Mark {
    /// Attribute of the root group.
    Attribute(&'static str),
    /// Attribute of the root group whose text begins like this.
    Text(&'static str, &'static str),
    /// Attributes that one object has.
    Attributes(&'static [&'static str]),
    /// Objects that the file has.
    Objects(&'static [&'static str]),
    /// One of several marks.
    Any(&'static [Self]),
}

/// Format with its mark.
pub(super) struct MarkedFormat {
    mark: Mark,
    /// Name of the format, and the reason why a concatenation is wrong.
    pub what: &'static str,
    /// What to use instead.
    pub instead: &'static str,
}

/// Creates an entry of the table.
const fn format(mark: Mark, what: &'static str, instead: &'static str) -> MarkedFormat {
    MarkedFormat { mark, what, instead }
}

const FORMATS: [MarkedFormat; 19] = [
    format(
        Mark::Any(&[Mark::Objects(&["/formatVersion", "/nirs"]), Mark::Objects(&["/formatVersion", "/nirs1"])]),
        "a recording in SNIRF, which describes its probe and channels once",
        "read the recordings with MNE and use mne.concatenate_raws",
    ),
    format(
        Mark::Attributes(&["emd_group_type"]),
        "an array in EMD, whose axes are the datasets dim1, dim2 and so on",
        "read the arrays with emdfile or HyperSpy and stack them there",
    ),
    format(
        Mark::Objects(&["/Version", "/Data", "/Operations"]),
        "a file of Velox, whose metadata are one JSON text for each image",
        "read the images with HyperSpy and stack them there",
    ),
    format(
        Mark::Text("file_format", "HyperSpy"),
        "a signal of HyperSpy, whose axes state their sizes",
        "use hyperspy.api.stack",
    ),
    format(
        Mark::Attributes(&["nwalkers", "ndim", "iteration"]),
        "a chain of emcee, whose reader takes the number of steps from the attribute iteration",
        "read the chains with emcee.backends.HDFBackend and concatenate the samples",
    ),
    format(
        Mark::Objects(&["/data/demo_0"]),
        "demonstrations of robomimic, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Text("file_format", "ASDF"),
        "a seismological file in ASDF, which contains whole documents such as QuakeML",
        "use pyasdf, or --union for files with different waveforms",
    ),
    format(
        Mark::Objects(&["/strain/Strain", "/meta/GPSstart"]),
        "a strain of GWOSC, whose start and duration are scalars",
        "read the files with gwpy.timeseries.TimeSeries.read and write one",
    ),
    format(
        Mark::Objects(&["/All_Data", "/Data_Products"]),
        "granules of JPSS, whose number and factors /Data_Products describes",
        "use nagg",
    ),
    format(
        Mark::Objects(&["/BAG_root"]),
        "a bathymetric grid in BAG, whose metadata are one document",
        "merge the grids with GDAL",
    ),
    format(
        Mark::Text("productSpecification", "INT.IHO.S-1"),
        "a product of S-100, whose grids state their sizes",
        "merge the data with the tools that made the product",
    ),
    format(
        Mark::Objects(&["/gid", "/integer scalars"]),
        "blocks of FLASH, which number their neighbours",
        "read the files with yt",
    ),
    format(
        Mark::Attribute("NumMeshBlocks"),
        "mesh blocks of Athena++, whose number is an attribute",
        "read the files with yt",
    ),
    format(
        Mark::Objects(&["/gridded_data_format"]),
        "a data set in GDF, whose grids are numbered",
        "read the files with yt",
    ),
    format(
        Mark::Objects(&["/INFOS_GENERALES", "/ENS_MAA"]),
        "a mesh in MED, whose cells number its nodes",
        "use MEDCoupling",
    ),
    format(Mark::Objects(&["/tstt/elements"]), "a mesh of MOAB, whose elements number its nodes", "use MOAB"),
    format(
        Mark::Attribute("HDF5_BACKEND_VERSION"),
        "an IDS of IMAS, whose arrays of structures state their shapes (AOS_SHAPE)",
        "use IMAS-Python",
    ),
    format(
        Mark::Objects(&["/HD/MG", "/FM"]),
        "barcodes of SnapATAC, which hold positions in the fragments",
        "use SnapATAC2, which writes .h5ad",
    ),
    format(
        Mark::Attributes(&["TupleDimensions", "ComponentDimensions"]),
        "an array of DREAM.3D, whose attributes state its shape",
        "append the arrays in DREAM.3D",
    ),
];

/// Finds the format that a mark identifies; returns it with the number of the object that has the mark.
pub(super) fn find(file: &FileView<'_>) -> Option<(usize, &'static MarkedFormat)> {
    FORMATS.iter().find_map(|format| Some((format.mark.find(file)?, format)))
}

impl Mark {
    /// Returns the number of the object that has the mark.
    fn find(&self, file: &FileView<'_>) -> Option<usize> {
        let find = |path: &&str| file.find(path.as_bytes());
        match self {
            Self::Attribute(name) => file.has(0, name).then_some(0),
            Self::Text(name, start) => file.root_text(name).filter(|text| text.starts_with(start)).map(|_| 0),
            Self::Attributes(names) => (0..file.len()).find(|&at| names.iter().all(|name| file.has(at, name))),
            Self::Objects(paths) => paths.iter().all(|path| find(path).is_some()).then(|| find(&paths[0])).flatten(),
            Self::Any(marks) => marks.iter().find_map(|mark| mark.find(file)),
        }
    }
}
