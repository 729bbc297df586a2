"""Settings of the tests of meaning, and the counts of their cases.

RADDLE_MEANING_EXAMPLES=N draws N cases for each property, different ones in each run. RADDLE_MEANING_COUNTS=FILE writes
how many cases of each convention were drawn, equal, refused and wrong.
"""

import json
import os
from pathlib import Path

from command import raddle  # noqa: F401
from hypothesis import HealthCheck, Phase, settings
from merging import COUNTS, EXAMPLES

settings.register_profile(
    "meaning",
    # The same cases in every CI run.
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    # No shrinking: cases are short enough as drawn, and looking for a shorter one takes minutes of merges.
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
settings.load_profile("meaning")


def pytest_sessionfinish():
    if path := os.environ.get("RADDLE_MEANING_COUNTS"):
        Path(path).write_text(json.dumps(COUNTS, indent=2, sort_keys=True) + "\n")
