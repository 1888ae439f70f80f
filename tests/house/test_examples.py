"""The examples run, and their flows are well formed."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_example_runs(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = load(file)
    module.build().check()
    module.main()
    assert capsys.readouterr().out.strip()


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES[0].parent / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in EXAMPLES if file.name not in listed] == []
