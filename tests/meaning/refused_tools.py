"""Files of formats that a merge refuses by name, and that rules of the user can describe: libraries of Python and other
languages, biology, images, radars and simulations.

``FORMATS`` has the marks of each format: datasets, attributes by the path of their object, and words of the refusal. The
marks are those that the writers of the formats leave; dataset ``rows`` stands for the data. ``KINDS`` has a function that
writes a file of each format.
"""

import numpy as np

ROWS = "rows"

FORMATS = {
    "deepdish": ([ROWS], {"/": {"DEEPDISH_IO_VERSION": 12}}, "deepdish.io.load"),
    "hickle": (["data"], {"/": {"HICKLE_VERSION": "5.0.3"}}, "hickle.load"),
    "h5io_with_a_title": (
        ["mine/key_a"],
        {"/mine": {"TITLE": "dict"}, "/mine/key_a": {"TITLE": "ndarray"}},
        "h5io",
    ),
    "cantera": (
        ["states/data/T"],
        {"/states": {"generator": "Cantera SolutionArray", "cantera-version": "3.2.0"}},
        "cantera.SolutionArray",
    ),
    "octave": (["x/value"], {"/x": {"OCTAVE_NEW_FORMAT": np.uint8(1)}}, "Octave"),
    "scilab": (["x"], {"/": {"SCILAB_sod_version": [3]}}, "Scilab"),
    "jld": (["_creator/JULIA_MAJOR", "x"], {}, "Julia"),
    "robosuite": (["data/demo_1/actions"], {}, "--union"),
    "maniskill": (["traj_0/actions"], {}, "--union"),
    "minari": (["episode_0/actions", "episode_0/observations"], {}, "minari.combine_datasets"),
    "pdebench": (["tensor", "x-coordinate"], {}, "--rule '*-coordinate: once'"),
    "rex": (["time_index", "meta"], {}, "--rule '/meta: once'"),
    "mzmlb": (["mzML", "mzML_spectrumIndex"], {}, "pyteomics"),
    "mz5": (["SpectrumIndex", "CVReference"], {}, "msconvert"),
    "kallisto": (["aux/kallisto_version", "est_counts"], {}, "tximport"),
    "seurat": ([ROWS], {"/": {"active.assay": "RNA"}}, "Seurat"),
    "archr": (["ArchRVersion", ROWS], {}, "ArchR"),
    "gef": (["geneExp/bin1/expression", "geneExp/bin1/gene"], {}, "stereopy"),
    "pacbio": (["AlnInfo/AlnIndex"], {}, "PacBio"),
    "trexio": (["nucleus/charge"], {"/metadata": {"metadata_package_version": "2.6"}}, "TREXIO"),
    "westpa": (["summary"], {"/": {"west_file_format_version": 9}}, "w_multi_west"),
    "big_data_viewer": (["s00/resolutions", "s00/subdivisions", "t00000/s00/0/cells"], {}, "BigStitcher"),
    "eman": (["MDF/images/0/image"], {}, "e2proc2d.py"),
    "chimera": (["Chimera/image1/data_zyx"], {}, "ChimeraX"),
    "btrack": (["objects/obj_type_1/coords", "objects/obj_type_1/map"], {}, "btrack"),
    "usid": (
        ["Raw"],
        {"/Raw": {"Position_Indices": 0, "Spectroscopic_Indices": 0}},
        "pyUSID",
    ),
    "kikuchipy": (["manufacturer", "Scan 1/EBSD/Header/n_rows"], {}, "kikuchipy"),
    "orix": (["crystal_map/header/nx", "crystal_map/data/phi1"], {}, "orix"),
    "neon": (["HARV/Reflectance/Metadata/Coordinate_System/Map_Info",
              "HARV/Reflectance/Metadata/Spectral_Data/Wavelength"], {}, "NEON"),
    "kwik": ([ROWS], {"/": {"kwik_version": 2}}, "phy"),
    "three_brain": (["ExperimentSettings", "TOC"], {}, "3Brain"),
    "maxwell": (["mapping", "settings/lsb", "sig"], {}, "spikeinterface"),
    "gtec": (["RawData/Samples", "AsynchronData/Time"], {}, "mne.concatenate_raws"),
    "sonata_report": (
        ["report/All/mapping/element_ids", "report/All/mapping/index_pointers", "report/All/mapping/node_ids"],
        {},
        "libsonata",
    ),
    "morphology": (["points", "structure"], {"/metadata": {"version": [1, 3]}}, "MorphIO"),
    "mes": (["MSession_0/MUnit_0/Channel_0"], {}, "--union"),
    "h5features": (["features/features", "features/index", "features/items", "features/labels"], {}, "h5features"),
    "e2vid": (["images/image000000000", "events/xs"], {}, "E2VID"),
    "lofar": ([ROWS], {"/": {"GROUPTYPE": "Root"}}, "LOFAR"),
    "seisbench": (["data_format/dimension_order", "data/bucket0"], {}, "MultiWaveformDataset"),
    "febus": (["Zone1/StrainRate"], {"/Zone1": {"BlockRate": 1000, "Origin": [0], "Spacing": [1]}}, "dascore.spool"),
    "gamic": (["scan0/moment_0"], {}, "xradar"),
    "knmi": (["image1/image_data"], {"/geographic": {"geo_number_rows": 2}, "/overview": {"a": 1}}, "KNMI"),
    "hec_ras": ([ROWS], {"/": {"File Type": np.bytes_("HEC-RAS Results")}}, "rashdf"),
    "openquake": (["oqparam"], {}, "OpenQuake"),
    "lstchain": (["configuration/instrument/subarray/layout"], {}, "lstchain_merge_hdf5_files"),
    "nuradiomc": (["weights"], {"/": {"NuRadioMC_EvtGen_version": "3", "n_events": 9}}, "merge_hdf5.py"),
    "cait": (["events/event", "events/mainpar"], {}, "cait.data.merge_h5_sets"),
    "osiris": (["AXIS/AXIS1", "e1"], {}, "OSIRIS"),
    "adios": (["Step0/x"], {"/": {"NumSteps": 1}}, "--union"),
    "h5hut": (["Step#0/x"], {}, "--union"),
    "carpet": (["Parameters and Global Attributes/All Parameters"], {}, "kuibit"),
    "petsc": (["topologies/t/topology/cones", "topologies/t/topology/orientation"], {}, "Firedrake"),
    "nastran": (["INDEX/NASTRAN/RESULT/NODAL/DISPLACEMENT"], {}, "pyNastran"),
    "damask": (["cell_to/phase"], {"/": {"DADF5_version_major": 0}}, "damask.Result"),
    "silo": (["_hdf5libinfo", ".silo/#000000"], {}, "VisIt"),
    "vera": (["CORE/core_map", "STATE_0001/pin_powers"], {}, "--union"),
    "phantom": (["header/nparttot", "particles/xyz"], {}, "Phantom"),
    "amuse": (
        ["particles/0000000001/keys"],
        {"/particles/0000000001": {"class_of_the_particles": "x", "number_of_particles": 2}},
        "amuse.io.read_set_from_file",
    ),
    "velociraptor": (["Group_Size", "Num_of_groups", "Offset"], {}, "velociraptor-python"),
    "caesar": ([ROWS], {"/": {"caesar": "0.2"}}, "caesar.load"),
    "ytree": ([ROWS], {"/": {"arbor_type": "YTreeArbor"}}, "ytree.load"),
    "labber": (["Data/Data"], {"/": {"log_name": "a", "Step dimensions": [2, 1]}}, "Labber"),
    "trees_of_gadget": (["TreeTable/StartOffset"], {"/Header": {"Ntrees_ThisFile": 2}}, "yt"),
    "icesat_land": (["gt1l/land_segments/ph_ndx_beg"], {}, "ICESat-2"),
    "mvsec": (["davis/left/image_raw_event_inds"], {}, "MVSEC"),
    "galacticus": (["Outputs/Output1/mergerTreeStartIndex"], {}, "Galacticus"),
    "open_matrix": (["data/m1"], {"/": {"OMX_VERSION": np.bytes_("0.2"), "SHAPE": [2, 2]}}, "openmatrix"),
    "gtsdf": (["block0000/data"], {"/": {"type": "General time series data format", "no_blocks": 1}}, "gtsdf.load"),
    "mace": (["config_batch_0/config_0/positions"], {}, "--union"),
    "robohive": (["Trial0/data/time"], {}, "--union"),
    "neighbours": (["train", "test", "neighbors", "distances"], {}, "nearest neighbours"),
    "jhtdb": (["Velocity_0001", "xcoor", "ycoor", "zcoor"], {}, "--rule '/[xy]coor: once'"),
    "coreas": (["CoREAS/observers/a"], {"/inputs": {"RUNNR": 1}}, "CoREAS"),
    "hopr": (["ElemInfo", "SideInfo"], {}, "HOPR"),
    "tracks_of_openmc": (["track_1_1_1"], {"/": {"filetype": np.bytes_("track")}}, "openmc.StatePoint"),
    "visual_genome": (["img_to_first_box", "boxes_512"], {}, "Visual Genome"),
    "neuraltalk": (["label_start_ix", "labels"], {}, "neuraltalk2"),
    "bottom_up_attention": (["pos_boxes", "image_features"], {}, "bottom-up attention"),
    "sparse_of_julia": (["A/colptr", "A/rowval"], {}, "Julia"),
    "vaex_dictionary": (
        ["table/columns/x/indices/data", "table/columns/x/dictionary/data"],
        {"/table/columns/x": {"type": "dictionary_encoded"}},
        "dictionary",
    ),
}  # fmt: skip


def _writer(name, datasets, attributes):
    def write(file, number):
        for path in datasets:
            file[path] = np.arange(2 * number, 2 * number + 2)
        for path, values in attributes.items():
            (file[path] if path in file else file.create_group(path)).attrs.update(values)

    write.__name__ = name
    return write


KINDS = {_writer(name, *marks[:2]): (b"", marks[2]) for name, marks in FORMATS.items()}
