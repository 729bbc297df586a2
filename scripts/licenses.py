#!/usr/bin/env python3
"""Collects the licences of everything that wheels and the command contain besides raddle.

    scripts/licenses.py           writes crates/cli/LICENSES-THIRD-PARTY.txt and packaging/bundled-libraries.cdx.json
    scripts/licenses.py check     exits with 1 if one of them is out of date

The first file has the texts of the licences. The second lists the C libraries inside packages of Rust as CycloneDX 1.6: tools that
list packages of Rust cannot see them. Both follow from Cargo.lock and the sources that cargo downloads for it.

Packages that are only needed for building or testing are left out. So are procedural macros, which run in the compiler.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import textwrap
import uuid
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXTS = ROOT / "crates/cli/LICENSES-THIRD-PARTY.txt"
LIBRARIES = ROOT / "packaging/bundled-libraries.cdx.json"
# Packages that are shipped, the features with which any of their builds is shipped, and the platforms of these builds.
SHIPPED = ("raddle-cli", "raddle-python", "raddle-capi")
FEATURES = "raddle-cli/mpi"
PLATFORMS = (
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
    "aarch64-unknown-linux-musl",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
)
# Where a package offers several licences, raddle uses the first of these that it offers.
PREFERRED = ("MIT", "BSD-3-Clause", "Zlib", "Apache-2.0")
# Words in names of files, and the licences that such files hold.
LICENSE_OF_WORD = {
    "unlicense": "Unlicense",
    "llvm": "Apache-2.0 WITH LLVM-exception",
    "apache": "Apache-2.0",
    "mit": "MIT",
    "zlib": "Zlib",
    "boost": "BSL-1.0",
}
LICENSE_FILE = re.compile(r"(?i)^(un)?licen[sc]e|^copying|^copyright|^notice")
C_SOURCE = re.compile(r"\.(c|cc|cpp|S)$")


@dataclass(frozen=True)
class Library:
    """A C library whose sources a package of Rust contains."""

    name: str
    package: str
    license: str
    # Files of the package that hold the licence; of C sources, the first comment.
    files: tuple[str, ...]
    # File of the package that states the version, and a pattern whose groups are joined by dots.
    version: tuple[str, str]
    homepage: str
    # Vendor and product in the database of vulnerabilities, if it is listed there.
    cpe: str | None = None


BUNDLED = (
    Library(
        "HDF5",
        "hdf5-metno-src",
        "BSD-3-Clause",
        ("ext/hdf5/LICENSE",),
        (
            "ext/hdf5/src/H5public.h",
            r"(?s)#define H5_VERS_MAJOR (\d+).*?#define H5_VERS_MINOR (\d+).*?#define H5_VERS_RELEASE (\d+)",
        ),
        "https://www.hdfgroup.org/solutions/hdf5/",
        "hdfgroup:hdf5",
    ),
    Library(
        "uthash",
        "hdf5-metno-src",
        "BSD-1-Clause",
        ("ext/hdf5/src/uthash.h",),
        ("ext/hdf5/src/uthash.h", r"#define UTHASH_VERSION ([\d.]+)"),
        "https://troydhanson.github.io/uthash/",
    ),
    Library(
        "zlib",
        "libz-sys",
        "Zlib",
        ("src/zlib/LICENSE",),
        ("src/zlib/zlib.h", r'#define ZLIB_VERSION "([\d.]+)"'),
        "https://zlib.net/",
        "zlib:zlib",
    ),
    Library(
        "libdeflate",
        "libdeflate-sys",
        "MIT",
        ("libdeflate/COPYING",),
        ("libdeflate/libdeflate.h", r'#define LIBDEFLATE_VERSION_STRING\s+"([\d.]+)"'),
        "https://github.com/ebiggers/libdeflate",
    ),
    Library(
        "mimalloc",
        "libmimalloc-sys",
        "MIT",
        ("c_src/mimalloc/v3/LICENSE",),
        # One digit, then two, then two.
        ("c_src/mimalloc/v3/include/mimalloc.h", r"#define MI_MALLOC_VERSION\s+(\d)0?(\d+?)0?(\d+?)\b"),
        "https://microsoft.github.io/mimalloc/",
    ),
    Library(
        "lz4",
        "lz4-sys",
        "BSD-2-Clause",
        ("liblz4/lib/LICENSE",),
        (
            "liblz4/lib/lz4.h",
            r"(?s)#define LZ4_VERSION_MAJOR\s+(\d+).*?#define LZ4_VERSION_MINOR\s+(\d+).*?#define LZ4_VERSION_RELEASE\s+(\d+)",
        ),
        "https://lz4.org/",
        "lz4_project:lz4",
    ),
    Library(
        "zstd",
        "zstd-sys",
        "BSD-3-Clause",
        ("zstd/LICENSE",),
        (
            "zstd/lib/zstd.h",
            r"(?s)#define ZSTD_VERSION_MAJOR\s+(\d+).*?#define ZSTD_VERSION_MINOR\s+(\d+).*?#define ZSTD_VERSION_RELEASE\s+(\d+)",
        ),
        "https://facebook.github.io/zstd/",
        "facebook:zstandard",
    ),
)
# Packages with C sources that are their own, under their own licence, or that are not compiled.
OWN_C_SOURCES = {"mpi-sys", "nix", "signal-hook"}
STANDARD_LIBRARY = """\
Every build contains the standard library of Rust and the runtime of its compiler, of the version of Rust that built it. They are
licensed under MIT or Apache-2.0, and parts under Apache-2.0 with the LLVM exception: https://www.rust-lang.org/policies/licenses.
Copyright (c) The Rust Project Contributors.
"""
STANDARD_MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"""


def fail(message: str) -> None:
    """Ends the program with a message."""
    sys.exit(f"scripts/licenses.py: {message}")


def metadata(platform: str) -> dict:
    """Returns what cargo resolves for a platform."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    command += ["--features", FEATURES, "--filter-platform", platform]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def shipped_packages() -> list[dict]:
    """Returns the packages from the registry that are linked into what is shipped, on any platform, by name and version."""
    found = {}
    for platform in PLATFORMS:
        resolved = metadata(platform)
        packages = {package["id"]: package for package in resolved["packages"]}
        nodes = {node["id"]: node for node in resolved["resolve"]["nodes"]}
        waiting = [id for id, package in packages.items() if package["source"] is None and package["name"] in SHIPPED]
        reached = set()
        while waiting:
            id = waiting.pop()
            is_macro = any("proc-macro" in target["kind"] for target in packages[id]["targets"])
            if id in reached or is_macro:
                continue
            reached.add(id)
            for edge in nodes[id]["deps"]:
                if any(kind["kind"] is None for kind in edge["dep_kinds"]):
                    waiting.append(edge["pkg"])
        found |= {id: packages[id] for id in reached if packages[id]["source"] is not None}
    return sorted(found.values(), key=lambda package: (package["name"], package["version"]))


def used_licenses(expression: str) -> set[str]:
    """Returns the licences of an SPDX expression that apply, with the preferred one of each choice."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))

    def alternatives() -> list[set[str]]:
        found = combination()
        while words and words[0] == "OR":
            words.pop(0)
            found += combination()
        return found

    def combination() -> list[set[str]]:
        found = single()
        while words and words[0] == "AND":
            words.pop(0)
            right = single()
            found = [one | other for one in found for other in right]
        return found

    def single() -> list[set[str]]:
        word = words.pop(0)
        if word == "(":
            found = alternatives()
            words.pop(0)
            return found
        if words and words[0] == "WITH":
            words.pop(0)
            word += f" WITH {words.pop(0)}"
        return [{word}]

    choices = alternatives()

    def rank(choice: set[str]) -> int:
        return max(PREFERRED.index(name) if name in PREFERRED else len(PREFERRED) for name in choice)

    return min(choices, key=rank)


def tidy(text: str) -> str:
    """Returns a text without trailing spaces, tabs, common indentation and empty lines at its ends."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\f", "\n").expandtabs().split("\n")]
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def first_comment(text: str) -> str:
    """Returns the text of the first comment of a C source."""
    match = re.search(r"/\*(.*?)\*/", text, re.DOTALL)
    return match[1] if match else ""


def texts_of_package(package: dict) -> list[str]:
    """Returns the texts of a package's licences that apply."""
    folder = Path(package["manifest_path"]).parent
    used = used_licenses(package["license"])
    texts = []
    has_license = False
    for path in sorted(folder.iterdir()):
        if not (path.is_file() and LICENSE_FILE.match(path.name)):
            continue
        licenses = [license for word, license in LICENSE_OF_WORD.items() if word in path.name.lower()]
        if licenses and licenses[0] not in used:
            continue
        text = tidy(path.read_text(encoding="utf-8", errors="replace"))
        texts.append(text)
        has_license |= len(text) > 500
    if has_license:
        return texts
    if used != {"MIT"}:
        fail(f"{package['name']} {package['version']} contains no text of its licence, {package['license']}: add it")
    holders = ", ".join(re.sub(r" *<[^>]*>", "", author) for author in package["authors"])
    holders = holders or f"the authors of {package['name']}"
    return [f"Copyright (c) {holders}\n(The package contains no text of its licence. This is the standard text.)\n\n{STANDARD_MIT}"]


def version_of(library: Library, folder: Path) -> str:
    """Returns the version of a C library."""
    name, pattern = library.version
    match = re.search(pattern, (folder / name).read_text(encoding="utf-8", errors="replace"))
    if not match:
        fail(f"no version of {library.name} in {folder / name}")
    return ".".join(match.groups())


def texts_of_library(library: Library, folder: Path) -> list[str]:
    """Returns the texts of the licences of a C library."""
    texts = []
    for name in library.files:
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
        texts.append(tidy(first_comment(text) if name.endswith(".h") else text))
    return texts


def check_c_sources(packages: list[dict]) -> None:
    """Fails if a package has C sources that no entry of this script accounts for."""
    known = {library.package for library in BUNDLED} | OWN_C_SOURCES
    for package in packages:
        folder = Path(package["manifest_path"]).parent
        has_c = any(C_SOURCE.search(name) for _, _, names in os.walk(folder) for name in names)
        if has_c and package["name"] not in known:
            fail(f"{package['name']} contains C sources: add their library to BUNDLED, or the package to OWN_C_SOURCES")
    missing = {library.package for library in BUNDLED} - {package["name"] for package in packages}
    if missing:
        fail(f"no longer among the dependencies: {', '.join(sorted(missing))}: take their libraries out of BUNDLED")


def license_texts(packages: list[dict], libraries: list[tuple[Library, str, Path]]) -> str:
    """Returns the file of licences."""
    listed = []
    texts: dict[str, list[str]] = {}

    def add(title: str, license: str, found: list[str]) -> None:
        listed.append(f"  {title:<34} {license}")
        for text in found:
            texts.setdefault(text, []).append(title)

    for library, version, folder in libraries:
        add(f"{library.name} {version}", library.license, texts_of_library(library, folder))
    listed.append("")
    for package in packages:
        # The package with HDF5 states no licence of its own, only the file of HDF5.
        if package["license"]:
            add(f"{package['name']} {package['version']}", package["license"].replace("/", " OR "), texts_of_package(package))
    rule = "=" * 100
    parts = [
        "Licences of software that raddle contains\n\n"
        "Made by scripts/licenses.py. raddle itself is licensed under MIT or Apache-2.0. Its wheels and its command contain the software\n"
        "listed here, C libraries first. Where a choice is offered, MIT is used. The texts of the licences follow the list.\n"
        f"{STANDARD_LIBRARY}",
        "\n".join(listed) + "\n",
    ]
    for text, titles in texts.items():
        names = textwrap.fill(", ".join(titles), 100, break_on_hyphens=False)
        parts.append(f"{rule}\n{names}\n{rule}\n\n{text}")
    return "\n".join(parts)


def bill_of_materials(version: str, libraries: list[tuple[Library, str, Path]]) -> str:
    """Returns the C libraries as a CycloneDX document, which is the same for the same libraries."""
    components = []
    for library, library_version, _ in libraries:
        component = {
            "type": "library",
            "bom-ref": f"{library.name.lower()}@{library_version}",
            "name": library.name,
            "version": library_version,
            "licenses": [{"license": {"id": library.license}}],
            "externalReferences": [{"type": "website", "url": library.homepage}],
            "properties": [{"name": "raddle:contained-in", "value": f"pkg:cargo/{library.package}"}],
        }
        if library.cpe:
            component["cpe"] = f"cpe:2.3:a:{library.cpe}:{library_version}:*:*:*:*:*:*:*"
        components.append(component)
    content = json.dumps([version, components], sort_keys=True)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": f"raddle@{version}",
                "name": "raddle",
                "version": version,
                "licenses": [{"expression": "MIT OR Apache-2.0"}],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": f"raddle@{version}", "dependsOn": [component["bom-ref"] for component in components]},
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def main() -> int:
    """Writes or checks both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", nargs="?", choices=["write", "check"], default="write")
    arguments = parser.parse_args()
    packages = shipped_packages()
    check_c_sources(packages)
    folders = {package["name"]: Path(package["manifest_path"]).parent for package in packages}
    libraries = [(library, version_of(library, folders[library.package]), folders[library.package]) for library in BUNDLED]
    version = re.search(r'(?m)^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"))[1]
    status = 0
    for path, text in [(TEXTS, license_texts(packages, libraries)), (LIBRARIES, bill_of_materials(version, libraries))]:
        if arguments.action == "check":
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path.relative_to(ROOT)} is out of date: run scripts/licenses.py", file=sys.stderr)
                status = 1
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
