#!/usr/bin/env python3
"""Compresses wheels again with libdeflate, which finds shorter codes than zlib: scripts/compress-wheel.py WHEEL...

Names, times, permissions and order stay. A wheel is replaced after its copy was read back equal.
"""

import sys
import zipfile
from pathlib import Path

import deflate

# The best that libdeflate offers.
LEVEL = 12


class WholeCompressor:
    """Compressor in the form that zipfile calls: all data comes at once, because libdeflate has no streams."""

    def __init__(self) -> None:
        """Begins without data."""
        self.data = b""

    def compress(self, data: bytes) -> bytes:
        """Keeps the data until the end."""
        self.data += data
        return b""

    def flush(self) -> bytes:
        """Returns the compressed data."""
        return bytes(deflate.deflate_compress(self.data, LEVEL))


def compress(wheel: Path) -> None:
    """Replaces a wheel with a smaller one, and prints both sizes."""
    copy = wheel.with_suffix(".compressing")
    try:
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy, "w") as new:
            for entry in old.infolist():
                data = old.read(entry)
                with new.open(entry, "w") as file:
                    # zipfile has no public way to choose a compressor. The result is read back below.
                    if entry.compress_type == zipfile.ZIP_DEFLATED:
                        file._compressor = WholeCompressor()
                    file.write(data)
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(copy) as new:
            if old.namelist() != new.namelist() or any(old.read(name) != new.read(name) for name in old.namelist()):
                raise SystemExit(f"{wheel.name}: its copy has other contents; nothing was replaced")
        before, after = (path.stat().st_size for path in (wheel, copy))
        copy.replace(wheel)
    finally:
        copy.unlink(missing_ok=True)
    print(f"{wheel.name}: {before / 1e6:.2f} MB by zlib, {after / 1e6:.2f} MB by libdeflate")


def main() -> int:
    """Compresses all wheels and returns the exit status."""
    if len(sys.argv) < 2:
        print("usage: scripts/compress-wheel.py WHEEL...", file=sys.stderr)
        return 2
    for wheel in map(Path, sys.argv[1:]):
        compress(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())
