"""Writes netCDF-4 files variable by variable."""

import netCDF4


def create(path, conventions="CF-1.11"):
    file = netCDF4.Dataset(path, "w")
    file.Conventions = conventions
    return file


def variable(file, name, kind, dims, values=None, fill=None, **attributes):
    created = file.createVariable(name, kind, dims, fill_value=fill)
    created.setncatts(attributes)
    if values is not None:
        created[...] = values
    return created
