"""Variables of netCDF-4 whose values refer to positions along a dimension: ragged arrays, sweeps of radars, gathered
arrays, meshes and geometries. The judge follows the references in the inputs and in the output."""

import netCDF4
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from merging import Merging, case_folder, examples
from netcdf_variables import create, variable


def judge_ragged(output, inputs):
    """Each observation belongs to the station that it has in its input."""
    expected = [pair for path in inputs for pair in observations(path)]
    assert observations(output) == expected


def observations(path):
    """Returns the station's name and the value of each observation; the name is None for an observation without a station."""
    with netCDF4.Dataset(path) as file:
        names = file["name"][:].tolist()
        stations = np.ma.masked_array(file["station_index"][:])
        values = file["temperature"][:].tolist()
        return [
            (None if masked else names[station], value)
            for station, masked, value in zip(stations.data.tolist(), np.ma.getmaskarray(stations).tolist(), values)
        ]


def judge_radar(output, inputs):
    """Each sweep has the rays that it has in its input."""
    assert sweeps(output) == [sweep for path in inputs for sweep in sweeps(path)]


def sweeps(path):
    with netCDF4.Dataset(path) as file:
        first, last = file["sweep_start_ray_index"][:].tolist(), file["sweep_end_ray_index"][:].tolist()
        rays = file["DBZ"][:].tolist()
        return [rays[start : end + 1] for start, end in zip(first, last)]


RAGGED = Merging("cf", judge_ragged)
RADAR = Merging("cf", judge_radar)


def indexed_ragged(path, first_name, stations, indices, kind="i4", has_coordinate=False, is_short=False, unlimited=True):
    """Writes observations with the number of their station; a negative number is written as missing."""
    with create(path) as file:
        file.featureType = "timeSeries"
        file.createDimension("station", None if unlimited else stations)
        file.createDimension("obs", None)
        if has_coordinate:
            variable(file, "station", "i4", ("station",), np.arange(stations) + first_name)
        variable(file, "name", "i4", ("station",), np.arange(stations) + first_name, cf_role="timeseries_id")
        values = np.arange(len(indices)) / 8 + first_name
        variable(file, "temperature", "f4", ("obs",), values, units="K")
        index = variable(file, "station_index", kind, ("obs",), fill=-1, instance_dimension="station")
        index[:] = np.array(indices, kind)[: len(indices) - is_short]


@st.composite
def ragged(draw):
    """Draws files, each with some stations and observations, and the storage that all have."""
    how = {"kind": draw(st.sampled_from(["i1", "i2", "i4", "i8"])), "has_coordinate": draw(st.booleans())}
    files = []
    for _ in range(draw(st.integers(2, 4))):
        stations = draw(st.integers(1, 60))
        indices = draw(st.lists(st.integers(-1, stations - 1), min_size=1, max_size=30))
        files.append((stations, indices, draw(st.booleans())))
    return files, how


@examples(12)
@given(ragged())
def test_observations_keep_their_station(case):
    files, how = case
    with case_folder() as folder:
        paths = [folder / f"{number}.nc" for number in range(len(files))]
        for number, (path, (stations, indices, is_short)) in enumerate(zip(paths, files)):
            indexed_ragged(path, 1000 * number, stations, indices, is_short=is_short, **how)
        RAGGED.equal(paths)


def test_an_append_continues_the_numbers(tmp_path, raddle):
    paths = [tmp_path / f"{number}.nc" for number in range(3)]
    for number, path in enumerate(paths):
        indexed_ragged(path, 100 * number, 3 + number, [0, 2, 1, -1, 2])
    output = RAGGED.equal(paths[:2])
    raddle("append", output, paths[2])
    judge_ragged(output, paths)
    raddle("verify", output, "--against", *paths)


@pytest.mark.parametrize("form", ["/station", "../station"])
def test_a_dimension_that_is_named_by_its_path(tmp_path, form):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        with create(path) as file:
            file.createDimension("station", None)
            file.createDimension("obs", None)
            variable(file, "name", "i4", ("station",), [1, 2])
            group = file.createGroup("observed")
            variable(group, "station_index", "i4", ("obs",), [0, 1, 1], instance_dimension=form)
    output = RAGGED.equal(paths, judge=None)
    with netCDF4.Dataset(output) as file:
        assert file["observed/station_index"][:].tolist() == [0, 1, 1, 2, 3, 3]


def test_counts_along_a_dimension_that_is_named_by_its_path(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        with create(path) as file:
            file.createDimension("station", None)
            file.createDimension("obs", 3)
            variable(file, "temperature", "f4", ("obs",), [1, 2, 3])
            variable(file.createGroup("counts"), "row_size", "i4", ("station",), [1, 2], sample_dimension="/obs")
    RAGGED.refused(paths, names=["/counts/row_size", "/obs"])


def test_a_number_without_a_station_is_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    indexed_ragged(paths[0], 0, 2, [0, 1])
    indexed_ragged(paths[1], 10, 2, [0, 2])
    RAGGED.refused(paths, names=["/station_index", "1.nc"])


def test_stations_that_all_files_share_keep_their_numbers(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path, indices in zip(paths, [[0, 1], [2, -1, 0]]):
        indexed_ragged(path, 0, 3, indices, unlimited=False)
    RAGGED.equal(paths)


@pytest.mark.parametrize("has_coordinate", [False, True])
def test_positions_along_a_dimension_that_is_left_out(tmp_path, raddle, has_coordinate):
    inputs = [tmp_path / "a.nc", tmp_path / "b.nc"]
    indexed_ragged(inputs[0], 0, 3, [0, 1, 2, 2], has_coordinate=has_coordinate)
    indexed_ragged(inputs[1], 3, 2, [1, 0], has_coordinate=has_coordinate)
    options = ["--include", "station_index", "--include", "temperature"]
    RAGGED.refused(inputs, *options, names=["/station_index", "station", "left out", "--exclude"])
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "split")
    outputs = [tmp_path / "split" / "temperature.nc"]
    outputs.append(RAGGED.equal(inputs, "--exclude", "name", judge=None))
    for output in outputs:
        with netCDF4.Dataset(output) as file:
            assert file["station_index"][:].tolist() == [0, 1, 2, 2, 4, 3]
        raddle("verify", output, "--against", *inputs)


def test_stations_without_observations_of_their_own_are_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        indexed_ragged(path, 10 * number, 2, [0, 1])
    RAGGED.refused(paths, "--dim", "station", names=["/station_index", "refers to positions along /station"])


def radar(path, first_time, rays_of_sweeps, has_fixed_sweeps=False, n_points=False):
    with create(path, "CF/Radial instrument_parameters") as file:
        rays = sum(rays_of_sweeps)
        file.createDimension("time", None)
        file.createDimension("range", 4)
        file.createDimension("sweep", len(rays_of_sweeps) if has_fixed_sweeps else None)
        variable(file, "time", "f8", ("time",), np.arange(rays) + first_time, units="seconds since 2000-01-01T00:00:00Z")
        variable(file, "range", "f4", ("range",), np.arange(4), units="m")
        ends = np.cumsum(rays_of_sweeps)
        variable(file, "sweep_start_ray_index", "i4", ("sweep",), ends - rays_of_sweeps)
        variable(file, "sweep_end_ray_index", "i4", ("sweep",), ends - 1)
        variable(file, "DBZ", "f4", ("time", "range"), np.random.default_rng(first_time).random((rays, 4)))


def test_sweeps_keep_their_rays(tmp_path):
    paths = [tmp_path / f"{number}.nc" for number in range(3)]
    for number, (path, rays) in enumerate(zip(paths, [(3, 2), (1, 4, 2), (5,)])):
        radar(path, 100 * number, rays)
    RADAR.equal(paths)


def test_sweeps_of_the_first_file_only_are_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        radar(path, 100 * number, (3, 2), has_fixed_sweeps=True)
    RADAR.refused(paths, names=["_ray_index", "refers to positions along /time"])


def test_rays_that_files_have_in_common_are_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    radar(paths[0], 0, (3, 2))
    radar(paths[1], 4, (3, 2))
    for options in [(), ("--overlap", "first"), ("--overlap", "last")]:
        RADAR.refused(paths, *options, names=["/time" if not options else "all rows of /time"])


def test_a_range_of_rays_is_refused(tmp_path):
    radar(tmp_path / "0.nc", 0, (3, 2), has_fixed_sweeps=True)
    RADAR.refused([tmp_path / "0.nc"], "--select", "time=1:4", names=["_ray_index", "time"])


def contiguous_ragged(path, counts, stations_grow, obs_grow):
    with create(path) as file:
        file.createDimension("station", None if stations_grow else len(counts))
        file.createDimension("obs", None if obs_grow else sum(counts))
        variable(file, "row_size", "i4", ("station",), counts, sample_dimension="obs")
        variable(file, "temperature", "f4", ("obs",), np.arange(sum(counts)), units="K")


@pytest.mark.parametrize("stations_grow, obs_grow", [(True, True), (True, False), (False, True)])
def test_counts_and_what_they_count_are_concatenated_together(tmp_path, stations_grow, obs_grow):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        contiguous_ragged(path, [2, 3], stations_grow, obs_grow)
    if stations_grow and obs_grow:
        output = RAGGED.equal(paths, judge=None)
        with netCDF4.Dataset(output) as file:
            assert file["row_size"][:].tolist() == [2, 3, 2, 3]
            assert file["temperature"][:].tolist() == [0, 1, 2, 3, 4] * 2
    else:
        RAGGED.refused(paths, names=["/row_size", "counts elements along /obs", "--dim obs,station"])
        output = RAGGED.equal(paths, "--dim", "obs,station", judge=None)
        with netCDF4.Dataset(output) as file:
            assert file["row_size"][:].tolist() == [2, 3, 2, 3]
            assert file["temperature"][:].tolist() == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("along", ["time", "lat"])
def test_gathered_arrays(tmp_path, along):
    """The list of points refers to a grid, which may not grow."""
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        with create(path) as file:
            for name, size in {"time": 2, "lat": 3, "lon": 4, "land": 5}.items():
                file.createDimension(name, None if name == along else size)
            start = 3 * number * (along == "lat")
            variable(file, "lat", "f8", ("lat",), np.arange(3) + start, units="degrees_north")
            variable(file, "time", "f8", ("time",), np.arange(2) + 2 * number * (along == "time"), units="days since 2000-01-01")
            variable(file, "land", "i4", ("land",), [0, 2, 4, 6, 8], compress="lat lon")
            if along == "time":
                variable(file, "soil", "f4", ("time", "land"), np.arange(10).reshape(2, 5) + number)
    if along == "lat":
        RAGGED.refused(paths, names=["/land", "/lat", "compress"])
    else:
        output = RAGGED.equal(paths, judge=None)
        with netCDF4.Dataset(output) as file:
            assert file["land"][:].tolist() == [0, 2, 4, 6, 8]
            assert file["soil"].shape == (4, 5)


@pytest.mark.parametrize("along", ["time", "node", "face"])
def test_meshes(tmp_path, along):
    """A mesh is kept once; meshes are not joined."""
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        with create(path, "CF-1.11 UGRID-1.0") as file:
            for name, size in {"time": 2, "node": 4, "face": 2, "three": 3}.items():
                file.createDimension(name, None if name == along else size)
            variable(
                file, "mesh", "i4", (), 0, cf_role="mesh_topology", topology_dimension=np.int32(2),
                node_coordinates="x y", face_node_connectivity="nodes",
            )  # fmt: skip
            # With the time, the nodes move.
            dims, shape = (("time", "node"), (2, 4)) if along == "time" else (("node",), 4)
            for name in "xy":
                variable(file, name, "f8", dims, np.arange(np.prod(shape)).reshape(shape), units="m")
            variable(file, "nodes", "i4", ("face", "three"), [[0, 1, 2], [1, 2, 3]], start_index=np.int32(0))
            variable(file, "time", "f8", ("time",), np.arange(2) + 2 * number * (along == "time"), units="days since 2000-01-01")
            if along == "time":
                variable(file, "depth", "f4", ("time", "face"), np.arange(4).reshape(2, 2) + number, mesh="mesh")
    if along == "time":
        output = RAGGED.equal(paths, judge=None)
        with netCDF4.Dataset(output) as file:
            assert file["nodes"][:].tolist() == [[0, 1, 2], [1, 2, 3]]
            assert file["depth"].shape == (4, 2)
        with netCDF4.Dataset(paths[1], "a") as file:
            file["nodes"].start_index = np.int32(1)
        RAGGED.refused(paths, names=["/nodes", "start_index"])
    else:
        RAGGED.refused(paths, names=["/mesh", f"/{along}"])


@pytest.mark.parametrize("growing", [("instance", "node"), ("instance",), ("node",), ("time",)])
def test_geometries(tmp_path, growing):
    """Polygons are all concatenated with their nodes, or not at all."""
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for number, path in enumerate(paths):
        with create(path) as file:
            for name, size in {"time": 2, "instance": 2, "node": 7}.items():
                file.createDimension(name, None if name in growing else size)
            variable(
                file, "shape", "i4", (), 0, geometry_type="polygon", node_count="node_count", node_coordinates="x y"
            )
            variable(file, "node_count", "i4", ("instance",), [3, 4])
            for name in "xy":
                variable(file, name, "f8", ("node",), np.arange(7), axis=name.upper())
            start = 2 * number * ("time" in growing)
            variable(file, "time", "f8", ("time",), np.arange(2) + start, units="days since 2000-01-01")
    options = []
    if len(growing) == 1 and growing != ("time",):
        options = ["--dim", "instance,node"]
        RAGGED.refused(paths, names=["/shape", "describes geometries", " ".join(options)])
    output = RAGGED.equal(paths, *options, judge=None)
    with netCDF4.Dataset(output) as file:
        copies = 1 if growing == ("time",) else 2
        assert file["node_count"][:].tolist() == [3, 4] * copies
        assert len(file["x"]) == 7 * copies


def test_an_unknown_dimension_among_several_is_refused(tmp_path):
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        contiguous_ragged(path, [2, 3], False, False)
    RAGGED.refused(paths, "--dim", "station,profile", names=['has no dimension "profile" (--dim)', "/obs, /station"])


def test_tie_points_are_refused(tmp_path):
    """Coordinates that are interpolated between points of a dimension that grows."""
    paths = [tmp_path / "0.nc", tmp_path / "1.nc"]
    for path in paths:
        with create(path) as file:
            file.createDimension("track", None)
            file.createDimension("tie_track", 2)
            variable(file, "tie_points", "i4", ("tie_track",), [0, 5])
            variable(
                file, "bilinear", "i4", (), 0, interpolation_name="linear", tie_point_mapping="track: tie_points tie_track"
            )
            variable(file, "radiance", "f4", ("track",), np.arange(6), coordinate_interpolation="lat: bilinear")
    RAGGED.refused(paths, names=["/bilinear", "/track", "tie_point_mapping"])
