"""Tables of files to search, and opening the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from raddle._dataset import Dataset
from raddle._file import File
from raddle._group import Group
from raddle._keywords import Inputs, Path, Values
from raddle._scan import Scan
from raddle._scan_files import OpenFiles, check_columns, group_of, paths_of
from raddle._scan_values import check_choice, with_values
from raddle.errors import UsageError


class FileScan(Mapping[str, Scan]):
    """Tables of one or several files, by the paths of their groups."""

    _files: OpenFiles
    _values: Values | None
    _checked: dict[str, tuple[str, ...]]
    _counts: dict[tuple[str, str], list[int]]

    def __init__(self, files: OpenFiles, values: Values | None = None) -> None:
        self._files, self._values, self._checked, self._counts = files, values, {}, {}

    @property
    def file(self) -> File:
        """The open file; of several, the first."""
        return self._files.first

    @property
    def paths(self) -> list[str]:
        """Paths of the files, in the order of their rows."""
        return list(self._files.paths)

    def __getitem__(self, group: str) -> Scan:
        self._names(group)
        return Scan(self, group)

    def _names(self, group: str) -> tuple[str, ...]:
        """Returns the columns of a table, after checking that they are the same in all files."""
        if group in self._checked:
            return self._checked[group]
        columns: dict[str, Dataset] = {}
        counts: dict[str, list[int]] = {}
        for number in range(len(self._files)):
            with self._files.use(number) as opened:
                found = with_values(opened, group, _rows_columns(group_of(opened.file, group)), self._values, is_used=False)
                if number:
                    check_columns(self.file, opened.file, columns, found)
                else:
                    columns, counts = found, {name: [] for name in found}
                for name, column in found.items():
                    counts[name].append(len(column))
        self._counts.update(((group, name), of_column) for name, of_column in counts.items())
        return self._checked.setdefault(group, tuple(columns))

    def _row_counts(self, group: str, column: str) -> list[int]:
        """Returns the number of rows of a column in each file."""
        if (group, column) not in self._counts:
            counts = []
            for number in range(len(self._files)):
                with self._files.use(number) as opened:
                    found = group_of(opened.file, group)._columns([column])[column]
                    if not found.shape:
                        raise UsageError(f"{found.name} is a scalar, which has no rows")
                    counts.append(len(found))
            self._counts[group, column] = counts
        return self._counts[group, column]

    def __iter__(self) -> Iterator[str]:
        return (name for name, found in self.file.items() if isinstance(found, Group) and found.file is self.file)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, group: object) -> bool:
        found = self.file.get(group) if isinstance(group, str) else None
        return isinstance(found, Group) and found.file is self.file

    def close(self) -> None:
        """Closes the files."""
        self._files.close()

    def __enter__(self) -> FileScan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        paths = self._files.paths
        more = "" if len(paths) == 1 else f" and {len(paths) - 1:,} more"
        return f"<raddle.scan({paths[0]!r}{more})>"


def _rows_columns(table: Group) -> dict[str, Dataset]:
    """Returns the columns with one value, or array of values, per row."""
    columns = table._columns(None)
    # Partition keys consist of the event of each row and of datasets with other rows.
    keys = [name.removesuffix(".seq") for name in columns if name.endswith(".seq")]
    others = {f"{key}{ending}" for key in keys for ending in (".seq_cnt", ".offsets")}
    # A netCDF dimension without a variable has a length only.
    have_values = table._core().have_values([column._number for column in columns.values()])
    return {name: column for (name, column), has in zip(columns.items(), have_values, strict=True) if has and name not in others}


def scan(path: Inputs, *, index: bool | Path = True, threads: int | None = None, values: Values | None = None) -> FileScan:
    """Opens one or several files to search their tables.

    Parameters
    ----------
    path
        An HDF5 file, a pattern such as ``"runs/*.h5"``, or a list of files and patterns. The rows of several files follow
        each other in the order of the list; the files of a pattern are in the order of their names. A table has the
        same columns in all files.
    index
        Whether to use the index of each file, ``PATH.stats``, if it exists; for a single file, also the path of its index.
        `raddle.index` writes indexes. An index that was written for a different state of the file is not used, with a warning.
    threads
        Number of threads. Default: the cores available to this process.
    values
        Values of netCDF variables with ``scale_factor``, ``add_offset``, ``_FillValue``, ``missing_value`` or ``_Unsigned``:
        ``"stored"`` for the numbers in the file, ``"decoded"`` for the values that xarray shows, in its types. Missing values
        are then NaN, and null in Arrow, Polars and SQL. Default: a scan that uses a column for which this makes a difference is
        refused, if the file is netCDF or follows CF.

    Returns
    -------
    FileScan
        Tables by the path of their group: ``raddle.scan("all.h5")["rec.slc"].filter(raddle.col("calE") > 2)``.

    Raises
    ------
    raddle.errors.InputError
        If a file or an index cannot be read. ``FileScan[...]`` also raises it if the columns of a table are not the same in
        all files, and methods of scans if they use a column whose values ``values`` would have to choose, or that cannot be
        decoded.
    raddle.errors.InputNotFoundError
        If a file does not exist, or no file matches a pattern.
    raddle.errors.UsageError
        If ``values`` is anything else.

    Warns
    -----
    raddle.errors.StaleIndexWarning
        If the index was written for a different state of its file.

    Examples
    --------
    >>> table = raddle.scan("all.h5")["rec.slc"]  # doctest: +SKIP
    >>> found = table.filter((raddle.col("calE") > 2) & (raddle.col("run") == 1234))  # doctest: +SKIP
    >>> found.select("evt", "calE").to_numpy()  # doctest: +SKIP
    """
    check_choice(values)
    return FileScan(OpenFiles(paths_of(path), index, threads), values)
