"""The classes of operators that there are."""

import importlib
import inspect
import pkgutil

import floodway.operators
from floodway.operators.base import Operator, TableOperator
from floodway.operators.stateless import Stateless

ABSTRACT = {Operator, TableOperator, Stateless}


def operators() -> list[type[Operator]]:
    for module in pkgutil.walk_packages(floodway.operators.__path__, "floodway.operators."):
        importlib.import_module(module.name)
    found: list[type[Operator]] = []
    waiting = [Operator]
    while waiting:
        kind = waiting.pop()
        found.append(kind)
        waiting.extend(kind.__subclasses__())
    # Dataclasses with slots are made anew by their decorator; the first edition is garbage.
    current = {k for k in found if getattr(inspect.getmodule(k), k.__name__, None) is k}
    return sorted(current - ABSTRACT, key=lambda kind: kind.__name__)
