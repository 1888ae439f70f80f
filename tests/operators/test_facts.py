"""What operators say of themselves holds for the kernels they make."""

from collections.abc import Iterator

import pytest

from floodway.operators.base import DEAD, CopyKernel, Operator
from floodway.operators.stateless import Stateless
from tests.operators.cases import CASES, operator_of, stateless
from tests.operators.kinds import operators


def found() -> Iterator[tuple[str, Operator]]:
    for case, write in CASES.items():
        yield case, operator_of(write)
    for operator in stateless().operators:
        yield operator.name, operator


EXAMPLES = list(found())


def test_there_is_an_example_of_every_operator() -> None:
    assert {type(operator) for _, operator in EXAMPLES} >= set(operators())


@pytest.mark.parametrize("versioned", [False, True], ids=["latest", "versions"])
@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_operator_says_what_its_kernel_remembers(
    name: str, operator: Operator, versioned: bool
) -> None:
    kernel = operator.kernel({port: [] for port in operator.outputs}, versioned=versioned)
    said = operator.state(versioned=versioned)
    if said is None:
        assert not kernel.remembers
    else:
        assert kernel.remembers
        assert (said.kernel, said.layout) == (type(kernel), kernel.layout)


@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_only_what_looks_into_a_table_is_done_beside_a_copy(name: str, operator: Operator) -> None:
    kernel = operator.kernel({port: [] for port in operator.outputs})
    copies = isinstance(kernel, CopyKernel)
    assert (operator.facts.away == "with a copy") == copies


@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_what_keeps_keys_or_windows_has_an_input_to_keep_them_of(
    name: str, operator: Operator
) -> None:
    facts = operator.facts
    if facts.keys == "kept" or facts.keeps_windows:
        assert operator.inputs
    assert facts.windows is None or not facts.keeps_windows
    assert all(port < len(operator.inputs) for port in facts.reads_versions)


@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_only_what_writes_a_fragment_is_chained(name: str, operator: Operator) -> None:
    fragment = operator if isinstance(operator, Stateless) else None
    assert operator.facts.chained == (fragment is not None)
    if fragment is not None:
        assert operator.outputs.keys() - {DEAD} == set(fragment.arms())


@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_what_subscribes_or_joins_has_what_it_takes(name: str, operator: Operator) -> None:
    facts = operator.facts
    if facts.emit is not None:
        assert operator.inputs[0].output.kind == "changes"
    assert facts.joins is None or len(operator.inputs) == 2


@pytest.mark.parametrize(("name", "operator"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_kernel_tells_somebody_of_every_record_that_fails(name: str, operator: Operator) -> None:
    """Whoever counts them and shows them asks the kernel for those who were told."""
    kernel = operator.kernel({port: [] for port in operator.outputs})
    assert len(kernel.handlers) == hasattr(operator, "on_error")
