"""The report on a machine, as it is written for programs."""

from importlib.metadata import version
from typing import Self

import msgspec

from floodway.doctor.checks import Finding, Status, diagnose
from floodway.doctor.probes import Probes, look

FORMAT = 1
"""The version of the JSON report's format; it rises when a field changes its meaning."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``floodway doctor`` as it is written for programs.

    Attributes
    ----------
    format
        The version of this format.
    floodway
        The version of Floodway.
    status
        The worst status of all findings.
    findings
        One entry for each check, always in the same order.
    """

    format: int = FORMAT
    floodway: str
    status: Status
    findings: list[Finding]

    @classmethod
    def of(cls, findings: list[Finding]) -> Self:
        """Return the report on some findings."""
        return cls(floodway=version("floodway"), status=worst(findings), findings=findings)


def worst(findings: list[Finding]) -> Status:
    """Return the worst status of some findings.

    Examples
    --------
    >>> worst([Finding(check="a", title="A", status="warning", detail="so so")])
    'warning'
    >>> worst([])
    'ok'
    """
    found = {finding.status for finding in findings}
    return "wrong" if "wrong" in found else "warning" if "warning" in found else "ok"


def examine(probes: Probes) -> Report:
    """Look at a machine, and return the report on it."""
    return Report.of(diagnose(look(probes)))
