"""The documentation names every function, and there are enough of them."""

import re
from pathlib import Path

from floodway.expressions import FUNCTIONS
from floodway.expressions.functions.generators import GENERATORS

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"


def test_there_are_many_functions() -> None:
    assert len({function.name for function in FUNCTIONS.values()}) >= 100


def test_every_function_has_one_line_of_documentation() -> None:
    for function in FUNCTIONS.values():
        assert function.doc
        assert "\n" not in function.doc
        assert function.topic


def test_the_page_lists_every_function_as_it_is() -> None:
    rows = re.findall(r"^\| `(\w+)\(.*?\)` \| (.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    listed = {name: (also, doc) for name, also, doc in rows}
    functions = {function.name: function for function in FUNCTIONS.values()}
    assert listed.keys() == functions.keys() | GENERATORS.keys()
    for name, function in functions.items():
        also, doc = listed[name]
        assert also == ", ".join(f"`{alias}`" for alias in function.aliases)
        assert doc == function.doc
