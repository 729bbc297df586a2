"""Files of formats that a merge refuses by name, from models and matrices to simulations.

A function writes the marks of its format and the dataset that a concatenation would make wrong. ``KINDS`` maps each of
them, and those of `refused_files` and `refused_tools`, to a user block and to words of the refusal; ``BY_RULES`` has the formats that rules
of the user can describe.
"""

import awkward as ak
import h5py
import numpy as np
import refused_files
import refused_tools


def keras_model(file, number):
    """Writes the file as ``model.save("model.h5")`` of Keras 2 does."""
    file.attrs["keras_version"], file.attrs["backend"] = "2.15.0", "tensorflow"
    file.attrs["model_config"] = '{"class_name": "Sequential"}'
    weights = file.create_group("model_weights")
    weights.attrs["layer_names"] = np.array([b"dense"])
    layer = weights.create_group("dense/dense")
    weights["dense"].attrs["weight_names"] = np.array([b"dense/kernel:0", b"dense/bias:0"])
    layer["kernel:0"], layer["bias:0"] = np.full((4, 2), number, "f4"), np.zeros(2, "f4")


def keras_weights(file, number):
    """Writes the file as ``save_weights("w.h5")`` of Keras 2 does."""
    file.attrs["keras_version"], file.attrs["backend"] = "2.15.0", "tensorflow"
    file.attrs["layer_names"] = np.array([b"dense"])
    file["dense/dense/kernel:0"] = np.full((4, 2), number, "f4")


def keras_3_weights(file, number):
    """Writes the file as ``save_weights("m.weights.h5")`` of Keras 3 does."""
    for group in ["layers/dense/vars", "layers/dense_1/vars", "vars"]:
        file.create_group(group)
    file["layers/dense/vars/0"], file["layers/dense/vars/1"] = np.full((4, 2), number, "f4"), np.zeros(2, "f4")
    file["layers/dense_1/vars/0"] = np.zeros((2, 1), "f4")


def keras_3_subclass(file, number):
    """Writes the file as ``save_weights("m.weights.h5")`` of Keras 3 does for a subclass of ``Model``."""
    file.create_group("vars")
    file["hidden/vars/0"], file["hidden/vars/1"] = np.full((4, 2), number, "f4"), np.zeros(2, "f4")


def matlab_struct(file, number):
    group = file.create_group("s")
    group.attrs["MATLAB_class"] = np.bytes_(b"struct")
    group["a"] = np.full((1, 1), float(number))
    group["a"].attrs["MATLAB_class"] = np.bytes_(b"double")


def matlab_cell(file, number):
    refs = file.create_group("#refs#")
    refs["a"] = np.full((1, 1), float(number))
    refs["a"].attrs["MATLAB_class"] = np.bytes_(b"double")
    cell = file.create_dataset("c", (1, 1), h5py.ref_dtype)
    cell[0, 0] = refs["a"].ref
    cell.attrs["MATLAB_class"] = np.bytes_(b"cell")


def matlab_sparse(file, number):
    """Writes a sparse matrix: ``jc`` are positions of columns in ``ir``."""
    group = file.create_group("m")
    group.attrs["MATLAB_class"], group.attrs["MATLAB_sparse"] = np.bytes_(b"double"), np.uint64(3)
    group["data"], group["ir"], group["jc"] = np.ones(2), np.array([0, 2], "u8"), np.array([0, 1, 2], "u8")


def matlab_empty(file, number):
    """Writes an empty array, which stores its shape in place of values."""
    file["e"] = np.array([0, 3], "u8")
    file["e"].attrs["MATLAB_class"], file["e"].attrs["MATLAB_empty"] = np.bytes_(b"double"), np.uint8(1)


def cooler(file, number, kind="HDF5::Cooler"):
    file.attrs["format"], file.attrs["format-version"] = kind, 3
    file["bins/start"], file["bins/end"] = np.arange(4), np.arange(1, 5)
    file["chroms/name"], file["chroms/length"] = np.array([b"chr1"]), np.array([4])
    file["pixels/bin1_id"], file["pixels/bin2_id"], file["pixels/count"] = np.arange(3), np.arange(3), np.full(3, number)
    file["indexes/bin1_offset"], file["indexes/chrom_offset"] = np.arange(5), np.array([0, 4])


def multi_cooler(file, number):
    file.attrs["format"] = "HDF5::MCOOL"
    for resolution in ["1000", "2000"]:
        cooler(file.create_group(f"resolutions/{resolution}"), number)


def single_cell_cooler(file, number):
    file.attrs["format"] = "HDF5::SCOOL"
    cooler(file.create_group("cells/one"), number)


def cooler_in_a_group(file, number):
    cooler(file.create_group("maps"), number)


def jld2(file, number):
    types = file.create_group("_types")
    types["00000001"] = np.dtype([("re", "f8"), ("im", "f8")])
    types["00000001"].attrs["julia type"] = np.array([b"Complex{Float64}"])
    file.create_dataset("z", (2,), types["00000001"])


def hdf_eos(file, number):
    text = "GROUP=SwathStructure\n  GROUP=SWATH_1\n    SwathName=\"O3\"\n    Size=4\n"
    file["HDFEOS INFORMATION/StructMetadata.0"] = np.bytes_(text.encode().ljust(200, b"\0"))
    file["HDFEOS/SWATHS/O3/Data Fields/O3"] = np.full(4, number, "f4")


def mudata(file, number):
    file.attrs["encoding-type"] = "MuData"
    file["obs/_index"] = np.array([b"a", b"b"])
    file.create_group("mod/rna").attrs["encoding-type"] = "anndata"
    file["mod/rna/X"] = np.full((2, 3), number, "f4")


def anndata_in_a_group(file, number):
    """Writes one element as ``anndata.io.write_elem`` does."""
    frame = file.create_group("results/cells")
    frame.attrs["encoding-type"], frame.attrs["_index"] = "dataframe", "_index"
    frame["_index"] = np.array([b"a", b"b"])


def loom(file, number):
    file["matrix"] = np.full((4, 3), number, "f4")
    file["row_attrs/Gene"], file["col_attrs/CellID"] = np.arange(4), np.arange(3)
    file["attrs/LOOM_SPEC_VERSION"] = "3.0.0"


def cgns(file, number):
    base = file.create_group("Base")
    base.attrs["label"] = np.bytes_("CGNSBase_t")
    base[" data"], base["Zone/ data"] = np.array([3, 3], "i4"), np.array([[8], [1], [0]])


def odim(file, number):
    file.attrs["Conventions"] = "ODIM_H5/V2_4"
    data = file.create_group("dataset1/data1")
    data["data"] = np.full((360, 4), number, "u1")
    data.create_group("what").attrs["gain"] = 0.5


def ten_x(file, number, group="matrix"):
    file[f"{group}/barcodes"], file[f"{group}/data"] = np.array([b"A", b"B", b"C"]), np.full(5, number)
    file[f"{group}/indices"], file[f"{group}/indptr"] = np.array([0, 1, 2, 1, 3]), np.array([0, 2, 3, 5])
    file[f"{group}/shape"], file[f"{group}/features/id"] = np.array([4, 3]), np.array([b"a", b"b", b"c", b"d"])


def ten_x_of_a_genome(file, number):
    """Writes the matrix as Cell Ranger 2 does."""
    ten_x(file, number, "GRCh38")


def ten_x_molecules(file, number):
    file["barcodes"], file["barcode_idx"] = np.array([b"A", b"B"]), np.array([0, 1, 1])
    file["umi"], file["count"] = np.arange(3), np.full(3, number)


def gadget(file, number):
    header = file.create_group("Header")
    header.attrs["NumPart_ThisFile"], header.attrs["NumFilesPerSnapshot"] = np.array([3, 0, 0, 0, 0, 0]), 2
    file["PartType0/Coordinates"] = np.full((3, 3), float(number))


def h5md(file, number):
    file.create_group("h5md").attrs["version"] = [1, 1]
    file["particles/all/species"] = np.array([1, 1, 2])
    file["particles/all/position/value"] = np.full((2, 3, 3), float(number))


def ice_cube(file, number):
    index = np.zeros(2, [("Run", "u4"), ("Event", "u4"), ("start", "i8"), ("stop", "i8")])
    index["start"], index["stop"] = [0, 1], [1, 2]
    file["__I3Index__/Pulses"], file["Pulses"] = index, np.full(2, number)


def ctapipe(file, number):
    file.attrs["CTA PRODUCT DATA MODEL NAME"] = "ASWG"
    file["dl1/event/subarray/trigger"], file["configuration/telescopes"] = np.full(3, number), np.arange(2)


def open_pmd(file, number):
    file.attrs["openPMD"], file.attrs["basePath"] = "1.1.0", "/data/%T/"
    file["data/100/fields/rho"] = np.full((4, 5), float(number))


def vtk(file, number):
    data = file.create_group("VTKHDF")
    data.attrs["Type"], data.attrs["Version"] = np.bytes_("UnstructuredGrid"), [2, 0]
    data["Points"], data["Connectivity"], data["Offsets"] = np.full((4, 3), number), np.arange(4), np.array([0, 4])


def sonata(file, number):
    file.attrs["magic"], file.attrs["version"] = np.uint32(0x0A7A), [0, 1]
    file["edges/all/source_node_id"], file["edges/all/edge_type_id"] = np.arange(3), np.full(3, number)


def hepfile(file, number):
    file.attrs["_NUMBER_OF_BUCKETS_"] = 3
    file["jet/njet"], file["jet/px"] = np.array([2, 0, 1]), np.full(3, float(number))


def gedi(file, number):
    file["BEAM0000/rx_sample_start_index"], file["BEAM0000/rxwaveform"] = np.array([1, 3], "u8"), np.full(5, number)


def icesat(file, number):
    file["gt1l/geolocation/ph_index_beg"], file["gt1l/heights/h_ph"] = np.array([1, 0, 3]), np.full(4, number)


def h5flow(file, number):
    file["charge/hits/ref/charge/events/ref_region"] = np.zeros(2, [("start", "i8"), ("stop", "i8")])
    file["charge/hits/data"] = np.full(4, number)


def awkward(file, number):
    """Writes the buffers as the documentation of awkward-array does."""
    form, length, buffers = ak.to_buffers(ak.Array([[1.5, 2.5], [], [float(number)]]))
    group = file.create_group("hits")
    group.attrs["form"], group.attrs["length"] = form.to_json(), length
    for name, buffer in buffers.items():
        group[name] = buffer


def scipy_sparse(file, number):
    group = file.create_group("X")
    group["indptr"], group["indices"], group["data"] = np.array([0, 1, 3]), np.array([2, 0, 1]), np.full(3, number)


def legend(file, number):
    vectors = file.create_group("hits/t")
    vectors.attrs["datatype"] = "array<1>{array<1>{real}}"
    vectors["cumulative_length"], vectors["flattened_data"] = np.array([2, 5]), np.full(5, float(number))


def pycbc(file, number):
    file["H1/template_boundaries"], file["H1/snr"] = np.array([0, 2]), np.full(4, float(number))


def snirf(file, number):
    file["formatVersion"] = "1.1"
    file["nirs/data1/dataTimeSeries"], file["nirs/data1/time"] = np.full((3, 2), float(number)), np.arange(3.0)
    file["nirs/probe/wavelengths"] = np.array([760.0, 850.0])


def dream3d(file, number):
    phases = file.create_dataset("DataContainers/Image/CellData/Phases", data=np.full((2, 2, 2, 1), number))
    phases.attrs["TupleDimensions"], phases.attrs["ComponentDimensions"] = [2, 2, 2], [1]
    file["DataContainers/Image/_SIMPL_GEOMETRY/DIMENSIONS"] = np.array([2, 2, 2])


def emd(file, number):
    image = file.create_group("data/image")
    image.attrs["emd_group_type"] = 1
    image["data"], image["dim1"], image["dim2"] = np.full((2, 3), float(number)), np.arange(2.0), np.arange(3.0)


def velox(file, number):
    file["Version"] = np.array([b'{"format": "Velox"}'])
    file["Data/Image/1/Data"], file["Data/Image/1/Metadata"] = np.full((2, 3, 1), number), np.zeros((50, 1), "u1")
    file.create_group("Operations")


def hyperspy(file, number):
    file.attrs["file_format"], file.attrs["file_format_version"] = "HyperSpy", "3.3"
    signal = file.create_group("Experiments/one")
    signal["data"] = np.full((2, 3), float(number))
    for axis, size in enumerate([2, 3]):
        signal.create_group(f"axis-{axis}").attrs["size"] = size


def emcee(file, number):
    chain = file.create_group("mcmc")
    chain.attrs.update(version="3.1", nwalkers=4, ndim=2, iteration=3)
    chain["chain"], chain["accepted"] = np.full((3, 4, 2), float(number)), np.ones(4)


def robomimic(file, number):
    file.create_group("data").attrs["total"] = 3
    file["data/demo_0/actions"] = np.full((3, 2), float(number))
    file["data/demo_0"].attrs["num_samples"] = 3


def asdf(file, number):
    file.attrs["file_format"], file.attrs["file_format_version"] = "ASDF", "1.0.3"
    file["Waveforms/IU.ANMO/IU.ANMO.00.BHZ"], file["QuakeML"] = np.full(3, number), np.frombuffer(b"<xml/>", "i1")


def gwosc(file, number):
    file["strain/Strain"], file["meta/GPSstart"], file["meta/Duration"] = np.full(8, float(number)), 8 * number, 8


def jpss(file, number):
    file["All_Data/VIIRS-M1-SDR_All/Radiance"] = np.full((4, 3), number, "u2")
    file["All_Data/VIIRS-M1-SDR_All/RadianceFactors"] = np.array([0.5, 0.0])
    file.create_group("Data_Products/VIIRS-M1-SDR")


def bag(file, number):
    file["BAG_root/elevation"], file["BAG_root/metadata"] = np.full((2, 3), number, "f4"), np.frombuffer(b"<xml/>", "S1")


def s100(file, number):
    file.attrs["productSpecification"] = "INT.IHO.S-102.2.1"
    file["BathymetryCoverage/BathymetryCoverage.01/Group_001/values"] = np.full((2, 3), float(number))


def flash(file, number):
    file["integer scalars"] = np.array([(b"nblocks", 2)], [("name", "S8"), ("value", "i4")])
    file["gid"], file["dens"] = np.array([[1, 2], [3, 4]]), np.full((2, 4, 4), float(number))


def athena(file, number):
    file.attrs["NumMeshBlocks"] = 2
    file["prim"], file["Levels"] = np.full((5, 2, 4, 4, 4), float(number)), np.zeros(2, "i4")


def gdf(file, number):
    file.create_group("gridded_data_format")
    file["grid_dimensions"], file["data/grid_0000000000/density"] = np.array([[2, 2, 2]]), np.full((2, 2, 2), float(number))


def med(file, number):
    file.create_group("INFOS_GENERALES")
    cells = "ENS_MAA/mesh/-0000000000000000001-0000000000000000001"
    file[f"{cells}/NOE/COO"], file[f"{cells}/MAI/TR3/NOD"] = np.full(6, float(number)), np.array([1, 2, 3])


def moab(file, number):
    file["tstt/elements/Tri3/connectivity"], file["tstt/nodes/coordinates"] = np.array([[1, 2, 3]]), np.full((3, 3), number)


def imas(file, number):
    file.attrs["HDF5_BACKEND_VERSION"] = "1.0"
    file["equilibrium/time_slice[]&AOS_SHAPE"], file["equilibrium/time"] = np.array([2]), np.full(2, float(number))


def snap(file, number):
    file["HD/MG"], file["FM/barcodePos"], file["FM/fragStart"] = np.array([b"SNAP"]), np.array([1, 3]), np.full(4, number)


MATLAB = b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Wed Nov 25 10:00:00 2026 HDF5 schema 1.00 ."
JULIA = b"HDF5-based Julia Data Format, version 0.1.1\0 (Julia 1.11.1)"
KINDS = {
    keras_model: (b"", "Keras"),
    keras_weights: (b"", "Keras"),
    keras_3_weights: (b"", "Keras"),
    keras_3_subclass: (b"", "Keras"),
    matlab_struct: (MATLAB, "MATLAB"),
    matlab_cell: (MATLAB, "MATLAB"),
    matlab_sparse: (MATLAB, "MATLAB"),
    cooler: (b"", "cooler merge"),
    multi_cooler: (b"", "cooler"),
    single_cell_cooler: (b"", "cooler"),
    cooler_in_a_group: (b"", "cooler merge"),
    jld2: (JULIA, "JLD2"),
    hdf_eos: (b"", "StructMetadata"),
    mudata: (b"", "mudata.concat"),
    anndata_in_a_group: (b"", "anndata.concat"),
    loom: (b"", "loompy"),
    cgns: (b"", "CGNS"),
    odim: (b"", "ODIM_H5"),
}
# Formats that rules of the user can describe.
BY_RULES = {
    ten_x: (b"", "read_10x_h5"),
    ten_x_of_a_genome: (b"", "read_10x_h5"),
    ten_x_molecules: (b"", "cellranger aggr"),
    gadget: (b"", "NumPart_ThisFile"),
    h5md: (b"", "MDAnalysis"),
    ice_cube: (b"", "hdfwriter"),
    ctapipe: (b"", "ctapipe-merge"),
    open_pmd: (b"", "openpmd-pipe"),
    vtk: (b"", "VTK"),
    sonata: (b"", "libsonata"),
    hepfile: (b"", "hepfile.load"),
    gedi: (b"", "GEDI"),
    icesat: (b"", "ICESat-2"),
    h5flow: (b"", "h5flow"),
    awkward: (b"", "awkward.concatenate"),
    scipy_sparse: (b"", "--rule '/X/indptr: bounds of /X/indices'"),
    legend: (b"", "--rule '/hits/t/cumulative_length: ends of /hits/t/flattened_data'"),
    pycbc: (b"", "PyCBC"),
    snirf: (b"", "mne.concatenate_raws"),
    dream3d: (b"", "DREAM.3D"),
    emd: (b"", "emdfile"),
    velox: (b"", "HyperSpy"),
    hyperspy: (b"", "hyperspy.api.stack"),
    emcee: (b"", "emcee.backends.HDFBackend"),
    robomimic: (b"", "--union"),
    asdf: (b"", "pyasdf"),
    gwosc: (b"", "gwpy"),
    jpss: (b"", "nagg"),
    bag: (b"", "GDAL"),
    s100: (b"", "S-100"),
    flash: (b"", "FLASH"),
    athena: (b"", "Athena++"),
    gdf: (b"", "GDF"),
    med: (b"", "MEDCoupling"),
    moab: (b"", "MOAB"),
    imas: (b"", "IMAS-Python"),
    snap: (b"", "SnapATAC2"),
    **refused_files.KINDS,
    **refused_tools.KINDS,
}
KINDS |= BY_RULES


def write_all(folder, kind, block=b""):
    paths = [folder / f"part{number}.h5" for number in range(2)]
    for number, path in enumerate(paths):
        with h5py.File(path, "w", userblock_size=512 if block else 0) as file:
            kind(file, number)
        if block:
            with open(path, "r+b") as file:
                file.write(block)
    return paths
