"""Units are converted as the UDUNITS-2 library converts them."""

import ctypes
import ctypes.util
import itertools
import json

import netCDF4
import numpy as np
import pytest
from cf_files import File, Variable, write_all
from hypothesis import given
from hypothesis import strategies as st
from merging import case_folder, examples

# Unit strings by quantity, in the spellings that files use.
UNITS = {
    "temperature": [
        "K", "kelvin", "degC", "degrees_C", "Celsius", "°C", "degF", "degree_fahrenheit", "degR", "mK", "deg_K",
    ],
    "length": [
        "m", "meters", "metre", "km", "kilometers", "cm", "mm", "um", "µm", "micron", "nm", "angstrom", "feet",
        "inches", "mile", "nautical_miles", "dam", "100 m", "1e-3 m", "Mm", "au", "light_year", "in",
    ],
    "pressure": [
        "Pa", "hPa", "mbar", "millibar", "millibars", "bar", "dbar", "atm", "kPa", "N m-2", "kg m-1 s-2", "mmHg",
        "torr", "psi", "inHg", "dyne cm-2",
    ],
    "speed": [
        "m s-1", "m/s", "m s^-1", "m.s-1", "km/h", "km hr-1", "knot", "kt", "cm s**-1", "mm day-1", "mm/day",
        "m per s", "ft/min",
    ],
    "mass": ["kg", "g", "mg", "ug", "tonne", "t", "Gg", "lb", "kilograms", "u"],
    "flux": ["W m-2", "W/m2", "J s-1 m-2", "watt/m^2", "kW m-2", "mW cm-2", "langley/day", "kg s-3"],
    "mass flux": ["kg m-2 s-1", "g m-2 day-1", "kg/(m2 s)", "kg/m2/s", "mg m-2 s-1", "t km-2 year-1", "kg m-2 month-1"],
    "number": [
        "1", "%", "percent", "ppm", "ppb", "ppmv", "kg kg-1", "g kg-1", "g/kg", "0.01", "10^-6", "1e-3", "mm m-1",
        "rad", "degree", "degrees_north", "degree_east", "arcmin", "turn", "count",
    ],
    "energy": ["J", "kJ", "eV", "MeV", "GeV", "cal", "kW h", "erg", "N m", "V A s", "watthour"],
    "time": ["s", "ms", "us", "ns", "min", "minutes", "hours", "h", "days", "day", "week", "year", "month", "sec"],
    "frequency": ["Hz", "kHz", "GHz", "s-1", "1/s", "day-1", "Bq", "Ci", "rpm"],
    "amount": ["mol m-2", "umol m-2", "DU", "dobson", "molecules cm-2", "molec/cm2", "kmol km-2"],
    "area": ["m2", "km2", "cm^2", "hectare", "m m", "barn", "m²", "are"],
    "volume flow": ["m3 s-1", "sverdrup", "l/s", "L min-1", "km3 year-1", "cc/s"],
    "potential": ["m2 s-2", "J/kg", "Gy", "gp m", "cm2 s-2"],
    "field": ["T", "nT", "gauss", "V s m-2", "Wb/m2"],
    "vorticity": ["PVU", "K m2 kg-1 s-1", "1e-6 K m2 kg-1 s-1"],
    "current": ["A", "uA", "pA", "C/s"],
    "steps of temperature": ["K m-1", "degC m-1", "degC/km", "mK mm-1", "degF ft-1"],
}


class Udunits:
    """The library, by its name on the system."""

    def __init__(self):
        name = ctypes.util.find_library("udunits2")
        if name is None:
            pytest.skip("libudunits2 is not installed")
        self.library = ctypes.CDLL(name)
        for function in ["ut_read_xml", "ut_parse", "ut_get_converter", "ut_set_error_message_handler"]:
            getattr(self.library, function).restype = ctypes.c_void_p
        self.library.cv_convert_double.restype = ctypes.c_double
        self.library.ut_set_error_message_handler(self.library.ut_ignore)
        self.system = ctypes.c_void_p(self.library.ut_read_xml(None))

    def converter(self, text, target):
        """Returns a function that converts one unit to another; None if impossible."""
        units = [self.library.ut_parse(self.system, each.encode(), 2) for each in [text, target]]
        assert all(units), f"UDUNITS does not support {text!r} or {target!r}"
        converter = self.library.ut_get_converter(*map(ctypes.c_void_p, units))
        if not converter:
            return None
        return lambda value: self.library.cv_convert_double(ctypes.c_void_p(converter), ctypes.c_double(value))


@pytest.fixture(scope="module")
def udunits():
    return Udunits()


def file(day, units, values):
    """Returns a file with a variable for each unit."""
    variables = {"time": Variable(("time",), [float(day)], {"units": "days since 2000-01-01"})}
    for number, unit in enumerate(units):
        variables[f"v{number}"] = Variable(("time",), np.array([values[number]]), {"units": unit})
    return File({"time": None}, variables, {"Conventions": "CF-1.8"})


def check(folder, udunits, raddle, pairs, values):
    """Merges files whose variables have the units of ``pairs``; the second numbers must be converted to the first
    units."""
    converters = [udunits.converter(second, first) for first, second in pairs]
    inputs = write_all(
        folder, file(0, [first for first, _ in pairs], values), file(1, [second for _, second in pairs], values)
    )
    output = folder / "merged.nc"
    raddle("merge", *inputs, "-o", output, "--units", "convert")
    with netCDF4.Dataset(output) as merged:
        for number, ((first, second), converter) in enumerate(zip(pairs, converters)):
            assert converter is not None, f"raddle converts {second!r} to {first!r}, UDUNITS does not"
            variable = merged[f"v{number}"]
            wanted = [values[number], converter(values[number])]
            assert variable.units == first
            # UDUNITS rounds intermediate results; differences of large numbers lose zero.
            scale = max(abs(converter(0.0)), abs(wanted[1]))
            assert np.allclose(variable[:], wanted, rtol=1e-12, atol=1e-12 * scale), (first, second, variable[:], wanted)


@pytest.mark.parametrize("quantity", UNITS)
def test_units_of_one_quantity(tmp_path, udunits, raddle, quantity):
    pairs = list(itertools.permutations(UNITS[quantity], 2))
    check(tmp_path, udunits, raddle, pairs, np.linspace(-50.0, 70.0, len(pairs)))


def test_units_of_other_quantities_are_refused(tmp_path, udunits, raddle):
    ones = [(texts[0], quantity) for quantity, texts in UNITS.items()]
    pairs = [(first, second) for (first, _), (second, _) in itertools.permutations(ones, 2)]
    pairs = [pair for pair in pairs if udunits.converter(*pair) is None]
    inputs = write_all(
        tmp_path, *(file(day, [pair[day] for pair in pairs], np.ones(len(pairs))) for day in range(2))
    )
    refused = raddle("merge", *inputs, "-o", tmp_path / "merged.nc", "--units", "convert", "--json", expect=3)
    found = {difference["path"] for difference in json.loads(refused.stdout)["error"]["differences"]}
    assert found == {f"/v{number} (attribute units)" for number in range(len(pairs))}


SYMBOLS = ["m", "g", "s", "A", "K", "mol", "Pa", "J", "W", "N", "Hz", "l", "bar", "eV", "V", "T"]
PREFIXES = ["", "", "k", "m", "h", "c", "M", "G", "u", "n", "da", "d", "p"]


@st.composite
def products(draw):
    """Draws a product of powers of a few symbols, and another spelling of it with different prefixes."""
    count = draw(st.integers(1, 3))
    powers = [(draw(st.sampled_from(SYMBOLS)), draw(st.integers(-3, 3).filter(bool))) for _ in range(count)]
    texts = []
    for _ in range(2):
        parts = []
        for symbol, exponent in powers:
            name = draw(st.sampled_from(PREFIXES)) + symbol
            sign = draw(st.sampled_from(["", "^", "**"]))
            parts.append(name if exponent == 1 else f"{name}{sign}{exponent}")
        factor = draw(st.sampled_from(["", "", "10 ", "1e-3 ", "0.5 ", "2.5e2 "]))
        texts.append(factor + draw(st.sampled_from([" ", "*", "."])).join(parts))
    return tuple(texts)


def test_random_products(udunits, raddle):
    @examples(20)
    @given(st.lists(products(), min_size=1, max_size=20), st.floats(1e-6, 1e6))
    def checked(pairs, value):
        with case_folder() as folder:
            check(folder, udunits, raddle, pairs, [value] * len(pairs))

    checked()


INTEGERS = {
    "exact": (("hours", "days"), [3, -2, 0], [72, -48, 0]),
    "divisible": (("days", "hours"), [48, 0, -24], [2, 0, -1]),
    "missing": (("hours", "days"), [1, -99, 2], [24, -99, 48]),
    "none": (("days", "hours"), [48, 5, 0], None),
    "beyond": (("s", "days"), [1, 30_000, 0], None),
    "becomes missing": (("hours", "days"), [1, 4, 0], None),
}


@pytest.mark.parametrize("case", INTEGERS)
def test_integers_are_converted_exactly_or_not_at_all(tmp_path, raddle, case):
    units, values, expected = INTEGERS[case]
    fill = {"_FillValue": np.int32(96 if case == "becomes missing" else -99)}
    inputs = []
    for number, (unit, numbers) in enumerate(zip(units, ([1, 2, 3], values), strict=True)):
        lag = Variable(("time",), np.array(numbers, "i4"), {"units": unit, **fill})
        time = Variable(("time",), 3.0 * number + np.arange(3), {"units": "days since 2000-01-01"})
        inputs.append(File({"time": None}, {"time": time, "lag": lag}, {"Conventions": "CF-1.8"}))
    paths, output = write_all(tmp_path, *inputs), tmp_path / "merged.nc"
    finished = raddle("merge", *paths, "-o", output, "--units", "convert", expect=0 if expected else 3)
    if expected is None:
        assert "/lag" in finished.stderr and not output.exists()
        return
    with netCDF4.Dataset(output) as merged:
        merged.set_auto_mask(False)
        assert merged["lag"].units == units[0] and merged["lag"].dtype == "i4"
        assert merged["lag"][:].tolist() == [1, 2, 3, *expected]
    raddle("verify", output, "--against", *paths)


@pytest.mark.parametrize("attributes", [{}, {"scale_factor": 0.5}, {"valid_max": np.int16(90)}, {"_Unsigned": "true"}])
def test_another_spelling_of_a_unit_changes_no_value(tmp_path, raddle, attributes):
    inputs = []
    for number, unit in enumerate(["W m-2", "W/m2"]):
        flux = Variable(("time",), np.array([number, 7], "i2"), {"units": unit, **attributes})
        time = Variable(("time",), 2.0 * number + np.arange(2), {"units": "days since 2000-01-01"})
        inputs.append(File({"time": None}, {"time": time, "flux": flux}, {"Conventions": "CF-1.8"}))
    paths, output = write_all(tmp_path, *inputs), tmp_path / "merged.nc"
    assert "--units convert" in raddle("merge", *paths, "-o", output, expect=3).stderr
    raddle("merge", *paths, "-o", output, "--units", "convert")
    with netCDF4.Dataset(output) as merged:
        merged.set_auto_maskandscale(False)
        assert merged["flux"][:].tolist() == [0, 7, 1, 7] and merged["flux"].units == "W m-2"
