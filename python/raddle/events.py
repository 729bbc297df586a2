"""HEP events: ROOT files, packed data streams and HDF5 files read as awkward arrays, and arrays written as events.

`raddle.events.open` reads trees and RNTuples of ROOT files, packed data streams, and every HDF5 layout of `raddle
events convert`, on all cores and without ROOT. `raddle.events.write` writes arrays (such as those read by uproot).
`raddle.events.convert`, `raddle.events.merge` and `raddle.events.inspect` do the same as the commands of these names.
"""

from raddle._event_files import Basket, Events, Product, open
from raddle._event_options import ID as ID
from raddle._event_options import Differing as Differing
from raddle._event_options import Layout as Layout
from raddle._event_reports import EventsInspection, EventsReport
from raddle._event_runs import convert, inspect, merge, write

__all__ = [
    "Basket",
    "Events",
    "EventsInspection",
    "EventsReport",
    "Product",
    "convert",
    "inspect",
    "merge",
    "open",
    "write",
]
