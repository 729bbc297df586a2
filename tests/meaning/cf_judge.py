"""Judges merges of netCDF-4 files by the values that xarray, cftime and netCDF4 read from them.

Three readers: times are compared as exact numbers of seconds, with the dates of cftime; everything else as xarray
decodes and concatenates it; and again as netCDF4 masks and unpacks it. Attributes that define the meaning of values may
not differ.
"""

import contextlib
from fractions import Fraction

import cftime
import netCDF4
import numpy as np
import xarray as xr
from merging import NoConcatenation

# Units of times, in seconds; cftime supports more names of them.
UNITS_S = {
    **dict.fromkeys(["microsecond", "microseconds", "us"], Fraction(1, 1_000_000)),
    **dict.fromkeys(["millisecond", "milliseconds", "msec", "msecs", "ms"], Fraction(1, 1000)),
    **dict.fromkeys(["second", "seconds", "sec", "secs", "s"], Fraction(1)),
    **dict.fromkeys(["minute", "minutes", "min", "mins"], Fraction(60)),
    **dict.fromkeys(["hour", "hours", "hr", "hrs", "h"], Fraction(3600)),
    **dict.fromkeys(["day", "days", "d"], Fraction(86400)),
    # cftime accepts them in the calendar 360_day only.
    **dict.fromkeys(["month", "months"], Fraction(30 * 86400)),
}

# Attributes on which the meaning of values depends.
MEANING = [
    "units", "standard_name", "cell_methods", "positive", "grid_mapping", "flag_values", "flag_masks", "flag_meanings",
    "formula_terms", "compress", "climatology", "sampling_dimension", "instance_dimension",
]

CALENDARS = {"gregorian": "standard", "365_day": "noleap", "366_day": "all_leap"}


def calendar_of(attributes):
    name = attributes.get("calendar", "standard").lower()
    return CALENDARS.get(name, name)


def times_of(variable, attributes):
    """Returns the times of a variable as exact seconds since 1900-01-01 in its calendar; ``None`` for missing ones."""
    unit, reference = attributes["units"].lower().split(" since ")
    calendar = calendar_of(attributes)
    date = cftime.num2date(0, f"seconds since {reference.strip()}", calendar)
    origin = int(round(cftime.date2num(date, "microseconds since 1900-01-01", calendar)))
    values = np.asarray(variable[...])
    step = UNITS_S[unit.strip()]
    absent = [attributes.get(name, np.nan) for name in ["_FillValue", "missing_value"]]
    seconds = [
        None if value in absent or value != value else Fraction(value.item()) * step + Fraction(origin, 1_000_000)
        for value in values.reshape(-1)
    ]
    return np.array(seconds, object).reshape(values.shape)


def time_attributes(group):
    """Returns the attributes that define times, for each variable of a group that holds times; bounds inherit them."""
    found = {}
    for name, variable in group.variables.items():
        attributes = variable.__dict__
        if " since " in str(attributes.get("units", "")).lower():
            found[name] = attributes
    for _, variable in group.variables.items():
        bounds = getattr(variable, "bounds", None)
        if bounds in group.variables and variable.name in found and bounds not in found:
            found[bounds] = {**found[variable.name], **group.variables[bounds].__dict__}
    return found


def judge(output, inputs, dim="time", ordered=True, tolerance=None, unpacked=(), different=(), xarray_times=True):
    """Asserts that ``output`` reads as ``inputs``, concatenated along ``dim``, in the order of their times if
    ``ordered``. Variables in ``unpacked`` may be stored differently; those in ``different`` may have different
    attributes. xarray also decodes times if ``xarray_times``."""
    with contextlib.ExitStack() as stack:
        merged, *parts = (stack.enter_context(netCDF4.Dataset(path)) for path in [output, *inputs])
        for dataset in [merged, *parts]:
            dataset.set_auto_maskandscale(False)
            dataset.set_auto_chartostring(False)
        order = _order(parts, dim) if ordered else range(len(parts))
        parts = [parts[index] for index in order]
        _judge_group(merged, parts, dim, different)
        groups = {name: list(time_attributes(_at(merged, name))) for name in ["/", *_groups(merged)]}
        for name in groups:
            _judge_masked(_at(merged, name), [_at(part, name) for part in parts], dim, tolerance, unpacked)
    for name, times in groups.items():
        _judge_decoded(output, [inputs[index] for index in order], name, dim, tolerance, times, xarray_times)


def _at(dataset, path):
    return dataset if path == "/" else dataset[path]


def _groups(group, path=""):
    for name, inner in group.groups.items():
        if name != "_raddle":
            yield f"{path}/{name}"
            yield from _groups(inner, f"{path}/{name}")


def _order(parts, dim):
    """Returns the order in which the times of the inputs ascend."""
    if dim not in parts[0].variables or dim not in time_attributes(parts[0]):
        return list(range(len(parts)))
    if len({calendar_of(part[dim].__dict__) for part in parts}) > 1:
        raise NoConcatenation("calendars differ")
    times = [times_of(part[dim], time_attributes(part)[dim]).tolist() for part in parts]
    order = sorted(range(len(parts)), key=lambda index: times[index][:1])
    filled = [times[index] for index in order if times[index]]
    for before, after in zip(filled, filled[1:]):
        if max(before) >= min(after):
            raise NoConcatenation("times overlap")
    return order


def _judge_group(merged, parts, dim, different):
    names = [name for name in merged.groups if name != "_raddle"]
    assert sorted(names) == sorted(name for name in parts[0].groups if name != "_raddle")
    assert sorted(merged.variables) == sorted(parts[0].variables), "different variables"
    for part in parts:
        if sorted(part.variables) != sorted(parts[0].variables):
            raise NoConcatenation("variables differ")
    times = [time_attributes(part) for part in parts]
    merged_times = time_attributes(merged)
    for name, variable in merged.variables.items():
        sources = [part.variables[name] for part in parts]
        if len({_dimensions(source) for source in sources}) > 1:
            raise NoConcatenation(f"dimensions of {name} differ")
        assert _dimensions(variable) == _dimensions(sources[0]), name
        is_time = [name in found for found in times]
        assert len({*is_time}) == 1, f"{name} holds times only in some inputs"
        if is_time[0]:
            _judge_times(name, variable, merged_times[name], sources, [found[name] for found in times], dim)
        elif name not in different:
            _judge_attributes(name, variable, sources)
    for name in names:
        _judge_group(merged.groups[name], [part.groups[name] for part in parts], dim, different)


def _dimensions(variable):
    """Returns the dimensions of a variable; readers of strings drop that of the characters, whatever its name is."""
    if variable.dtype == "S1" and variable.ndim:
        return (*variable.dimensions[:-1], None)
    return variable.dimensions


def _judge_times(name, variable, attributes, sources, source_attributes, dim):
    calendars = {calendar_of(each) for each in source_attributes}
    if len(calendars) > 1:
        raise NoConcatenation(f"calendars of {name} differ")
    assert calendar_of(attributes) in calendars, f"{name} has another calendar"
    parts = [times_of(*each) for each in zip(sources, source_attributes)]
    found = times_of(variable, attributes)
    if dim in variable.dimensions:
        expected = np.concatenate(parts, variable.dimensions.index(dim))
    else:
        expected = parts[0]
        if any((part != expected).any() for part in parts):
            raise NoConcatenation(f"{name} differs")
    assert found.shape == expected.shape and (found == expected).all(), f"{name}: {found} is not {expected}"


def _judge_attributes(name, variable, sources):
    for attribute in MEANING:
        values = [str(getattr(source, attribute, None)) for source in sources]
        if len({*values}) > 1:
            raise NoConcatenation(f"{name}@{attribute} differs: {values}")
    for attribute in variable.ncattrs():
        held = [source.getncattr(attribute) for source in sources if attribute in source.ncattrs()]
        assert any(_is_same(variable.getncattr(attribute), value) for value in held), f"{name}@{attribute}"
    for attribute in sources[0].ncattrs():
        values = [str(getattr(source, attribute, None)) for source in sources]
        assert len({*values}) > 1 or attribute in variable.ncattrs(), f"{name}@{attribute} is lost"


def _is_same(first, second):
    first, second = np.asarray(first), np.asarray(second)
    return first.dtype.kind == second.dtype.kind and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def _decode(path, group, with_times):
    group = None if group == "/" else group
    with xr.open_dataset(
        path, group=group, engine="netcdf4", decode_times=with_times, decode_timedelta=False, cache=False
    ) as dataset:
        return dataset.load()


def _judge_decoded(output, paths, group, dim, tolerance, times, xarray_times):
    for with_times in [False, True][: 1 + xarray_times]:
        merged = _decode(output, group, with_times)
        parts = [_decode(path, group, with_times) for path in paths]
        if not with_times:
            # Their numbers differ because of their units; they have been compared exactly.
            merged, *parts = (dataset.drop_vars(times) for dataset in [merged, *parts])
        if not merged.variables:
            continue
        if any(dim in variable.dims for variable in parts[0].variables.values()):
            try:
                expected = xr.concat(
                    parts, dim, data_vars="minimal", coords="minimal", compat="equals" if tolerance is None else "override",
                    join="exact", combine_attrs="override",
                )
            except (ValueError, xr.MergeError) as error:
                raise NoConcatenation(f"xarray: {error}") from error
        else:
            expected = parts[0]
            if tolerance is None and any(not part.equals(expected) for part in parts):
                raise NoConcatenation("differs")
        assert sorted(merged.variables) == sorted(expected.variables)
        for name, variable in merged.variables.items():
            wanted = expected.variables[name].transpose(*variable.dims)
            _same(name, variable.values, wanted.values, tolerance)


def _same(name, found, wanted, tolerance=None):
    assert found.shape == wanted.shape, f"{name}: {found.shape} is not {wanted.shape}"
    if found.dtype.kind in "SUO":
        assert found.tolist() == wanted.tolist(), f"{name}: {found} is not {wanted}"
    elif tolerance is not None and found.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=name)
    else:
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        assert found.dtype == wanted.dtype, f"{name}: {found.dtype} is not {wanted.dtype}"


def _judge_masked(merged, parts, dim, tolerance, unpacked):
    """Compares values as masked and unpacked by netCDF4, which handles more than xarray: default fill values and valid
    ranges."""
    times = time_attributes(merged)
    for name, variable in merged.variables.items():
        sources = [part.variables[name] for part in parts]
        if name in times or variable.dtype is str or variable.dtype.kind == "S":
            continue
        for each in [variable, *sources]:
            each.set_auto_maskandscale(True)
        values = [np.ma.asarray(source[...]) for source in sources]
        wanted = np.ma.concatenate(values, variable.dimensions.index(dim)) if dim in variable.dimensions else values[0]
        found = np.ma.asarray(variable[...])
        np.testing.assert_array_equal(np.ma.getmaskarray(found), np.ma.getmaskarray(wanted), err_msg=name)
        kept = ~np.ma.getmaskarray(wanted)
        _same(name, found.data[kept], wanted.data[kept], tolerance)
        for each in [variable, *sources]:
            each.set_auto_maskandscale(False)
        if name not in unpacked:
            assert variable.dtype == sources[0].dtype, f"{name} is stored as {variable.dtype}"
