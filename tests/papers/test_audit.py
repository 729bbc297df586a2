"""The table of the papers in the documentation is that of audit.py, everything it names exists, and its commands
pass."""

import audit
import pytest


def test_the_table_is_that_of_the_documentation():
    assert audit.faults() == []


@pytest.mark.parametrize("name", sorted(audit.CHECKS.keys() - audit.SLOW))
def test_commands(name, tmp_path):
    audit.CHECKS[name][1](tmp_path)
