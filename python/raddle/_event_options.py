"""Types of keywords of calls that concern events, and of their ids."""

from __future__ import annotations

from typing import Literal

import numpy as np

Layout = Literal["columns", "product", "event", "batch", "pds", "rntuple"]
"""Layout of an output."""

Differing = Literal["refuse", "leave-out", "fill"]
"""Treatment of products that do not have the same form in all files."""

Choice = Literal["none", "events", "batch", "both"]
"""Data that ``compat="cce"`` compresses in the batch layout."""

Serialize = Literal["root", "unrolled"]
"""Serialisation of products."""

ID = np.dtype([("run", "u4"), ("lumi", "u4"), ("event", "u8")])
"""The type of ids: run, subrun (or luminosity block) and event."""
