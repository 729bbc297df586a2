//! Formats that fixed names of objects or attributes identify, and that rules of the user can describe.
//!
//! Their readers take sizes, numbers or whole documents from objects that a concatenation would duplicate or leave
//! unchanged. Invariant: only marks that no other format has are listed.

use super::FileView;
use crate::schema::child_path;

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
    /// Names of objects that one group has.
    Members(&'static [&'static str]),
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

const FORMATS: [MarkedFormat; 60] = [
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
        "a Velox file, whose metadata are one JSON string for each image",
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
    format(
        Mark::Any(&[Mark::Members(&["columns", "entries", "forms", "names"]), Mark::Objects(&["/default_histograms"])]),
        "ntuples or histograms of Geant4: counts are added, and pages may end with rows that entries does not count",
        "read the first rows of each column's pages, as many as entries states, and write them to one file",
    ),
    format(
        Mark::Objects(&["/benchmarks/names", "/samples/observations"]),
        "samples of MadMiner, which describe benchmarks and observables once",
        "use madminer.sampling.combine_and_shuffle",
    ),
    format(
        Mark::Attribute("km3pipe"),
        "a file of km3pipe, whose index tables hold row numbers",
        "read the events with km3pipe and write one file",
    ),
    format(
        Mark::Objects(&["/ptrack/RecordLog"]),
        "particle tracks of MCNP, whose RecordLog holds row numbers",
        "read the files with mcnptools",
    ),
    format(
        Mark::Text("filetype", "statepoint"),
        "a statepoint of OpenMC, whose tallies are summed rather than concatenated",
        "read the files with openmc.StatePoint",
    ),
    format(
        Mark::Objects(&["/INDEX/trainId"]),
        "a file of European XFEL, whose /INDEX holds row numbers",
        "use extra_data.RunDirectory, whose write method makes one file",
    ),
    format(
        Mark::Objects(&["/cxi_version"]),
        "a file of CXIDB, which describes its detectors once",
        "read the files one after the other",
    ),
    format(
        Mark::Attribute("scipp-version"),
        "data of scipp, whose attributes state the shape of each array",
        "use scipp.concat and save_hdf5",
    ),
    format(
        Mark::Any(&[
            Mark::Objects(&["/Header/Nblts", "/Data/visdata"]),
            Mark::Objects(&["/Header/cal_type", "/Data/flags"]),
        ]),
        "visibilities in UVH5 or gains in CalH5, whose header states their number and describes the antennas once",
        "read the files with pyuvdata and write one",
    ),
    format(
        Mark::Text("CLASS", "FILTERBANK"),
        "a spectrogram in filterbank format, whose start is an attribute (tstart)",
        "read the files with blimpy and write one",
    ),
    format(
        Mark::Attributes(&["x0", "dx", "xunit"]),
        "a series of gwpy, whose start is an attribute",
        "read the series with gwpy.timeseries.TimeSeries.read, append them and write one",
    ),
    format(
        Mark::Attributes(&["PulseRate", "NumberOfLoci", "schemaVersion"]),
        "a recording in PRODML, whose attributes state the number and the times of its samples",
        "read the files with dascore.spool, chunk them and write one",
    ),
    format(
        Mark::Text("__format__", "DASDAE"),
        "patches of DASCore, whose attributes state their dimensions",
        "use --union for patches of different times",
    ),
    format(
        Mark::Objects(&["/frames", "/instances", "/pred_points"]),
        "labels of SLEAP, whose frames and instances hold row numbers",
        "merge the labels in SLEAP",
    ),
    format(
        Mark::Objects(&["/track_occupancy", "/node_names"]),
        "tracks of SLEAP, which name their nodes and tracks once and have the frames on their last axis",
        "merge the labels in SLEAP and export them",
    ),
    format(
        Mark::Text("format_name", "Photon-HDF5"),
        "photons in Photon-HDF5, whose timestamps begin with each file",
        "read the files with phconvert",
    ),
    format(
        Mark::Objects(&["/samples", "/calldata", "/variants"]),
        "variants of scikit-allel, which name their samples once",
        "--rule '/samples: once' carries them once",
    ),
    format(
        Mark::Objects(&["/data", "/meta/pdf_name"]),
        "an ensemble of qp, whose metadata are arrays of one row",
        "use qp.concatenate",
    ),
    format(
        Mark::Any(&[Mark::Objects(&["/h5io"]), Mark::Objects(&["/mnepython"])]),
        "Python objects in h5io, which stores strings as arrays of their bytes",
        "read the files with h5io or MNE",
    ),
    format(
        Mark::Objects(&["/t0_fields", "/dimensions"]),
        "trajectories of The Well, which describe their grid once and state their number",
        "read the files with the_well",
    ),
    format(
        Mark::Attributes(&["uhi_schema"]),
        "UHI histograms (boost-histogram, hist), whose counts are added",
        "read the histograms with uhi.io.hdf5 and add them",
    ),
    format(
        Mark::Any(&[
            Mark::Objects(&["/event", "/particle", "/procInfo"]),
            Mark::Objects(&["/events", "/particles", "/procInfo"]),
        ]),
        "events in LHEH5, which hold the numbers of their first particles",
        "read the files one after the other",
    ),
    format(
        Mark::Attributes(&["h5parm_version"]),
        "solutions of LOFAR in H5parm, whose axes are datasets of their own",
        "use h5_merger.py of lofar_helpers",
    ),
    format(
        Mark::Any(&[Mark::Objects(&["/index_map/time"]), Mark::Objects(&["/index_map/freq"])]),
        "a file of CHIME, whose axes are datasets of the group index_map",
        "use caput.tod.concatenate",
    ),
    format(
        Mark::Attributes(&["NbrWrites", "NbrSamples"]),
        "spectra of TofDaq, whose axis of masses is stored once",
        "use the TOFWERK tools",
    ),
    format(
        Mark::Attribute("McsHdf5ProtocolType"),
        "a recording of Multi Channel Systems, whose last axis is time",
        "read the recordings with McsPyDataTools",
    ),
    format(
        Mark::Objects(&["/mf_header"]),
        "a file of BerkeleyGW, whose header states the sizes of its arrays",
        "use epsmat_hdf5_merge.py",
    ),
    format(
        Mark::Objects(&["/CD/events", "/CD/indexes"]),
        "events of Prophesee, whose indexes hold row numbers",
        "use the tools of Metavision",
    ),
    format(
        Mark::Objects(&["/analysis/songs", "/metadata/songs"]),
        "songs of the Million Song Dataset, which hold row numbers",
        "use create_aggregate_file.py",
    ),
    format(Mark::Objects(&["/minc-2.0"]), "an image in MINC, whose dimensions state their lengths", "use mincconcat"),
    format(
        Mark::Attribute("gprMax"),
        "traces of gprMax, which are the columns of a B-scan",
        "use tools.outputfiles_merge of gprMax",
    ),
    format(
        Mark::Objects(&["/dataset/xml", "/dataset/data"]),
        "an acquisition in ISMRMRD, which has one header",
        "read the files with ismrmrd and write one",
    ),
    format(
        Mark::Objects(&["/Experiment_g"]),
        "an experiment in PH5, whose tables name its arrays",
        "use the PH5 tools",
    ),
    format(
        Mark::Text("file.type", "MTH5"),
        "recordings in MTH5, whose start and rate are attributes",
        "merge the files with mth5",
    ),
    format(
        Mark::Objects(&["/input/poscar", "/results"]),
        "a calculation of VASP, which describes its atoms once",
        "read the calculations with py4vasp",
    ),
    format(
        Mark::Attribute("ImarisDataSet"),
        "an image of Imaris, whose sizes are attributes",
        "join the images in Imaris",
    ),
    format(
        Mark::Attributes(&["wf_start_time", "wf_increment"]),
        "a waveform of LabVIEW, whose start is an attribute",
        "concatenate waveforms without a gap with --convention none, others in the program that wrote them",
    ),
    format(
        Mark::Text("format", "nix"),
        "data in NIX, whose dimensions are described once",
        "read the files with nixio",
    ),
    format(
        Mark::Objects(&["/Data/Table Layout", "/Metadata/Data Parameters"]),
        "a file of Madrigal, whose arrays have the times on their last axis",
        "--include '/Data/Table Layout' merges the table",
    ),
    format(
        Mark::Objects(&["/BeamCodes", "/FittedParams"]),
        "a file of an AMISR radar, which describes its beams once",
        "read the files one after the other",
    ),
    format(
        Mark::Objects(&["/val", "/row_property", "/col_property"]),
        "a matrix of PySnpTools, whose columns are named once",
        "read the matrices with pysnptools and write one",
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
            Self::Members(names) => {
                let has = |group: &[u8], name: &str| file.find(&child_path(group, name.as_bytes())).is_some();
                let has_all = |&at: &usize| names.iter().all(|name| has(file.path_of(at), name));
                (0..file.len()).filter(|&at| file.is_group(at)).find(has_all)
            }
            Self::Objects(paths) => paths.iter().all(|path| find(path).is_some()).then(|| find(&paths[0])).flatten(),
            Self::Any(marks) => marks.iter().find_map(|mark| mark.find(file)),
        }
    }
}
