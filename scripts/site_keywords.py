"""Extension of griffe, which reads the package for the site: describes every keyword of every function.

`raddle.merge` describes keywords that `plan`, `rechunk`, `split`, `select`, `verify`, `append` and `index` also take. Their
docstrings refer to it. A page of reference can repeat the descriptions, so that no reader has to look elsewhere.
"""

from __future__ import annotations

from typing import Any

from griffe import Docstring, DocstringParameter, DocstringSectionParameters, Extension, Function, GriffeLoader, Module


class Keywords(Extension):
    """Adds the parameters that a function shares with `raddle.merge` to its description."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:
        if pkg.name != "raddle":
            return
        merge = pkg["_merge"]["merge"]
        described = {name: parameter.description for name, parameter in parameters(merge.docstring).items()}
        for module in pkg.modules.values():
            for function in module.functions.values():
                if function is not merge and not function.name.startswith("_") and function.docstring:
                    add_shared(function, described)


def section(docstring: Docstring) -> DocstringSectionParameters | None:
    """Returns the section of parameters."""
    return next((part for part in docstring.parse("numpy") if isinstance(part, DocstringSectionParameters)), None)


def parameters(docstring: Docstring) -> dict[str, DocstringParameter]:
    """Returns the described parameters by name."""
    found = section(docstring)
    return {parameter.name: parameter for parameter in found.value} if found else {}


def add_shared(function: Function, described: dict[str, str]) -> None:
    """Appends the keywords of `described` that the function has and does not describe, as lines of its docstring."""
    docstring = function.docstring
    if docstring is None or section(docstring) is None:
        return
    own = parameters(docstring)
    missing = [parameter.name for parameter in function.parameters if parameter.name not in own and parameter.name in described]
    if not missing:
        return
    lines = docstring.value.splitlines()
    start = next(at for at, line in enumerate(lines) if line == "Parameters")
    # The next section, or the end.
    end = next((at for at in range(start + 2, len(lines)) if lines[at].startswith("---")), len(lines) + 1) - 1
    while not lines[end - 1].strip():
        end -= 1
    added = [line for name in missing for line in (name, *(f"    {text}".rstrip() for text in described[name].splitlines()))]
    docstring.value = "\n".join([*lines[:end], *added, *lines[end:]])
