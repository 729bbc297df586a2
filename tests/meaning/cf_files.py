"""Random netCDF-4 files of the CF conventions, written by netCDF4 or by xarray.

A `Layout` holds the properties common to the files of a case; each `File` holds the rows of some times. A file may
deviate from the layout in one respect.
"""

import dataclasses
from fractions import Fraction

import cftime
import netCDF4
import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400}


@dataclasses.dataclass
class Variable:
    """A variable as stored. ``stored_rows`` limits how many rows are written; the rest have the fill value."""

    dims: tuple
    values: object
    attributes: dict = dataclasses.field(default_factory=dict)
    stored_rows: int | None = None
    type: object = None


@dataclasses.dataclass
class File:
    """A file, or a group of one, by its dimensions (``None`` is unlimited), variables, attributes and groups."""

    dims: dict
    variables: dict
    attributes: dict = dataclasses.field(default_factory=dict)
    groups: dict = dataclasses.field(default_factory=dict)


def write(path, file):
    """Writes a file by netCDF4; values are stored unchanged."""
    with netCDF4.Dataset(path, "w") as dataset:
        _write_group(dataset, file)
    return path


def _write_group(group, file):
    group.setncatts(file.attributes)
    for name, size in file.dims.items():
        group.createDimension(name, size)
    for name, variable in file.variables.items():
        values = np.asarray(variable.values, object if variable.type is str else variable.type)
        attributes = dict(variable.attributes)
        kind = variable.type or values.dtype
        created = group.createVariable(name, kind, variable.dims, fill_value=attributes.pop("_FillValue", None))
        created.set_auto_maskandscale(False)
        created.set_auto_chartostring(False)
        created.setncatts(attributes)
        if variable.stored_rows is not None:
            values = values[: variable.stored_rows]
        if values.size and values.ndim:
            created[tuple(slice(0, size) for size in values.shape)] = values
        elif not values.ndim:
            created[...] = values
    for name, inner in file.groups.items():
        _write_group(group.createGroup(name), inner)


@dataclasses.dataclass(frozen=True)
class Clock:
    """The storage of times: number of ``unit`` since ``reference``."""

    unit: str
    reference: str
    type: str
    calendar: str

    @property
    def units(self):
        return f"{self.unit} since {self.reference}"

    def number(self, seconds, epoch="1990-01-01"):
        """Returns the exact number of units from the reference to ``seconds`` after ``epoch``."""
        origin = seconds_between(epoch, self.reference, self.calendar)
        return Fraction(seconds - origin, SECONDS[self.unit])

    def holds(self, seconds):
        """Returns whether the type represents the number exactly."""
        number = self.number(seconds)
        if self.type.startswith("i"):
            return number.denominator == 1 and np.iinfo(self.type).min <= number <= np.iinfo(self.type).max
        return Fraction(float(np.dtype(self.type).type(float(number)))) == number

    def stored(self, seconds):
        """Returns the stored values of times."""
        return np.array([float(self.number(int(time))) for time in seconds], "f8").astype(self.type)

    def attributes(self):
        return {"units": self.units, "calendar": self.calendar}


def seconds_between(first, second, calendar):
    """Returns the seconds from one date to another."""
    unit = f"seconds since {first}"
    date = cftime.num2date(0, f"seconds since {second}", calendar)
    return int(round(cftime.date2num(date, unit, calendar)))


@dataclasses.dataclass
class Layout:
    """Properties common to the files of a case."""

    clock: Clock
    step_s: int
    is_unlimited: bool
    bounds: str | None
    sizes: dict
    fields: dict
    statics: dict
    has_group: bool
    seed: int

    def file(self, first_step, steps, clock=None):
        """Returns the file of some steps."""
        clock = clock or self.clock
        random = np.random.default_rng([self.seed, first_step])
        seconds = (first_step + np.arange(steps)) * self.step_s
        attributes = clock.attributes() | {"standard_name": "time", "axis": "T"}
        variables = {"time": Variable(("time",), clock.stored(seconds), attributes)}
        if self.bounds:
            attributes["bounds"] = "time_bnds"
            edges = np.stack([clock.stored(seconds), clock.stored(seconds + self.step_s)], 1)
            variables["time_bnds"] = Variable(("time", "nv"), edges.astype(self.bounds))
        for name, (dims, kind, packing) in self.fields.items():
            shape = [{"time": steps, **self.sizes}[dim] for dim in dims]
            variables[name] = Variable(dims, _values(random, shape, kind, packing), {"units": "K", **packing}, type=_type(kind))
        for name, (dims, kind) in self.statics.items():
            fixed = np.random.default_rng(self.seed)
            shape = [self.sizes[dim] for dim in dims]
            variables[name] = Variable(dims, _values(fixed, shape, kind, {}), {"long_name": name}, type=_type(kind))
        file = File({"time": None if self.is_unlimited else steps, **self.sizes}, variables, {"Conventions": "CF-1.8"})
        if self.has_group:
            values = _values(random, [steps, self.sizes["x"]], "f8", {})
            file.groups["forecast"] = File({}, {"inner": Variable(("time", "x"), values, {"units": "m"})})
        return file


def _type(kind):
    return str if kind == "str" else np.dtype(kind)


def _values(random, shape, kind, packing):
    if kind == "str":
        values = np.empty(shape, object)
        numbers = random.integers(0, 99, values.size)
        values[...] = np.array([f"wört {number}" * (number % 3) for number in numbers]).reshape(shape)
        return values
    if kind == "S1":
        return random.choice([b"a", b"b", b""], shape).astype("S1")
    if np.dtype(kind).kind == "f":
        values = random.integers(-999, 999, shape).astype(kind)
        values[random.random(shape) < 0.1] = np.nan
    else:
        values = random.integers(0, 100, shape).astype(kind)
    for attribute in ["_FillValue", "missing_value"]:
        if attribute in packing:
            values[random.random(shape) < 0.2] = packing[attribute]
    return values


CALENDARS = ["standard", "gregorian", "proleptic_gregorian", "noleap", "365_day", "360_day", "all_leap"]
REFERENCES = ["1990-01-01", "1989-12-01 12:00:00", "1850-01-01 00:00:00", "1990-1-1T06:00:00", "2000-03-01 00:00"]
MOST_STEPS = 16
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "f4", "f8"]


@st.composite
def clocks(draw, calendar, step_s, types=("i4", "i8", "f8", "f8", "f4")):
    """Draws clocks that can represent every time of a case."""
    clock = Clock(
        draw(st.sampled_from(list(SECONDS))),
        draw(st.sampled_from(REFERENCES)),
        draw(st.sampled_from(types)),
        calendar,
    )
    assume(all(clock.holds(step * step_s) for step in range(MOST_STEPS + 1)))
    return clock


@st.composite
def packings(draw, kind):
    """Draws attributes that change the meaning of values."""
    kind = np.dtype(kind)
    attributes = {}
    if kind.kind in "iu" and draw(st.booleans()):
        float_type = draw(st.sampled_from([np.float32, np.float64]))
        attributes["scale_factor"] = float_type(draw(st.sampled_from([0.5, 0.1, 2])))
        if draw(st.booleans()):
            attributes["add_offset"] = float_type(draw(st.sampled_from([0, 273.15])))
    if draw(st.booleans()):
        attributes["_FillValue"] = kind.type(draw(st.sampled_from([99, 0])))
    if draw(st.integers(0, 3)) == 0:
        attributes["missing_value"] = kind.type(7)
    if kind.kind == "i" and draw(st.integers(0, 5)) == 0:
        attributes["_Unsigned"] = "true"
    return attributes


@st.composite
def layouts(draw):
    sizes = {"x": draw(st.integers(1, 3)), "member": 2, "nv": 2, "site": 2, "letters": draw(st.integers(1, 4))}
    orders = [("time",), ("time", "x"), ("time", "x"), ("x", "time"), ("member", "time", "x")]
    fields = {}
    for number in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(TYPES))
        fields[f"field{number}"] = (draw(st.sampled_from(orders)), kind, draw(packings(kind)))
    if draw(st.booleans()):
        fields["station"] = (("time",), "str", {})
    if draw(st.booleans()):
        fields["code"] = (("time", "letters"), "S1", {})
    statics = {"x": (("x",), "f8")}
    # A coordinate of two dimensions.
    if draw(st.booleans()):
        statics["site"] = (("site", "nv"), draw(st.sampled_from(["f4", "S1"])))
    for name, dims, kind in [("area", ("x",), "f4"), ("names", ("x",), "str"), ("height", (), "f8"), ("crs", (), "i4")]:
        if draw(st.booleans()):
            statics[name] = (dims, kind)
    step_s = draw(st.sampled_from([1800, 3600, 21600, 86400]))
    return Layout(
        clock=draw(clocks(draw(st.sampled_from(CALENDARS)), step_s)),
        step_s=step_s,
        is_unlimited=draw(st.sampled_from([True, True, False])),
        bounds=draw(st.sampled_from([None, "f8", "f8"])),
        sizes=sizes,
        fields=fields,
        statics=statics,
        has_group=draw(st.integers(0, 3)) == 0,
        seed=draw(st.integers(0, 999)),
    )


@dataclasses.dataclass
class Case:
    """Files in the order in which they are named, and whether merging them must succeed."""

    files: list
    options: list
    must_merge: bool


@st.composite
def cases(draw, what):
    """Draws two to four files of a layout; ``what`` names their special property."""
    layout = draw(layouts())
    count = draw(st.integers(2, 4))
    lengths = draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).tolist()
    clock = layout.clock
    used = [clock] * count
    if what == "clocks":
        used = [clock] + [draw(clocks(clock.calendar, layout.step_s, [clock.type])) for _ in range(count - 1)]
    if what == "calendar":
        used[-1] = draw(clocks(draw(st.sampled_from(CALENDARS)), layout.step_s, [clock.type]))
    if what == "time type":
        used[-1] = draw(clocks(clock.calendar, layout.step_s))
    if what == "overlap":
        starts[-1] = max(0, starts[-1] - 1)
    files = [layout.file(start, length, each) for start, length, each in zip(starts, lengths, used)]
    if what in DEVIATIONS:
        DEVIATIONS[what](files[-1], np.random.default_rng(layout.seed))
    if what == "swapped":
        files = [files[index] for index in draw(st.permutations(range(count)))]
    options = [] if layout.is_unlimited else ["--dim", "time"]
    return Case(files, options, what in MUST_MERGE)


def _numeric(file):
    return next(variable for name, variable in file.variables.items() if name.startswith("field"))


def _change_attribute(name, value):
    def change(file, random):
        variable = _numeric(file)
        kind = np.asarray(variable.values).dtype.type
        variable.attributes[name] = kind(value) if name in ["_FillValue", "missing_value"] else value

    return change


def _change_static(file, random):
    file.variables["x"].values = np.asarray(file.variables["x"].values) + 1


def _lose_variable(file, random):
    del file.variables[next(name for name in file.variables if name.startswith("field"))]


def _gain_variable(file, random):
    file.variables["extra"] = Variable(("time",), np.zeros(len(file.variables["time"].values)))


def _remark(file, random):
    file.attributes |= {"history": "made", "title": "another", "tracking_id": str(random.integers(99))}
    _numeric(file).attributes["comment"] = "seen"


def _shorten(file, random):
    variable = _numeric(file)
    if variable.dims[0] == "time":
        variable.stored_rows = max(0, len(variable.values) - 1)


def _retype(file, random):
    variable = _numeric(file)
    variable.type = np.dtype("f8")
    variable.values = np.asarray(variable.values, "f8")
    for name in ["_FillValue", "missing_value"]:
        if name in variable.attributes:
            variable.attributes[name] = np.float64(variable.attributes[name])


def _widen(file, random):
    if "code" in file.variables:
        file.dims["letters"] = 5
        steps = len(file.variables["time"].values)
        file.variables["code"].values = random.choice([b"a", b"b"], (steps, 5)).astype("S1")


def _rename_letters(file, random):
    _widen(file, random)
    if "letters" in file.dims:
        file.dims = {"string5" if name == "letters" else name: size for name, size in file.dims.items()}
        if "code" in file.variables:
            file.variables["code"].dims = ("time", "string5")


def _number_otherwise(file, random):
    file.dims = dict(reversed(file.dims.items()))


def _transpose(file, random):
    variable = _numeric(file)
    variable.dims = variable.dims[::-1]
    variable.values = np.asarray(variable.values).T


# The last file differs in one of these.
DEVIATIONS = {
    "calendar": lambda file, random: None,
    "time type": lambda file, random: None,
    "overlap": lambda file, random: None,
    "scale": _change_attribute("scale_factor", 4.0),
    "offset": _change_attribute("add_offset", 1.5),
    "fill": _change_attribute("_FillValue", 5),
    "missing": _change_attribute("missing_value", 6),
    "unsigned": _change_attribute("_Unsigned", "true"),
    "units": _change_attribute("units", "degC"),
    "static": _change_static,
    "fewer": _lose_variable,
    "more": _gain_variable,
    "remarks": _remark,
    "short": _shorten,
    "type": _retype,
    "letters": _widen,
    "names of letters": _rename_letters,
    "numbers of dimensions": _number_otherwise,
    "axes": _transpose,
}

MUST_MERGE = ["plain", "clocks", "swapped", "remarks", "letters", "names of letters", "numbers of dimensions"]
SPECIALS = ["plain", "clocks", "swapped", *DEVIATIONS]


def simple(first_day=0, days=3, since="days since 2000-01-01", kind="f8", times=None, **changes):
    """Returns a file of one field along time, which starts ``first_day`` days after 2000-01-01. ``times`` are stored in
    place of the days. ``changes`` are attributes of the field."""
    times = np.arange(first_day, first_day + days) if times is None else times
    field = np.arange(2.0 * len(times), dtype="f4").reshape(-1, 2) + 100 * first_day
    kind_of_field = changes.pop("type", "f4")
    variables = {
        "time": Variable(("time",), times, {"units": since, "standard_name": "time"}, type=np.dtype(kind)),
        "x": Variable(("x",), [10.0, 20.0], {"units": "m"}),
        "tas": Variable(("time", "x"), field.astype(kind_of_field), {"units": "K", **changes}),
    }
    return File({"time": None, "x": 2}, variables, {"Conventions": "CF-1.8"})


def write_all(folder, *files):
    """Writes files named ``part0.nc``, ``part1.nc``, ..."""
    return [write(folder / f"part{number}.nc", file) for number, file in enumerate(files)]
