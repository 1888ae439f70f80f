"""What tells values apart, and finds one again that has been sent or stored in between.

The text of a value is enough if all its types are known. Of others it is not: the text of an object
may be its address, and dictionaries and sets show equal contents in any order. So these are looked
into, as they are when they are sent.
"""

import datetime as dt
from decimal import Decimal
from types import BuiltinFunctionType, FunctionType
from typing import Any

from msgspec import Struct

from floodway.core.types import ArrayType, DataType, MapType, OpaqueType, StructType

_PLAIN = frozenset(
    {bool, int, float, complex, str, bytes, type(None), Decimal, dt.date, dt.datetime, dt.timedelta}
)


def is_looked_into(data_type: DataType) -> bool:
    """Return whether values of a type need more than their text to be told apart.

    >>> from floodway.core.types import LONG
    >>> is_looked_into(LONG), is_looked_into(ArrayType(MapType(LONG, LONG)))
    (False, True)
    """
    if isinstance(data_type, ArrayType):
        return is_looked_into(data_type.element)
    if isinstance(data_type, StructType):
        return any(is_looked_into(field.type) for field in data_type.fields)
    return isinstance(data_type, OpaqueType | MapType)


def identity(value: Any) -> str:
    """Return a text that equal values have in common, also if they were sent in between.

    >>> identity({"b": 1, "a": {3, 2}})
    "{'a': {2, 3}, 'b': 1}"
    """
    if type(value) in _PLAIN:
        return repr(value)
    try:
        return _inside(value)
    except Exception:  # it cannot be sent, or it contains itself
        return repr(value)


def _inside(value: Any) -> str:
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if kind is list:
        return f"[{_each(value)}]"
    if kind is tuple:
        return f"({_each(value)}{',' if len(value) == 1 else ''})"
    if kind is dict:
        shown = sorted(f"{_inside(key)}: {_inside(item)}" for key, item in value.items())
        return f"{{{', '.join(shown)}}}"
    if kind in (set, frozenset) and value:
        inner = f"{{{', '.join(sorted(map(_inside, value)))}}}"
        return inner if kind is set else f"frozenset({inner})"
    if isinstance(value, Struct):
        fields = (f"{name}={_inside(getattr(value, name))}" for name in value.__struct_fields__)
        return f"{kind.__name__}({', '.join(fields)})"
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return _as_sent(value)


def _each(values: Any) -> str:
    return ", ".join(map(_inside, values))


def _as_sent(value: Any) -> str:
    """Return what an object is made of, as it is when it is sent."""
    made = value.__reduce_ex__(2)
    if isinstance(made, str):
        return made
    parts = [part if number < 3 or part is None else list(part) for number, part in enumerate(made)]
    return f"<{_each(parts)}>"
