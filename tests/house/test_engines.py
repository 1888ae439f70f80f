"""Properties run all their examples on the reference engine, and enough of them on the others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import (
    FEW_EXAMPLES,
    QUICK_EXAMPLES,
    SETTINGS,
    examples_for,
    fewer_examples,
)
from tests.engines import ENGINES, Engine


@pytest.mark.parametrize("asked", [1, 60, 100, 300])
def test_reference_engine_runs_all_examples(asked: int) -> None:
    assert examples_for("reference", asked) == asked


@pytest.mark.parametrize(("asked", "run"), [(1, 1), (40, 40), (100, 40), (300, 100)])
def test_other_engines_run_a_third_but_not_too_few(asked: int, run: int) -> None:
    assert examples_for("data-3", asked) == run


@pytest.mark.parametrize(("asked", "run"), [(1, 1), (15, 15), (300, 15)])
def test_engine_that_restores_after_every_push_runs_a_few(asked: int, run: int) -> None:
    assert examples_for("restored", asked) == run


def test_in_a_hurry_all_engines_run_a_few() -> None:
    assert examples_for("reference", 300, quick=True) == QUICK_EXAMPLES
    assert examples_for("data-3", 4, quick=True) == 4


def test_number_of_examples_changes_for_one_run() -> None:
    seen: list[int] = []

    @settings(max_examples=300, database=None)
    @given(st.integers())
    def prop(value: int) -> None:
        seen.append(value)

    with fewer_examples(prop, "data-1"):
        prop()
    assert len(seen) == 100
    seen.clear()
    prop()
    assert len(seen) == 300


def test_number_of_examples_comes_back_after_a_failure() -> None:
    @settings(max_examples=300, database=None)
    @given(st.none())
    def prop(value: None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), fewer_examples(prop, "data-1"):
        prop()
    assert getattr(prop, SETTINGS).max_examples == 300


def test_what_is_no_property_is_left_alone() -> None:
    def plain() -> None: ...

    with fewer_examples(plain, "data-1"):
        assert not hasattr(plain, SETTINGS)
    assert not hasattr(plain, SETTINGS)


@settings(max_examples=300)
@given(value=st.none())
def test_hook_applies_to_the_engine_of_the_test(
    engine: Engine, pytestconfig: pytest.Config, value: None
) -> None:
    run = getattr(test_hook_applies_to_the_engine_of_the_test, SETTINGS).max_examples
    name = next(name for name, known in ENGINES.items() if known is engine)
    quick = pytestconfig.getoption("--quick")
    full = {"reference": 300, **FEW_EXAMPLES}.get(name, 100)
    assert run == (QUICK_EXAMPLES if quick else full)
