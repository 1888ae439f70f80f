"""``make audit`` finds replaced files and known vulnerabilities, and takes no silence for a yes."""

import json
from collections.abc import Callable

import pytest

from scripts.audit import HASHES, PINS, Audit, audit, pins, recorded, written

GOOD, BAD = "a" * 64, "b" * 64
SOUND: dict[str, list[object]] = {"vulnerabilities": []}
HOLE = {"vulnerabilities": [{"id": "PYSEC-7", "fixed_in": ["2.1"], "withdrawn": None}]}
WITHDRAWN = {"vulnerabilities": [{"id": "PYSEC-8", "fixed_in": [], "withdrawn": "2026-01-01"}]}


def index(digest: str = GOOD, about: object = SOUND) -> Callable[[str], str]:
    """Return an index that offers one file of one package."""

    def fetch(address: str) -> str:
        file = "thing-2.0-py3-none-any.whl"
        if address == "index/thing/":
            return f'<a href="x/{file}#sha256={digest}" data-requires-python="&gt;=3">{file}</a>'
        assert address == "about/thing/2.0/json"
        if isinstance(about, OSError):
            raise about
        return json.dumps(about)

    return fetch


def findings(fetch: Callable[[str], str], known: str = GOOD) -> list[str]:
    return audit(Audit("index", "about/", fetch), {"thing": "2.0"}, {("thing", "2.0"): {known}})


@pytest.mark.parametrize("about", [SOUND, WITHDRAWN])
def test_sound_package_passes(about: object) -> None:
    assert findings(index(about=about)) == []


def test_replaced_file_is_found() -> None:
    strange, missing = findings(index(BAD))
    assert "thing-2.0-py3-none-any.whl is not one of the files" in strange
    assert "1 of the files that were written down are not offered" in missing


def test_vulnerability_is_found() -> None:
    assert findings(index(about=HOLE)) == ["thing 2.0: PYSEC-7, mended in 2.1"]


@pytest.mark.parametrize("answer", [OSError("nobody answers"), {"message": "what?"}, []])
def test_no_answer_is_no_good_answer(answer: object) -> None:
    (line,) = findings(index(about=answer))
    assert "vulnerabilities could not be asked for" in line


def test_package_about_which_nothing_is_written_down_is_found() -> None:
    (line,) = audit(Audit("index", "about", index()), {"thing": "2.0"}, {})
    assert "--renew" in line


def test_what_is_written_is_read() -> None:
    files = {("thing", "2.0"): [BAD, GOOD, GOOD], ("other", "1"): [GOOD]}
    assert recorded(written(files)) == {("thing", "2.0"): {GOOD, BAD}, ("other", "1"): {GOOD}}


def test_hashes_are_those_of_the_pinned_versions() -> None:
    known = recorded(HASHES.read_text())
    assert known.keys() == pins(PINS.read_text()).items()
    assert all(known.values())
