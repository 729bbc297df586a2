"""Values of datasets as JSON has them, for the sets and their tests."""

import numpy as np


def plain(values: object) -> object:
    """Returns arrays as nested lists of numbers and strings, and compound elements as lists of their fields."""
    match values:
        case np.ndarray() if values.dtype.names:
            return [[plain(element[name]) for name in values.dtype.names] for element in values.reshape(-1)]
        case np.ndarray() | list() | tuple():
            return [plain(element) for element in values]
        case np.generic():
            return plain(values.item())
        case bytes():
            return values.decode()
    return values
