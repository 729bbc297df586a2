"""Files of formats that a merge refuses by name, and that rules of the user can describe: experiments, recordings and
Python libraries.

A function writes the marks of its format and the dataset that a concatenation would make wrong. ``KINDS`` maps each of
them to a user block and to words of the refusal.
"""

import h5py
import numpy as np


def geant4(file, number):
    """Writes an ntuple whose last page is longer than its entries."""
    ntuple = file.create_group("default_ntuples/Hits")
    ntuple["columns"], ntuple["entries"] = np.array([1], "u4"), np.array([2], "u8")
    ntuple["names"], ntuple["forms"] = np.array([b"Edep"]), np.array([b"double"])
    ntuple["Edep/pages"] = np.array([1.0, number, 0.0, 0.0])


def larcv(file, number):
    file["Events/event_id"] = np.zeros(2, [("run", "i8"), ("subrun", "i8"), ("event", "i8")])
    extents = np.array([(0, 2), (2, 1)], [("first", "u8"), ("n", "u4")])
    file["Data/particle_mc_group/extents"], file["Data/particle_mc_group/particles"] = extents, np.full(3, number)


def madminer(file, number):
    file["benchmarks/names"], file["observables/names"] = np.array([b"sm", b"bsm"]), np.array([b"pt"])
    file["samples/observations"], file["samples/weights"] = np.full((3, 1), float(number)), np.ones((3, 2))


def km3pipe(file, number):
    file.attrs["km3pipe"], file.attrs["format_version"] = np.bytes_("9.13"), np.bytes_("5.1")
    file["hits/_indices"] = np.array([(0, 2), (2, 1)], [("index", "i8"), ("n_items", "i8")])
    file["hits/tot"] = np.full(3, number, "u1")


def mcnp(file, number):
    file["ptrack/RecordLog"] = np.array([(number, 0)], [("nps", "u8"), ("event_array_index", "u8")])
    file["ptrack/Source"] = np.full(1, number)


def openmc(file, number):
    file.attrs["filetype"], file.attrs["version"] = np.bytes_("statepoint"), [18, 1]
    file["tallies/tally 1/results"] = np.full((2, 1, 2), float(number))


def european_xfel(file, number):
    file["INDEX/trainId"] = np.arange(3, dtype="u8") + 3 * number
    file["INDEX/DET:xtdf/image/first"], file["INDEX/DET:xtdf/image/count"] = np.array([0, 2, 4], "u8"), np.full(3, 2, "u8")
    file["INSTRUMENT/DET:xtdf/image/data"] = np.full((6, 2), number)


def cxi(file, number):
    file["cxi_version"] = 160
    file["entry_1/data_1/data"], file["entry_1/instrument_1/detector_1/mask"] = np.full((2, 3, 4), number), np.zeros((3, 4))


def scipp(file, number):
    file.attrs["scipp-version"], file.attrs["scipp-type"] = "26.8.0", "Variable"
    file["values"] = np.full(2, float(number))
    file["values"].attrs["dims"], file["values"].attrs["shape"] = ["x"], [2]


def uvh5(file, number):
    file["Header/Nblts"], file["Header/antenna_numbers"] = 2, np.array([0, 1])
    file["Data/visdata"] = np.full((2, 4, 1), complex(number))


def filterbank(file, number):
    file.attrs["CLASS"], file.attrs["VERSION"] = "FILTERBANK", "1.0"
    file["data"] = np.full((4, 1, 8), number, "f4")
    file["data"].attrs["tstart"], file["data"].attrs["tsamp"] = 58000.0 + number, 1.0


def gwpy(file, number):
    file["X1:STRAIN"] = np.full(8, float(number))
    file["X1:STRAIN"].attrs.update(x0=100.0 * number, dx=0.25, xunit="s", unit="m")


def prodml(file, number):
    acquisition = file.create_group("Acquisition")
    acquisition.attrs.update(PulseRate=1000.0, NumberOfLoci=5, schemaVersion="2.0", uuid=f"{number}")
    file["Acquisition/Raw[0]/RawData"] = np.full((4, 5), float(number))
    file["Acquisition/Raw[0]/RawDataTime"] = np.arange(4) + 60_000_000 * number
    file["Acquisition/Raw[0]/RawDataTime"].attrs["PartEndTime"] = f"2020-01-01T00:0{number}:00.3"


def dascore(file, number):
    file.attrs["__format__"], file.attrs["__DASDAE_version__"] = np.bytes_("DASDAE"), np.bytes_("1")
    patch = file.create_group("waveforms/DAS")
    patch.attrs["_dims"] = np.bytes_("distance,time")
    patch["data"], patch["_coord_time"] = np.full((3, 4), float(number)), np.arange(4)


def sleap(file, number):
    file["frames"] = np.array([(0, 0, 1)], [("frame_idx", "u8"), ("instance_id_start", "u8"), ("instance_id_end", "u8")])
    file["instances"] = np.array([(0, 2)], [("point_id_start", "u8"), ("point_id_end", "u8")])
    file["points"], file["pred_points"] = np.full(2, float(number)), np.zeros(0)


def sleap_tracks(file, number):
    file["tracks"], file["track_occupancy"] = np.full((1, 2, 3, 5), float(number)), np.ones((5, 1), "u1")
    file["node_names"] = np.array([b"head", b"thorax", b"tail"])


def photons(file, number):
    file.attrs["format_name"], file.attrs["format_version"] = np.bytes_("Photon-HDF5"), np.bytes_("0.5")
    file["photon_data/timestamps"], file["setup/excitation_wavelengths"] = np.arange(4) + number, np.array([5e-7])


def variants(file, number):
    file["samples"], file["variants/POS"] = np.array([b"S1", b"S2"]), np.arange(3) + number
    file["calldata/GT"] = np.full((3, 2, 2), number, "i1")


def ensemble(file, number):
    file["meta/pdf_name"], file["meta/xvals"] = np.array([b"interp"]), np.linspace(0, 1, 5)[np.newaxis]
    file["data/yvals"] = np.full((3, 5), float(number))


def h5io(file, number):
    file.create_group("h5io").attrs["TITLE"] = "dict"
    file["h5io/key_name"] = np.frombuffer(f"run {number}".encode(), "u1")
    file["h5io/key_name"].attrs["TITLE"] = "unicode"


def the_well(file, number):
    file.attrs["n_trajectories"], file.attrs["grid_type"] = 2, "cartesian"
    file["dimensions/x"], file["t0_fields/density"] = np.arange(4.0), np.full((2, 3, 4), float(number))


def illustris(file, number):
    """Writes a catalogue of groups."""
    header = file.create_group("Header")
    header.attrs["Ngroups_ThisFile"], header.attrs["NumFiles"] = 3, 2
    file["Group/GroupMass"] = np.full(3, float(number))


def vaex(file, number):
    texts = file.create_group("table/columns/name")
    texts["data"], texts["indices"] = np.frombuffer(b"abcde", "S1"), np.array([0, 2, 5], "i4")
    texts["data"].attrs["dtype"] = "str"


def geant4_histograms(file, number):
    file["default_histograms/h1/energy/bins"] = np.full(6, float(number))


def histogram(file, number):
    file.create_group("energy").attrs["uhi_schema"] = 1
    file["energy/storage/values"] = np.full(6, float(number))


def les_houches(file, number):
    file["events"], file["particles"] = np.array([[1.0, 2.0, 0.0], [1.0, 1.0, 2.0]]), np.full((3, 13), float(number))
    file["procInfo"], file["init"] = np.ones((1, 6)), np.ones(10)


def les_houches_of_the_first_version(file, number):
    file["event/nparticles"], file["event/start"] = np.array([2, 1]), np.array([0, 2])
    file["particle/id"], file["procInfo/procId"] = np.full(3, number), np.array([1])


def h5parm(file, number):
    file.create_group("sol000").attrs["h5parm_version"] = np.bytes_("1.0")
    file["sol000/phase000/val"], file["sol000/phase000/ant"] = np.full((2, 3), float(number)), np.array([b"a", b"b"])


def chime(file, number):
    file["index_map/time"], file["index_map/freq"] = np.arange(3.0) + 3 * number, np.arange(2.0)
    file["vis"] = np.full((2, 4, 3), complex(number))


def tofdaq(file, number):
    file.attrs["NbrWrites"], file.attrs["NbrSamples"] = np.array([2], "i4"), np.array([4], "i4")
    file["FullSpectra/TofData"], file["FullSpectra/MassAxis"] = np.full((2, 1, 1, 4), number, "f4"), np.arange(4.0)


def multi_channel_systems(file, number):
    file.attrs["McsHdf5ProtocolType"] = "RawData"
    file["Data/Recording_0/AnalogStream/Stream_0/ChannelData"] = np.full((3, 5), number)


def berkeley_gw(file, number):
    file["mf_header/versionnumber"], file["mats/matrix"] = 1, np.full((2, 3), float(number))


def prophesee(file, number):
    file["CD/events"], file["CD/indexes"] = np.full(3, number), np.array([(0, 0)], [("id", "u8"), ("ts", "i8")])


def million_songs(file, number):
    file["analysis/songs"] = np.array([(0,)], [("idx_segments_start", "i4")])
    file["metadata/songs"], file["analysis/segments_start"] = np.array([number]), np.full(3, float(number))


def minc(file, number):
    file["minc-2.0/image/0/image"] = np.full((2, 3, 4), number, "i2")


def gprmax(file, number):
    file.attrs["gprMax"], file.attrs["Iterations"] = "3.1.7", 4
    file["rxs/rx1/Ez"] = np.full(4, float(number))


def ismrmrd(file, number):
    file["dataset/xml"], file["dataset/data"] = np.array([b"<header/>"]), np.full(3, number)


def ph5(file, number):
    file["Experiment_g/Receivers_g/Das_g_1/Data_a_0001"] = np.full(4, number)


def mth5(file, number):
    file.attrs["file.type"] = "MTH5"
    file["Experiment/Surveys/one/Stations/mt1/run/ex"] = np.full(4, number)


def vasp(file, number):
    file["input/poscar/ion_types"], file["results/positions"] = np.array([b"Si"]), np.full((2, 3), float(number))


def imaris(file, number):
    file.attrs["ImarisDataSet"] = np.frombuffer(b"ImarisDataSet", "S1")
    file["DataSet/ResolutionLevel 0/TimePoint 0/Channel 0/Data"] = np.full((2, 3, 4), number, "u2")


def labview(file, number):
    file["Untitled/Voltage"] = np.full(4, float(number))
    file["Untitled/Voltage"].attrs.update(wf_start_time=f"2026-11-29T10:00:0{number}", wf_increment=0.1)


def nix(file, number):
    file.attrs["format"], file.attrs["version"] = "nix", [1, 2, 0]
    file["data/session/data_arrays/voltage/data"] = np.full(4, float(number))


def dsec(file, number):
    file["ms_to_idx"], file["events/t"] = np.array([0, 2, 4], "u8"), np.arange(4, dtype="u4") + number


def m3ed(file, number):
    file["prophesee/left/ms_map_idx"], file["prophesee/left/t"] = np.array([0, 2], "u8"), np.arange(4) + number


def calh5(file, number):
    file["Header/cal_type"], file["Header/antenna_numbers"] = np.bytes_("gain"), np.array([0, 1])
    file["Data/gains"], file["Data/flags"] = np.full((2, 1, 4, 1, 1), complex(number)), np.zeros((2, 1, 4, 1, 1), bool)


def madrigal(file, number):
    file["Data/Table Layout"], file["Metadata/Data Parameters"] = np.full(3, float(number)), np.array([b"NE"])
    file["Data/Array Layout/2D Parameters/ne"] = np.full((2, 3), float(number))


def amisr(file, number):
    file["BeamCodes"], file["FittedParams/Ne"] = np.ones((2, 4)), np.full((3, 2, 5), float(number))


def snps(file, number):
    file["val"], file["row"], file["col"] = np.full((3, 2), float(number)), np.array([b"a", b"b"]), np.array([b"s"] * 3)
    file["row_property"], file["col_property"] = np.ones((2, 1)), np.ones((3, 3))


VAEX = "/table/columns/name/indices: bounds of /table/columns/name/data"
KINDS = {
    geant4: (b"", "Geant4"),
    larcv: (b"", "merge_larcv3_files.py"),
    madminer: (b"", "combine_and_shuffle"),
    km3pipe: (b"", "km3pipe"),
    mcnp: (b"", "mcnptools"),
    openmc: (b"", "openmc.StatePoint"),
    european_xfel: (b"", "extra_data.RunDirectory"),
    cxi: (b"", "CXIDB"),
    scipp: (b"", "scipp.concat"),
    uvh5: (b"", "pyuvdata"),
    filterbank: (b"", "blimpy"),
    gwpy: (b"", "gwpy.timeseries"),
    prodml: (b"", "dascore.spool"),
    dascore: (b"", "--union"),
    sleap: (b"", "SLEAP"),
    sleap_tracks: (b"", "SLEAP"),
    photons: (b"", "phconvert"),
    variants: (b"", "--rule '/samples: once'"),
    ensemble: (b"", "qp.concatenate"),
    h5io: (b"", "h5io"),
    the_well: (b"", "The Well"),
    illustris: (b"", "catalogue"),
    vaex: (b"", f"--rule '{VAEX}'"),
    calh5: (b"", "pyuvdata"),
    madrigal: (b"", "--include '/Data/Table Layout'"),
    amisr: (b"", "AMISR"),
    snps: (b"", "pysnptools"),
    geant4_histograms: (b"", "Geant4"),
    histogram: (b"", "uhi.io.hdf5"),
    les_houches: (b"", "LHEH5"),
    les_houches_of_the_first_version: (b"", "LHEH5"),
    h5parm: (b"", "h5_merger.py"),
    chime: (b"", "caput.tod.concatenate"),
    tofdaq: (b"", "TofDaq"),
    multi_channel_systems: (b"", "McsPyDataTools"),
    berkeley_gw: (b"", "epsmat_hdf5_merge.py"),
    prophesee: (b"", "Metavision"),
    million_songs: (b"", "create_aggregate_file.py"),
    minc: (b"", "mincconcat"),
    gprmax: (b"", "outputfiles_merge"),
    ismrmrd: (b"", "ismrmrd"),
    ph5: (b"", "PH5"),
    mth5: (b"", "mth5"),
    vasp: (b"", "py4vasp"),
    imaris: (b"", "Imaris"),
    labview: (b"", "LabVIEW"),
    nix: (b"", "nixio"),
    dsec: (b"", "DSEC"),
    m3ed: (b"", "M3ED"),
}


def texts_of_vaex(path):
    """Returns the strings of the column that `vaex` writes."""
    with h5py.File(path) as file:
        column = file["table/columns/name"]
        data, ends = column["data"][:].tobytes(), column["indices"][:]
        return [data[start:end] for start, end in zip(ends, ends[1:])]
