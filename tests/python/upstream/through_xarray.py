"""Plugin for pytest that makes xarray's engine h5netcdf read with raddle, so that xarray's tests of it test raddle.

Calls with options that only h5netcdf has are left to it.
"""

import functools

from raddle._xarray import RaddleBackend
from xarray.backends.h5netcdf_ import H5netcdfBackendEntrypoint, _normalize_filename_or_obj

# Options of h5netcdf that do not change what is read, or change it only from what raddle does anyway.
IGNORED = {"lock", "format", "invalid_netcdf", "decode_vlen_strings", "phony_dims"}


def through_raddle(name):
    """Replaces a method that opens files by that of raddle's engine."""
    original = getattr(H5netcdfBackendEntrypoint, name)
    ours = getattr(RaddleBackend, name)

    # With the original's signature, from which xarray takes the names of decoders.
    @functools.wraps(original)
    def open_with_raddle(self, filename_or_obj, **options):
        known = set(RaddleBackend.open_dataset_parameters)
        if any(value is not None for option, value in options.items() if option not in known | IGNORED):
            return original(self, filename_or_obj, **options)
        kept = {option: value for option, value in options.items() if option in known}
        return ours(RaddleBackend(), _normalize_filename_or_obj(filename_or_obj), **kept)

    setattr(H5netcdfBackendEntrypoint, name, open_with_raddle)


for method in ("open_dataset", "open_datatree", "open_groups_as_dict"):
    through_raddle(method)
