"""A flow is found by the name that commands and programs give."""

from pathlib import Path

import pytest

from floodway.model.loading import LoadError, load_flow

FLOW = """\
import floodway as fw

flow = fw.Flow("found")
number = 5


def build():
    return fw.Flow("built")
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    found = tmp_path / f"named_{tmp_path.name.replace('-', '_')}.py"
    found.write_text(FLOW)
    return str(found)


def test_flow_of_a_file_is_found_by_its_name_or_as_the_one_called_flow(file: str) -> None:
    assert load_flow(file).name == load_flow(f"{file}:flow").name == "found"


def test_function_is_asked_for_its_flow(file: str) -> None:
    assert load_flow(f"{file}:build").name == "built"


def test_module_is_looked_for_where_programs_run(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_flow(f"{Path(file).stem}:flow").name == "found"


@pytest.mark.parametrize(
    ("attribute", "said"),
    [("number", "is a int, not a flow"), ("missing", "is nothing, not a flow")],
)
def test_what_is_no_flow_is_refused(file: str, attribute: str, said: str) -> None:
    with pytest.raises(LoadError, match=said) as error:
        load_flow(f"{file}:{attribute}")
    assert "name a Flow or a function that returns one" in error.value.remedy


@pytest.mark.parametrize(
    ("where", "said", "remedy"),
    [
        ("nowhere.py:flow", "there is no file nowhere.py", "name an existing file"),
        ("no.such.module:flow", "there is no module 'no.such.module'", "name the file"),
    ],
)
def test_name_that_leads_nowhere_is_refused(where: str, said: str, remedy: str) -> None:
    with pytest.raises(LoadError, match=said) as error:
        load_flow(where)
    assert remedy in error.value.remedy
