"""Inputs sorted by first values (--sort-by): values are ordered as h5py, netCDF4 and numpy read them."""

import h5py
import numpy as np
import pytest
import xarray as xr


def write_rows(folder, keys, **types):
    """Writes a file per tuple of keys, /a, /b and so on, and the number of the tuple to /row."""
    paths = []
    for number, values in enumerate(keys):
        paths.append(folder / f"{number:02}.h5")
        with h5py.File(paths[-1], "w") as file:
            file["row"] = [number]
            for name, value in zip("abc", values):
                file[name] = np.array([value, value], types.get(name))
    return paths


def rows(path):
    with h5py.File(path) as merged:
        return merged["row"][:].tolist()


def months(folder, make):
    """Writes files that begin in March, January and February, and opens them in the order of their months."""
    paths = []
    for number, month in enumerate((3, 1, 2)):
        paths.append(folder / f"{number}.nc")
        make(number, f"2001-{month:02}-01").to_netcdf(paths[-1], unlimited_dims=["n"])
    return paths, [xr.open_dataset(paths[at]) for at in (1, 2, 0)]


def assert_sorted_by(raddle, folder, key, make):
    """Asserts that files sorted by ``key`` are merged in the order of their months."""
    inputs, ordered = months(folder, make)
    raddle("merge", *inputs, "-o", folder / "out.nc", "--sort-by", key)
    with xr.open_dataset(folder / "out.nc") as found:
        xr.testing.assert_equal(found, xr.concat(ordered, "n"))


def test_texts_of_characters_are_compared_as_a_whole(tmp_path, raddle):
    def wrf(number, date):
        times = np.array([f"{date}_{hour:02}:00:00" for hour in (0, 6)], "S19")
        data = {"T": (("n", "x"), np.full((2, 3), number, "f4")), "Times": (("n",), times, {}, {"char_dim_name": "DateStrLen"})}
        return xr.Dataset(data)

    assert_sorted_by(raddle, tmp_path, "/Times", wrf)


def test_a_single_text_of_characters_is_compared_as_a_whole(tmp_path, raddle):
    def swath(number, date):
        return xr.Dataset({"date": ((), np.bytes_(date)), "v": (("n",), [number, number])})

    inputs, ordered = months(tmp_path, swath)
    raddle("merge", *inputs, "-o", tmp_path / "out.nc", "--sort-by", "/date", "--exclude", "date")
    with xr.open_dataset(tmp_path / "out.nc") as found:
        assert found["v"].values.tolist() == [value for part in ordered for value in part["v"].values]


@pytest.mark.parametrize("kind", ["f8", "i4"])
def test_times_that_count_from_different_dates_are_compared_as_instants(tmp_path, raddle, kind):
    def forecast(number, date):
        units = {"units": f"{'hours' if number == 1 else 'days'} since {date}"}
        times = np.array([1, 2], kind) if number else np.zeros(2, kind)
        return xr.Dataset({"issued": ("n", times, units), "v": ("n", [number, number])}, {"n": [2 * number, 2 * number + 1]})

    assert_sorted_by(raddle, tmp_path, "/issued", forecast)


def test_numbers_with_another_meaning_are_refused(tmp_path, raddle):
    def packed(number, _):
        packing = {"dtype": "i2", "add_offset": 5.0 - number, "_FillValue": -1}
        return xr.Dataset({"key": ("n", [5.0 - number] * 2, {}, packing), "v": ("n", [number] * 2)})

    inputs, _ = months(tmp_path, packed)
    refused = raddle("merge", *inputs, "-o", tmp_path / "out.nc", "--sort-by", "/key", "--packing", "unpack", expect=3).stderr
    assert "1.nc" in refused and "/key" in refused and "another scale or another offset" in refused, refused
    assert not (tmp_path / "out.nc").exists()


def test_texts_of_other_lengths_are_equal_without_their_padding(tmp_path, raddle):
    inputs = write_rows(tmp_path, [(b"run1", 3), (b"run1", 2), (b"run0", 9), (b"run1", 1)])
    for path, length in zip(inputs, (4, 5, 7, 9)):
        with h5py.File(path, "a") as file:
            text = file["a"][:].astype(f"S{length}")
            del file["a"]
            file["a"] = text
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--sort-by", "/a,/b", "--exclude", "a")
    assert rows(tmp_path / "out.h5") == [2, 3, 1, 0]


def test_floats_are_ordered_as_in_numpy(tmp_path, raddle):
    keys = [(np.nan, 1), (0.0, 2), (-0.0, 1), (-np.nan, 0), (np.inf, 0), (-0.0, 3), (-1.5, 0), (0.0, 0)]
    inputs = write_rows(tmp_path, keys, a="f8", b="i4")
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--sort-by", "/a,/b")
    firsts, seconds = np.transpose(keys)
    assert rows(tmp_path / "out.h5") == np.lexsort([seconds, firsts]).tolist()


def test_integers_and_floats_are_compared_without_rounding(tmp_path, raddle):
    big = 1 << 60
    keys = [(big + 1,), (float(big),), (big - 1,), (float(big + 256),), (big + 255,), (big,)]
    inputs = write_rows(tmp_path, keys)
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--sort-by", "/a", "--exclude", "a")
    assert rows(tmp_path / "out.h5") == sorted(range(len(keys)), key=lambda at: keys[at])


def test_soft_links_lead_to_the_datasets(tmp_path, raddle):
    inputs = write_rows(tmp_path, [(3,), (1,), (2,)])
    for path in inputs:
        with h5py.File(path, "a") as file:
            file["inner/key"] = file["a"]
            file["linked"] = h5py.SoftLink("/inner")
    raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--sort-by", "/linked/key")
    assert rows(tmp_path / "out.h5") == [1, 2, 0]
