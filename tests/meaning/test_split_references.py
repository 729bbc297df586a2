"""Divisions by variable of files whose variables need others to be understood: ragged and gathered arrays, geometries,
meshes."""

import netCDF4
import numpy as np
import pytest

DIMENSIONS = {"time": None, "obs": None, "station": 2, "lat": 3, "lon": 2, "land": 3, "node": 5, "face": 2, "three": 3}


def write(path, number, variables):
    """Writes a file with these variables: dimensions, attributes, and the values of the file with this number."""
    with netCDF4.Dataset(path, "w") as file:
        file.Conventions = "CF-1.11"
        for name in dict.fromkeys(name for dims, *_ in variables.values() for name in dims):
            file.createDimension(name, DIMENSIONS[name])
        for name, (dims, attributes, values) in variables.items():
            values = np.asarray(values(number) if callable(values) else values)
            variable = file.createVariable(name, values.dtype, dims)
            variable.setncatts(attributes)
            variable[...] = values
    return path


TIME = (("time",), {"units": "days since 2000-01-01"}, lambda number: [2.0 * number, 2.0 * number + 1])

RAGGED = {
    "row_size": (("station",), {"sample_dimension": "obs"}, lambda number: [number + 1, 2]),
    "id": (("station",), {"cf_role": "timeseries_id"}, lambda number: [10 * number, 10 * number + 1]),
    "height": (("station",), {}, lambda number: [1.5, number]),
    "temp": (("obs",), {}, lambda number: np.arange(number + 3.0) + 10 * number),
    "flag": (("obs",), {}, lambda number: np.arange(number + 3)),
}
INDEXED = {
    "index": (("obs",), {"instance_dimension": "station"}, lambda number: [0, 1, 0][: number + 1]),
    **{name: RAGGED[name] for name in ("id", "height")},
    "temp": (("obs",), {}, lambda number: np.arange(number + 1.0) + 10 * number),
}
GATHERED = {
    "time": TIME,
    "land": (("land",), {"compress": "lat lon"}, [0, 3, 5]),
    "lat": (("lat",), {}, [1.0, 2, 3]),
    "lon": (("lon",), {}, [1.0, 2]),
    "soil": (("time", "land"), {}, lambda number: np.arange(6.0).reshape(2, 3) + 10 * number),
}
GEOMETRY = {
    "time": TIME,
    "x": (("node",), {"axis": "X"}, np.arange(5.0)),
    "y": (("node",), {"axis": "Y"}, np.arange(5.0)),
    "node_count": (("station",), {}, [3, 2]),
    "datum": ((), {"grid_mapping_name": "latitude_longitude"}, 0),
    "lines": ((), {"geometry_type": "line", "node_count": "node_count", "node_coordinates": "x y", "grid_mapping": "datum"}, 0),
    "flow": (("time", "station"), {"geometry": "lines"}, lambda number: np.arange(4.0).reshape(2, 2) + 10 * number),
}
MESH = {
    "time": TIME,
    "x": (("node",), {}, np.arange(5.0)),
    "y": (("node",), {}, np.arange(5.0)),
    "nodes": (("face", "three"), {"start_index": 0}, [[0, 1, 2], [1, 2, 3]]),
    "neighbours": (("face", "three"), {}, [[1, -1, -1], [0, -1, -1]]),
    "mesh": (
        (),
        {
            "cf_role": "mesh_topology",
            "topology_dimension": 2,
            "node_coordinates": "x y",
            "face_node_connectivity": "nodes",
            "face_face_connectivity": "neighbours",
        },
        0,
    ),
    "depth": (("time", "face"), {"mesh": "mesh", "location": "face"}, lambda number: np.arange(4.0).reshape(2, 2) + number),
    "level": (("time",), {}, lambda number: [number, number]),
}


@pytest.mark.parametrize(
    ("variables", "options", "described"),
    [
        (
            RAGGED,
            ["--dim", "station,obs"],
            {"temp": {"row_size", "id"}, "flag": {"row_size", "id"}, "height": {"id"}},
        ),
        (INDEXED, ["--dim", "station,obs"], {"temp": {"index", "id"}, "height": {"id"}}),
        (GATHERED, [], {"soil": {"time", "land", "lat", "lon"}}),
        (GEOMETRY, [], {"flow": {"time", "x", "y", "node_count", "datum", "lines"}}),
        (MESH, [], {"depth": {"time", "x", "y", "nodes", "neighbours", "mesh"}, "level": {"time"}}),
    ],
    ids=["ragged", "indexed", "gathered", "geometry", "mesh"],
)
def test_variables_keep_what_they_refer_to(tmp_path, raddle, variables, options, described):
    inputs = [write(tmp_path / f"{number}.nc", number, variables) for number in range(3)]
    raddle("split", *inputs, "--by", "variable", "--dir", tmp_path / "out", *options)
    assert sorted(path.stem for path in (tmp_path / "out").iterdir()) == sorted(described)
    grown = {"time", *options[-1].split(",")} if options else {"time"}
    for name, others in described.items():
        path = tmp_path / "out" / f"{name}.nc"
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            assert set(file.variables) == {name, *others}
            for variable in file.variables.values():
                dims, _, values = variables[variable.name]
                parts = [np.asarray(values(number) if callable(values) else values) for number in range(3)]
                wanted = np.concatenate(parts) if grown & set(dims) else parts[0]
                if variable.name == "index":
                    wanted = np.concatenate([part + 2 * number for number, part in enumerate(parts)])
                assert variable.dimensions == dims and np.array_equal(variable[...], wanted), variable.name
        raddle("verify", path, "--against", *inputs)
