"""Names of mappings as notebooks and terminals show and complete them."""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from raddle._group import Group

# Paths below a group are completed down to the level at which there are more than this.
_MAX_COMPLETIONS = 500


class Names(KeysView[str]):
    """Names of members or attributes. Printing the object lists them."""

    _mapping: Mapping[str, Any]

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._mapping))

    def __repr__(self) -> str:
        return f"KeysView({list(self._mapping)})"


def completions(group: Group) -> list[str]:
    """Returns the names of a group's members, and paths below them, level by level up to a number of paths."""
    core = group._core()
    paths = core.names(group._number)
    level, seen = [("", group._number)], {group._number}
    while level:
        found, below = [], []
        for prefix, number in level:
            for name, child, kind, _ in core.children(number):
                found.append(prefix + name)
                if kind == "group" and child is not None and child not in seen:
                    seen.add(child)
                    below.append((f"{prefix}{name}/", child))
        if level[0][0]:
            if len(paths) + len(found) > _MAX_COMPLETIONS:
                break
            paths += found
        level = below
    return sorted(paths)
