"""Shipping: a plan as bytes, and back in another process.

Functions and classes that the other side can import go by name; those of scripts, notebooks and
closures go by value (cloudpickle). Record classes need help: a class made by ``msgspec`` is rebuilt
from its fields. Connectors that stay at the driver are left out.
"""

import io
import sys
from collections.abc import Iterator
from inspect import get_annotations
from typing import Any, get_type_hints

import msgspec
from pyspark import cloudpickle

from floodway.core.errors import EngineError
from floodway.operators.base import Operator
from floodway.plan.stages import Plan


def pack(plan: Plan) -> bytes:
    """Return a plan as bytes; name the operator if something in it cannot travel."""
    try:
        return _dumped(plan)
    except Exception as error:
        raise _culprit(plan, error) from error


def unpack(data: bytes) -> Plan:
    """Return the plan that was packed, in a process that trusts who packed it."""
    plan: Plan = cloudpickle.loads(data)
    return plan


def _dumped(value: Any) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(value)  # type: ignore[no-untyped-call]
        return file.getvalue()


class _Pickler(cloudpickle.CloudPickler):
    """Knows how to take record classes apart."""

    def reducer_override(self, value: Any) -> Any:
        """Return how to rebuild `value`, where the usual way would not do."""
        if isinstance(value, type(msgspec.Struct)) and not _importable(value):
            # What belongs to a class may mention the class: it is added once the class is there.
            return _rebuild, _taken_apart(value), _belongings(value), None, None, _furnish
        if not isinstance(value, type | msgspec.Struct) and _at_driver(value):
            return _nothing, ()
        return super().reducer_override(value)  # type: ignore[no-untyped-call]


def _at_driver(value: Any) -> bool:
    place = getattr(value, "place", None)
    return isinstance(place, str) and place == "driver"


def _nothing() -> None:
    """Stand for a connector that stayed at the driver."""


def _importable(python: type) -> bool:
    module = sys.modules.get(python.__module__)
    if module is None or python.__module__ == "__main__":
        return False
    found: Any = module
    for part in python.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is python


def _taken_apart(python: Any) -> tuple[Any, ...]:
    hints = get_type_hints(python, include_extras=True)
    own = get_annotations(python)
    fields: list[Any] = []
    for field in msgspec.structs.fields(python):
        if field.name not in own:
            continue
        if field.default is not msgspec.NODEFAULT:
            fields.append((field.name, hints[field.name], field.default))
        elif field.default_factory is not msgspec.NODEFAULT:
            made = msgspec.field(default_factory=field.default_factory)
            fields.append((field.name, hints[field.name], _Factory(made.default_factory)))
        else:
            fields.append((field.name, hints[field.name]))
    # msgspec looks for this one when it makes the class.
    early = {name: python.__dict__[name] for name in _EARLY if name in python.__dict__}
    return python.__name__, fields, python.__bases__, early, python.__module__, _options(python)


_EARLY = ("__post_init__",)
_MADE = ("__annotations__", "__dict__", "__match_args__", "__module__", "__slots__", "__weakref__")


def _options(python: Any) -> dict[str, Any]:
    config = python.__struct_config__
    names = [name for name in dir(config) if not name.startswith("_")]
    own = get_annotations(python).keys() & set(python.__struct_fields__)
    renamed = zip(python.__struct_fields__, python.__struct_encode_fields__, strict=True)
    return {
        **{name: getattr(config, name) for name in names},
        "kw_only": bool(own) and own.isdisjoint(python.__match_args__),
        "rename": {name: encoded for name, encoded in renamed if name != encoded},
    }


def _belongings(python: Any) -> dict[str, Any]:
    """Return the methods, properties and constants of a class."""
    skipped = {*python.__struct_fields__, *_EARLY, *_MADE}
    return {
        name: value
        for name, value in python.__dict__.items()
        if not name.startswith("__struct") and name not in skipped
    }


def _furnish(python: type, belongings: dict[str, Any]) -> None:
    for name, value in belongings.items():
        setattr(python, name, value)


class _Factory:
    """A field's default, made anew each time."""

    def __init__(self, factory: Any) -> None:
        self.factory = factory


def _rebuild(
    name: str,
    fields: list[Any],
    bases: tuple[type, ...],
    early: dict[str, Any],
    module: str,
    options: dict[str, Any],
) -> Any:
    described = [
        (field[0], field[1], msgspec.field(default_factory=field[2].factory))
        if len(field) == 3 and isinstance(field[2], _Factory)
        else field
        for field in fields
    ]
    return msgspec.defstruct(
        name, described, bases=bases, namespace=early, module=module, **options
    )


def _culprit(plan: Plan, error: Exception) -> EngineError:
    """Return an error that names the operator whose function cannot be shipped."""
    for operator in plan.graph.operators:
        for what, part in _parts(operator):
            try:
                _dumped(part)
            except Exception as inner:
                return EngineError(
                    f"the {what} of the operator cannot be shipped to the tasks: {inner}",
                    remedy="do not use open files, sockets, locks or Spark objects in it; make "
                    "them inside the function, once per process",
                    operator=operator.name,
                    place=operator.place,
                )
    return EngineError(
        f"the flow cannot be shipped to the tasks: {error}",
        remedy="use functions, classes and connectors that can be pickled",
    )


def _parts(operator: Operator) -> Iterator[tuple[str, Any]]:
    """Return what the user gave to an operator, without its inputs."""
    for cls in type(operator).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if name not in ("inputs", "outputs", "name", "place"):
                yield name, getattr(operator, name, None)
