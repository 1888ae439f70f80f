"""Judge the pinned packages: ``python scripts/audit.py``, run through ``make audit``.

Two questions about every version in ``constraints.txt``: does the package index still offer exactly
the files that are written down in ``hashes.txt``, and does it know of a vulnerability? The index is
the one that pip is set up with. What cannot be asked is a failure: no answer is not a good answer.
``--renew`` writes ``hashes.txt`` anew, after ``constraints.txt`` was.
"""

import html
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parent.parent
PINS, HASHES = ROOT / "constraints.txt", ROOT / "hashes.txt"
AT_ONCE = 8
PATIENCE_S = 60

_PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
_FILE = re.compile(r'<a\s[^>]*href="[^"#]*#sha256=([0-9a-f]{64})"[^>]*>([^<]+)</a>')
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ELSEWHERE = re.compile(
    r"-(win|macosx|ios|android|pyodide|emscripten|pp)[^-]*|-(cp3(?!1[1-9])\d+)-cp"
)

Pins = Mapping[str, str]
Fetch = Callable[[str], str]
"""Returns what is at an address; raises `OSError` if there is nothing or nobody answers."""


def pins(text: str) -> dict[str, str]:
    """Return the pinned version of every package.

    >>> pins("Jinja2==3.1.6 # why")
    {'jinja2': '3.1.6'}
    """
    return {normal(name): version for name, version in _PIN.findall(_without_comments(text))}


def normal(name: str) -> str:
    """Return a package's name as indexes write it.

    >>> normal("Typing_Extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _without_comments(text: str) -> str:
    return "\n".join(line.partition("#")[0] for line in text.splitlines())


def offered(page: str, name: str, version: str) -> dict[str, str]:
    """Return the files of a version that could be installed on Linux, each with its digest.

    >>> page = '<a href="../x/Some_Thing-1.0-py3-none-any.whl#sha256=' + 64 * "a" + '">'
    >>> page += "Some_Thing-1.0-py3-none-any.whl</a>"
    >>> list(offered(page, "some-thing", "1.0")), offered(page, "some-thing", "1.0.1")
    (['Some_Thing-1.0-py3-none-any.whl'], {})
    """
    return {
        file: digest
        for digest, file in ((digest, html.unescape(file)) for digest, file in _FILE.findall(page))
        if _is_of(file, name, version) and not _ELSEWHERE.search(file)
    }


def _is_of(file: str, name: str, version: str) -> bool:
    wheel = file.removesuffix(".whl").split("-")
    if file.endswith(".whl"):
        return normal(wheel[0]) == name and wheel[1] == version
    stem = file.removesuffix(".tar.gz").removesuffix(".zip")
    return stem.endswith(f"-{version}") and normal(stem[: -len(version) - 1]) == name


def recorded(text: str) -> dict[tuple[str, str], set[str]]:
    """Return the digests that are written down, by package and version."""
    found: dict[tuple[str, str], set[str]] = {}
    for entry in _without_comments(text).replace("\\\n", " ").splitlines():
        pin = _PIN.search(entry)
        if pin is not None:
            found[normal(pin[1]), pin[2]] = set(_HASH.findall(entry))
    return found


def written(files: Mapping[tuple[str, str], Iterable[str]]) -> str:
    """Return digests as pip reads them."""
    lines = ["# The files of the versions in constraints.txt; written by scripts/audit.py --renew."]
    for (name, version), digests in sorted(files.items()):
        hashes = [f"    --hash=sha256:{digest}" for digest in sorted(set(digests))]
        lines.append(" \\\n".join([f"{name}=={version}", *hashes]))
    return "\n".join(lines) + "\n"


def judge_files(known: set[str] | None, found: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the files that an index offers of a version.

    >>> judge_files({"a"}, {"x.whl": "a", "y.whl": "b"})
    ['y.whl is not one of the files that were written down']
    """
    if known is None:
        return ["nothing is written down about it: run scripts/audit.py --renew"]
    strange = [file for file, digest in found.items() if digest not in known]
    missing = len(known - set(found.values()))
    return [
        *(f"{file} is not one of the files that were written down" for file in strange),
        *([f"{missing} of the files that were written down are not offered"] if missing else []),
    ]


def vulnerabilities(answer: str) -> list[str]:
    """Return the vulnerabilities of a version, by what the index says of it.

    >>> vulnerabilities('{"vulnerabilities": [{"id": "PYSEC-1", "fixed_in": ["2"]}]}')
    ['PYSEC-1, mended in 2']
    """
    said = json.loads(answer)
    if not isinstance(said, dict) or "vulnerabilities" not in said:
        raise ValueError("the index does not speak of vulnerabilities")
    return [
        each["id"] + (f", mended in {', '.join(each['fixed_in'])}" if each["fixed_in"] else "")
        for each in said["vulnerabilities"]
        if not each.get("withdrawn")
    ]


class Audit:
    """The questions, and where to ask them."""

    def __init__(self, index: str, about: str, fetch: Fetch) -> None:
        self._index, self._about, self._fetch = index.rstrip("/"), about.rstrip("/"), fetch

    def files(self, name: str, version: str) -> dict[str, str]:
        """Return the files of a version that the index offers."""
        return offered(self._fetch(f"{self._index}/{name}/"), name, version)

    def findings(self, name: str, version: str, known: set[str] | None) -> list[str]:
        """Return what is wrong with a version, and what could not be found out."""
        return [
            *self._asked("files", lambda: judge_files(known, self.files(name, version))),
            *self._asked(
                "vulnerabilities",
                lambda: vulnerabilities(self._fetch(f"{self._about}/{name}/{version}/json")),
            ),
        ]

    def _asked(self, what: str, question: Callable[[], list[str]]) -> list[str]:
        try:
            return question()
        except (OSError, ValueError) as error:
            return [f"its {what} could not be asked for: {error}"]


def audit(asked: Audit, pinned: Pins, known: Mapping[tuple[str, str], set[str]]) -> list[str]:
    """Return all findings about all packages, a line each."""

    def one(pin: tuple[str, str]) -> list[str]:
        name, version = pin
        found = asked.findings(name, version, known.get(pin))
        return [f"{name} {version}: {finding}" for finding in found]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [line for lines in pool.map(one, pinned.items()) for line in lines]


def fetch(address: str) -> str:
    """Return what is at an address."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            text: str = answer.read().decode()
            return text
    except urllib.error.HTTPError as error:
        error.close()
        raise OSError(f"the index answered {error.code}") from None


def main(arguments: list[str]) -> int:
    """Audit or renew, print what was found and return the exit code."""
    index = os.environ.get("PIP_INDEX_URL") or PyPI.simple_url
    about = re.sub(r"/simple/?$", "/pypi", index)
    asked, pinned = Audit(index, about, fetch), pins(PINS.read_text())
    if arguments == ["--renew"]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            files = list(pool.map(lambda pin: asked.files(*pin).values(), pinned.items()))
        HASHES.write_text(written(dict(zip(pinned.items(), files, strict=True))))
        return 0
    findings = audit(asked, pinned, recorded(HASHES.read_text()))
    for line in findings:
        print(f"audit: {line}")
    unasked = sum("could not be asked for" in line for line in findings)
    if unasked:
        print(f"audit: {unasked} questions were not answered, so this says nothing about the rest")
    print(f"audit: {len(pinned)} packages, {len(findings) - unasked} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
