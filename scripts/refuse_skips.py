"""Fail if tests were skipped that should have run: ``python scripts/refuse_skips.py REPORT``.

The report is the one that pytest writes with ``--junitxml``. A test that finds no server is
skipped, so that everybody can run the others; where the servers were promised, as in CI, a skip is
a hole. Examples in docstrings that are marked ``+SKIP`` are not meant to run anywhere. Whether a
machine makes network namespaces is up to those who run it, and nothing can be installed for that.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

_MEANT = ("all tests skipped by +SKIP option", "this machine kills no connections in a namespace: ")
"""How the reasons begin that are accepted."""


def refused(report: Path) -> list[str]:
    """Return the tests that were skipped and should not have been, each with its reason.

    Parameters
    ----------
    report
        The report of a test run; one without any test is no proof, and raises `ValueError`.
    """
    cases = list(ElementTree.parse(report).iter("testcase"))
    if not cases:
        raise ValueError(f"{report} has no tests")
    return [
        f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}"
        for case in cases
        for skip in case.iter("skipped")
        if skip.get("type") == "pytest.skip" and not (skip.get("message") or "").startswith(_MEANT)
    ]


def main(report: Path) -> int:
    """Print what was skipped and return the exit code."""
    found = refused(report)
    for line in found:
        print(f"skipped: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
