//! Formats that fixed names of objects or attributes identify, and that rules of the user can describe.
//!
//! Their readers take sizes, numbers or whole documents from objects that a concatenation would duplicate or leave
//! unchanged. Invariant: only marks that no other format has are listed.

use super::FileView;
use crate::schema::{child_path, last_name, parent_path};
use std::collections::HashSet;

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
    /// Path of an object, and an attribute that it has.
    AttributeOf(&'static str, &'static str),
    /// Names of objects that one group has.
    Members(&'static [&'static str]),
    /// All of several marks.
    All(&'static [Self]),
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

const FORMATS: [MarkedFormat; 128] = [
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
        Mark::Any(&[Mark::Objects(&["/data/demo_0"]), Mark::Objects(&["/data/demo_1"])]),
        "demonstrations of robomimic or robosuite, which the files number alike",
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
        Mark::Any(&[
            Mark::Text("filetype", "statepoint"),
            Mark::Text("filetype", "summary"),
            Mark::Text("filetype", "track"),
            Mark::Text("filetype", "data_"),
        ]),
        "a statepoint, a geometry, tracks or data of OpenMC, which are not concatenated: tallies are summed",
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
    format(
        Mark::Attribute("DEEPDISH_IO_VERSION"),
        "Python objects of deepdish or flammkuchen, whose numbers and strings are attributes",
        "load the files with deepdish.io.load or flammkuchen.load and save one",
    ),
    format(
        Mark::Attribute("HICKLE_VERSION"),
        "Python objects of hickle, which stores strings as arrays of their characters",
        "load the files with hickle.load and dump one",
    ),
    format(
        Mark::Attributes(&["generator", "cantera-version"]),
        "states of Cantera, whose number is an attribute (size)",
        "read the states with cantera.SolutionArray, append them and save one",
    ),
    format(
        Mark::Attributes(&["OCTAVE_NEW_FORMAT"]),
        "a variable of Octave, whose last axis is the first in the file",
        "concatenate in Octave and save again",
    ),
    format(
        Mark::Attribute("SCILAB_sod_version"),
        "variables of Scilab, whose last axis is the first in the file",
        "concatenate in Scilab and save again",
    ),
    format(
        Mark::Objects(&["/_creator/JULIA_MAJOR"]),
        "variables of JLD, whose last axis is the first in the file",
        "concatenate in Julia and save again",
    ),
    format(
        Mark::Objects(&["/traj_0/actions"]),
        "trajectories of ManiSkill, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/episode_0/actions", "/episode_0/observations"]),
        "episodes of Minari, which the files number alike",
        "use minari.combine_datasets",
    ),
    format(
        Mark::Objects(&["/tensor", "/x-coordinate"]),
        "fields of PDEBench, which have one grid",
        "--rule '*-coordinate: once' carries it once",
    ),
    format(
        Mark::Objects(&["/time_index", "/meta"]),
        "time series of NREL's rex, which describe their sites once",
        "--rule '/meta: once' carries the sites once, and --rule '/coordinates: once' their coordinates",
    ),
    format(
        Mark::Objects(&["/mzML", "/mzML_spectrumIndex"]),
        "spectra in mzMLb, whose document holds positions in the arrays",
        "read the spectra with pyteomics or psims and write one file",
    ),
    format(
        Mark::Objects(&["/SpectrumIndex", "/CVReference"]),
        "spectra in mz5, whose tables hold row numbers",
        "convert the files with msconvert",
    ),
    format(
        Mark::Objects(&["/aux/kallisto_version"]),
        "abundances of kallisto, which name the transcripts in each file",
        "read the samples with tximport or sleuth",
    ),
    format(
        Mark::Attribute("active.assay"),
        "a Seurat object, whose cells are numbered within the file",
        "merge the objects in Seurat, or convert them to .h5ad, which raddle merges",
    ),
    format(
        Mark::Objects(&["/ArchRVersion"]),
        "an Arrow file of ArchR, whose fragments are sorted by cell",
        "use an ArchRProject of several Arrow files",
    ),
    format(
        Mark::Any(&[Mark::Objects(&["/geneExp/bin1/expression"]), Mark::Objects(&["/cellBin/cell"])]),
        "a matrix in GEF, whose genes and cells hold row numbers",
        "read the files with stereopy and write .h5ad, which raddle merges",
    ),
    format(
        Mark::Objects(&["/AlnInfo/AlnIndex"]),
        "alignments of PacBio, whose index holds row numbers",
        "use cmph5tools",
    ),
    format(
        Mark::AttributeOf("/metadata", "metadata_package_version"),
        "a wave function in TREXIO, whose attributes state its sizes",
        "read the files one after the other",
    ),
    format(
        Mark::Attribute("west_file_format_version"),
        "a simulation of WESTPA, whose segments hold row numbers",
        "use w_multi_west",
    ),
    format(
        Mark::Objects(&["/s00/resolutions", "/s00/subdivisions"]),
        "an image of BigDataViewer, whose resolutions are described once",
        "join the images with BigStitcher",
    ),
    format(Mark::Objects(&["/MDF/images"]), "images of EMAN2, which the files number alike", "use e2proc2d.py"),
    format(
        Mark::Objects(&["/Chimera/image1"]),
        "a map of Chimera, whose origin is an attribute",
        "use the command volume add of ChimeraX",
    ),
    format(
        Mark::Objects(&["/objects/obj_type_1"]),
        "tracks of btrack, whose map holds row numbers",
        "read the tracks with btrack.io.HDF5FileHandler",
    ),
    format(
        Mark::Attributes(&["Position_Indices", "Spectroscopic_Indices"]),
        "a main dataset of USID, whose positions and spectroscopic values are described once",
        "read the datasets with pyUSID and write one",
    ),
    format(
        Mark::Any(&[
            Mark::Members(&["EBSD", "SEM"]),
            Mark::All(&[Mark::Objects(&["/manufacturer"]), Mark::Members(&["EBSD"])]),
            Mark::All(&[Mark::Objects(&["/Manufacturer"]), Mark::Members(&["EBSD"])]),
            Mark::Objects(&["/crystal_map/header"]),
        ]),
        "a map of EBSD, whose header states its rows and columns",
        "read the maps with kikuchipy or orix and stack them there",
    ),
    format(
        Mark::Members(&["Coordinate_System", "Spectral_Data"]),
        "reflectance of NEON, whose map information is that of one tile",
        "convert the tiles with neonhs or GDAL",
    ),
    format(
        Mark::Attribute("kwik_version"),
        "spikes in Kwik, whose times begin with each recording",
        "read the files with klusta or phy",
    ),
    format(
        Mark::Any(&[Mark::Objects(&["/ExperimentSettings", "/TOC"]), Mark::Objects(&["/3BRecInfo"])]),
        "a recording of 3Brain, whose tables of contents hold row numbers",
        "read the recordings with spikeinterface",
    ),
    format(
        Mark::Any(&[
            Mark::Objects(&["/mapping", "/settings", "/sig"]),
            Mark::Objects(&["/wells", "/recordings", "/mxw_version"]),
        ]),
        "a recording of MaxWell, whose last axis is time",
        "read the recordings with spikeinterface",
    ),
    format(
        Mark::Objects(&["/RawData/Samples", "/AsynchronData"]),
        "a recording of g.tec, whose markers hold row numbers",
        "read the recordings with MNE and use mne.concatenate_raws",
    ),
    format(
        Mark::Members(&["element_ids", "index_pointers", "node_ids"]),
        "a report in SONATA, which describes its elements and its times once",
        "use libsonata",
    ),
    format(
        Mark::Objects(&["/points", "/structure", "/metadata"]),
        "a neuron's morphology, whose sections hold row numbers",
        "read the morphologies with MorphIO",
    ),
    format(
        Mark::Objects(&["/MSession_0"]),
        "sessions of MES, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Any(&[
            Mark::Members(&["features", "index", "items", "labels"]),
            Mark::Members(&["features", "file_index", "files", "times"]),
        ]),
        "features in h5features, whose index holds row numbers",
        "use h5features",
    ),
    format(
        Mark::Objects(&["/images/image000000000", "/events"]),
        "events and images of E2VID, which hold row numbers",
        "read the files one after the other",
    ),
    format(
        Mark::Text("GROUPTYPE", "Root"),
        "a data product of LOFAR, whose attributes state its samples and its start",
        "read the files one after the other",
    ),
    format(
        Mark::Objects(&["/data_format/dimension_order"]),
        "traces of SeisBench, whose numbers are in a table of metadata",
        "read the files with seisbench.data.MultiWaveformDataset",
    ),
    format(
        Mark::Attributes(&["BlockRate", "Origin", "Spacing"]),
        "a recording of Febus, whose blocks overlap",
        "read the files with dascore.spool, chunk them and write one",
    ),
    format(
        Mark::Objects(&["/scan0/moment_0"]),
        "a radar volume of GAMIC, whose sweeps and ranges of values are attributes of each file",
        "read the volumes with xradar",
    ),
    format(
        Mark::Objects(&["/geographic", "/image1", "/overview"]),
        "a radar image of KNMI, whose time and scale are attributes of each file",
        "read the images with GDAL or wradlib",
    ),
    format(
        Mark::Text("File Type", "HEC-RAS"),
        "a model of HEC-RAS, whose tables hold row numbers",
        "read the files with rashdf",
    ),
    format(
        Mark::Objects(&["/oqparam"]),
        "a calculation of OpenQuake, whose tables hold row numbers",
        "read the calculations with OpenQuake",
    ),
    format(
        Mark::Objects(&["/configuration/instrument/subarray/layout"]),
        "a file of lstchain or ctapipe, which describes its instrument once",
        "use lstchain_merge_hdf5_files or ctapipe-merge",
    ),
    format(
        Mark::Attribute("NuRadioMC_EvtGen_version"),
        "events of NuRadioMC, whose attributes count the simulated events",
        "use the script merge_hdf5.py of NuRadioMC",
    ),
    format(
        Mark::Objects(&["/events/event", "/events/mainpar"]),
        "events of cait, whose second axis are the events",
        "use cait.data.merge_h5_sets",
    ),
    format(
        Mark::Objects(&["/AXIS/AXIS1"]),
        "a diagnostic of OSIRIS, whose axes are stored as two limits",
        "use --union for dumps with different names, or read the dumps one after the other",
    ),
    format(
        Mark::All(&[Mark::Attribute("NumSteps"), Mark::Objects(&["/Step0"])]),
        "steps of ADIOS2, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/Step#0"]),
        "steps of H5hut, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/Parameters and Global Attributes"]),
        "a file of Carpet, whose attributes place each component in the grid",
        "read the files with kuibit or yt",
    ),
    format(
        Mark::Any(&[Mark::Members(&["cones", "orientation"]), Mark::Members(&["cones", "orientations"])]),
        "a mesh of PETSc or Firedrake, whose cells number its points",
        "read the meshes with PETSc or Firedrake",
    ),
    format(
        Mark::Objects(&["/INDEX/NASTRAN"]),
        "results of MSC Nastran, whose index holds row numbers",
        "read the results with pyNastran",
    ),
    format(
        Mark::Attribute("DADF5_version_major"),
        "results of DAMASK, whose mappings hold row numbers",
        "read the results with damask.Result",
    ),
    format(
        Mark::Objects(&["/_hdf5libinfo"]),
        "a file of Silo, whose objects are numbered within the file",
        "use silo's tools or VisIt",
    ),
    format(
        Mark::Objects(&["/CORE", "/STATE_0001"]),
        "states of VERA, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/header/nparttot", "/particles/xyz"]),
        "a dump of Phantom, whose header counts its particles",
        "read the dumps one after the other",
    ),
    format(
        Mark::Attributes(&["class_of_the_particles", "number_of_particles"]),
        "particles of AMUSE, whose attributes count them",
        "read the sets with amuse.io.read_set_from_file, add them and write one",
    ),
    format(
        Mark::Objects(&["/Group_Size", "/Num_of_groups", "/Offset"]),
        "a catalogue of VELOCIraptor, whose offsets are positions in other files",
        "read the catalogue with velociraptor-python",
    ),
    format(
        Mark::Attribute("caesar"),
        "a catalogue of Caesar, whose halos and galaxies hold row numbers",
        "read the catalogues with caesar.load",
    ),
    format(
        Mark::Attribute("arbor_type"),
        "merger trees of ytree, whose index holds row numbers",
        "load the trees with ytree.load",
    ),
    format(
        Mark::All(&[Mark::Attribute("log_name"), Mark::Attribute("Step dimensions")]),
        "a log of Labber, whose last axis are the entries",
        "concatenate in Labber",
    ),
    format(
        Mark::Attribute("OMX_VERSION"),
        "matrices of OMX, whose attribute SHAPE states their size",
        "use --union for files with different matrices and no common lookup, or openmatrix",
    ),
    format(
        Mark::Text("type", "General time series data format"),
        "a time series in gtsdf, whose blocks have their own gains and offsets",
        "read the files with gtsdf.load and save one",
    ),
    format(
        Mark::Objects(&["/config_batch_0/config_0"]),
        "configurations of MACE, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/Trial0/data/time"]),
        "trials of RoboHive, which the files number alike",
        "rename the groups, then use --union",
    ),
    format(
        Mark::Objects(&["/train", "/test", "/neighbors", "/distances"]),
        "a benchmark of nearest neighbours, which are row numbers",
        "compute the neighbours again for the joined vectors",
    ),
    format(
        Mark::Objects(&["/xcoor", "/ycoor", "/zcoor"]),
        "a cutout of the JHTDB, which has one grid",
        "--rule '/[xy]coor: once' carries the two other axes of cutouts along z once",
    ),
    format(
        Mark::Objects(&["/CoREAS/observers", "/inputs"]),
        "a simulation of CoREAS, whose inputs are attributes",
        "read the simulations one after the other",
    ),
    format(Mark::Objects(&["/ElemInfo", "/SideInfo"]), "a mesh of HOPR, whose elements hold row numbers", "use HOPR"),
];

/// Finds the format that a mark identifies; returns it with the number of the object that has the mark.
pub(super) fn find(file: &FileView<'_>) -> Option<(usize, &'static MarkedFormat)> {
    // Most attributes of a file have few names, so that nearly all marks are dismissed without a search through objects.
    let attributes = (0..file.len()).flat_map(|at| file.attributes(at)).map(|attribute| attribute.name.as_slice());
    let names: HashSet<&[u8]> = attributes.collect();
    FORMATS.iter().find_map(|format| Some((format.mark.find(file, &names)?, format)))
}

impl Mark {
    /// Returns the number of the object that has the mark. `names` has the names of all attributes of the file.
    fn find(&self, file: &FileView<'_>, names: &HashSet<&[u8]>) -> Option<usize> {
        let find = |path: &&str| file.find(path.as_bytes());
        match self {
            Self::Attribute(name) => file.has(0, name).then_some(0),
            Self::Text(name, start) => file.root_text(name).filter(|text| text.starts_with(start)).map(|_| 0),
            Self::Attributes(wanted) => {
                let has_all = |&at: &usize| wanted.iter().all(|name| file.has(at, name));
                let are_known = wanted.iter().all(|name| names.contains(name.as_bytes()));
                are_known.then(|| (0..file.len()).find(has_all)).flatten()
            }
            Self::AttributeOf(path, name) => find(path).filter(|&at| file.has(at, name)),
            Self::Members(members) => {
                let (first, others) = members.split_first()?;
                let is_first = |at: &usize| {
                    let path = file.path_of(*at);
                    path.ends_with(first.as_bytes()) && last_name(path) == first.as_bytes()
                };
                let has = |group: &[u8], name: &str| file.find(&child_path(group, name.as_bytes())).is_some();
                let groups = (1..file.len()).filter(is_first).map(|at| parent_path(file.path_of(at)));
                let found = groups.into_iter().find(|group| others.iter().all(|name| has(group, name)))?;
                file.find(found)
            }
            Self::Objects(paths) => paths.iter().all(|path| find(path).is_some()).then(|| find(&paths[0])).flatten(),
            Self::Any(marks) => marks.iter().find_map(|mark| mark.find(file, names)),
            Self::All(marks) => {
                let found = marks.iter().map(|mark| mark.find(file, names)).collect::<Option<Vec<_>>>()?;
                found.last().copied()
            }
        }
    }
}
