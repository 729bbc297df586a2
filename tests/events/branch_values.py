"""Values of branches that tests store by hand, in lists of known lengths."""

import struct

import numpy as np
import rootfile as r

ENTRIES = 12
COUNTS = [entry % 4 for entry in range(ENTRIES)]
ALL = float(2**32 - 1)


def lists(values):
    """Splits values into lists: each entry takes the next values, as many as its count."""
    values = iter(values)
    return [[next(values) for _ in range(count)] for count in COUNTS]


def collection(parts):
    """Returns a collection with its header, from serialised values."""
    return r.counted(10, struct.pack(">I", len(parts)) + b"".join(parts))


# Title of the comment, and ROOT's interpretation: minimum and steps per unit, or bits of a mantissa, or None.
RANGES = {
    "": None,
    "[-1,1,10]": (-1.0, 1024 / 2.0),
    "[0,100]": (0.0, ALL / 100.0),
    "[-pi,twopi,12]": (-np.pi, 4096 / (3 * np.pi)),
    "[0,0,8]": 8,
    "[0,0,14]": 14,
    # Too long for a mantissa, so treated as None.
    "[0,0,16]": None,
}


def stored(packed, seed, count, is_float16=False):
    """Returns numbers as stored according to a comment, and their values as read by ROOT's ``ReadDouble32`` and
    ``ReadFloat16``."""
    random = np.random.default_rng(seed)
    if is_float16 and packed is None:
        packed = 12
    if packed is None:
        values = random.normal(size=count).astype(np.float32)
        return [struct.pack(">f", value) for value in values], [float(value) for value in values]
    if isinstance(packed, tuple):
        (minimum, factor), steps = packed, random.integers(0, 1 << 32 if packed[1] > 1e6 else 1000, count)
        values = [int(step) / factor + minimum for step in steps]
        stored = [struct.pack(">I", int(step)) for step in steps]
    else:
        exponents, signs = random.integers(100, 150, count), random.integers(0, 2, count)
        mantissas = random.integers(0, 1 << packed, count)
        parts = [tuple(map(int, part)) for part in zip(exponents, signs, mantissas)]
        values = [(-1.0) ** sign * (1 + mantissa / 2**packed) * 2.0 ** (exponent - 127) for exponent, sign, mantissa in parts]
        stored = [struct.pack(">BH", exponent, sign << (packed + 1) | mantissa) for exponent, sign, mantissa in parts]
    return stored, [float(np.float32(value)) for value in values] if is_float16 else values
