"""Groups and files as trees for notebooks: HTML without scripts, in the colours of its surroundings.

Only metadata of the file itself is read: no values, no other files. Everything that comes from the file is escaped.
"""

from __future__ import annotations

import math
import posixpath
from collections import deque
from html import escape
from typing import TYPE_CHECKING

from raddle._dataset import Dataset
from raddle._object import Unreadable
from raddle._reports import size
from raddle._values import encoded
from raddle.errors import RaddleError

if TYPE_CHECKING:
    from raddle._core import _Child as Child
    from raddle._group import Group
    from raddle._object import HdfObject

# Maximum number of members shown of a group, and of all groups together.
_MAX_MEMBERS = 200
_MAX_OBJECTS = 1000

# Maximum number of attributes shown of an object, and of characters of a value or a type.
_MAX_ATTRIBUTES = 100
_MAX_CHARACTERS = 200

# Text has the colour of the notebook; lines and notes are drawn with less of it. Rules apply only to these trees.
_STYLE = """
.raddle-tree{font-size:90%;line-height:1.5}
.raddle-tree ul{list-style:none;margin:0;padding:0 0 0 1.2em}
.raddle-tree summary{cursor:pointer;display:list-item}
.raddle-tree .raddle-note{opacity:.65}
.raddle-tree .raddle-name{font-family:monospace}
.raddle-tree .raddle-fault{color:#d9534f}
.raddle-tree table{border-collapse:collapse;margin:0 0 0 1.2em}
.raddle-tree th,.raddle-tree td{text-align:left;vertical-align:top;padding:0 1em 0 0;background:none}
.raddle-tree th{font-weight:normal;font-family:monospace}
""".replace("\n", "")


def tree(group: Group) -> str:
    """Returns a group with everything below it, as far as the limits allow."""
    if not group:
        return f"<pre>{escape(repr(group))}</pre>"
    members = _members(group)
    title = escape(repr(group))
    body = _content(group, members)
    page = f'<div class="raddle-tree"><style>{_STYLE}</style><div>{title}</div>{body}</div>'
    # Names that are not UTF-8 have surrogates, which cannot be sent to a notebook.
    return page.encode("utf-8", "replace").decode("utf-8")


def _members(group: Group) -> dict[int, list[Child]]:
    """Returns the children of groups by the groups' identifiers, level by level until there are too many."""
    core = group._core()
    members: dict[int, list[Child]] = {}
    waiting, left = deque([group._number]), _MAX_OBJECTS
    while waiting and left > 0:
        number = waiting.popleft()
        if number in members:
            continue
        members[number] = core.children(number)
        visible = members[number][:_MAX_MEMBERS]
        left -= len(visible)
        waiting.extend(child for _, child, kind, _ in visible if kind == "group" and child is not None)
    return members


def _content(group: Group, members: dict[int, list[Child]]) -> str:
    """Returns attributes and members of a group. Each group is expanded once."""
    children = members.pop(group._number)
    items = [_item(group, child, members) for child in children[:_MAX_MEMBERS]]
    if len(children) > _MAX_MEMBERS:
        items.append(f'<li class="raddle-note">and {len(children) - _MAX_MEMBERS:,} more</li>')
    return f"{_attributes(group)}<ul>{''.join(items)}</ul>"


def _item(group: Group, child: Child, members: dict[int, list[Child]]) -> str:
    name, number, kind, outline = child
    label = f'<span class="raddle-name">{escape(name)}</span>'
    if number is None or kind is None:
        return f"<li>{label} {_note(_target(group, name))}</li>"
    found = group._file._make(kind, number, posixpath.join(group.name, name), outline)
    if kind == "group":
        label += f" {_note(_count(len(found), 'member'))}"
        if number not in members:
            return f"<li>{label}</li>"
        return f"<li><details><summary>{label}</summary>{_content(found, members)}</details></li>"
    if isinstance(found, Unreadable):
        return f"<li>{label} {_fault(found.reason)}</li>"
    note = _described(found) if isinstance(found, Dataset) else _note("datatype")
    return f"<li>{_expandable(f'{label} {note}', _attributes(found))}</li>"


def _target(group: Group, name: str) -> str:
    """Returns the target of a link that has no object in this file."""
    kind, *target = group._core().link(group._number, encoded(name)) or ("broken",)
    return f"{kind} link to {' in '.join(map(str, reversed(target)))}" if target else f"{kind} link"


def _described(dataset: Dataset) -> str:
    """Returns type, shape, chunks and filters of a dataset."""
    try:
        return _note(_form(dataset))
    except RaddleError as error:
        return _fault(str(error))


def _form(dataset: Dataset) -> str:
    kind, shape = dataset._element_type(), dataset.shape
    dtype = "unusual type" if kind.route == "other" else _type(kind.dtype)
    if shape is None:
        return f"{dtype}, null"
    parts = [f"{dtype} {shape}" if shape else f"{dtype}, scalar"]
    if kind.route == "bytes":
        parts.append(size(math.prod(shape) * kind.dtype.itemsize))
    if dataset.chunks:
        parts.append(f"chunks {dataset.chunks}")
    parts += [filter_name for _, filter_name, _ in dataset.filters if filter_name]
    return ", ".join(parts)


def _type(dtype: object) -> str:
    names = getattr(dtype, "names", None)
    return _shortened(f"compound of {', '.join(names)}" if names else "text" if _is_text(dtype) else str(dtype))


def _is_text(dtype: object) -> bool:
    return (getattr(dtype, "metadata", None) or {}).get("vlen") in (str, bytes)


def _attributes(owner: HdfObject) -> str:
    """Returns the attributes of an object as a table that is closed at first."""
    names = owner._core().attribute_names(owner._number)
    if not names:
        return ""
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_value(owner, name))}</td></tr>" for name in names[:_MAX_ATTRIBUTES]
    )
    if len(names) > _MAX_ATTRIBUTES:
        rows += f"<tr><td>and {len(names) - _MAX_ATTRIBUTES:,} more</td></tr>"
    return f"<details><summary>{_note(_count(len(names), 'attribute'))}</summary><table>{rows}</table></details>"


def _value(owner: HdfObject, name: str) -> str:
    """Returns the value of an attribute, unless only h5py can read it."""
    found = owner._core().attribute(owner._number, encoded(name))
    if found is None or found[2] is None or owner._file._element_type(found[0]).route == "other":
        return "…"
    try:
        value = str(owner.attrs[name])
    except RaddleError as error:
        value = f"cannot be read: {error}"
    return _shortened(" ".join(value.split()))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"


def _expandable(label: str, content: str) -> str:
    return f"<details><summary>{label}</summary>{content}</details>" if content else label


def _note(text: str) -> str:
    return f'<span class="raddle-note">{escape(text)}</span>'


def _fault(reason: str) -> str:
    return f'<span class="raddle-fault">{escape(_shortened(f"cannot be read: {reason}"))}</span>'


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
