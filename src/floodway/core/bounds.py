"""Integers of 64 bits: what the engine, Arrow and Spark take for an ``int``.

Decoders refuse larger ones by themselves where an annotation says so, which costs nothing. It can
be made to say so but in classes of the user that are no records: their annotations are theirs.
Values that may hold integers of such classes are looked through after they are decoded, and only
those fields that may.
"""

import dataclasses
import types
from collections import abc
from collections.abc import Callable
from typing import Annotated, Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

LOWEST, HIGHEST = -(2**63), 2**63 - 1

BIGINT = Annotated[int, msgspec.Meta(ge=LOWEST, le=HIGHEST)]
"""An integer that decoders refuse if it does not fit into 64 bits."""

_CONTAINERS: tuple[Any, ...] = (list, dict, set, frozenset, tuple)
_CONTAINERS += (abc.Collection, abc.Sequence, abc.MutableSequence)
_CONTAINERS += (abc.Set, abc.MutableSet, abc.Mapping, abc.MutableMapping)

_Fields = dict[Any, tuple[str, ...]]
"""The fields of classes that may hold integers of any size."""


def bounded(annotation: Any) -> Any:
    """Return an annotation with integers of 64 bits.

    >>> bounded(str), bounded(list[int]) == list[BIGINT]
    (<class 'str'>, True)
    """
    if annotation is int:
        return BIGINT
    if isinstance(annotation, NewType):
        return _bounded_new(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *extras = arguments
        extras = _limits(extras) if inner is int else extras
        return Annotated[(inner if inner is int else bounded(inner), *extras)]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(bounded, arguments))]  # noqa: UP007 - as many as there are
    if origin in _CONTAINERS and arguments:
        return origin[tuple(map(bounded, arguments))]
    return annotation


def checked(decode: Callable[[Any], Any], annotation: Any) -> Callable[[Any], Any]:
    """Return a decoder that also refuses large integers that `bounded` cannot keep out.

    It is `decode` itself if there are none by the annotation.
    """
    fields = _wide_fields(bounded(annotation))
    if fields is None:
        return decode

    def decode_and_check(raw: Any) -> Any:
        value = decode(raw)
        _check(value, fields)
        return value

    return decode_and_check


def _bounded_new(annotation: Any) -> Any:
    """Return what a new type stands for if it stands for integers, else the new type."""
    inner = bounded(annotation.__supertype__)
    return annotation if inner is annotation.__supertype__ else inner


def _limits(extras: list[Any]) -> list[Any]:
    """Return what says more about an integer, with limits of 64 bits where it has none."""
    metas = [extra for extra in extras if isinstance(extra, msgspec.Meta)]
    low = all(meta.ge is None and meta.gt is None for meta in metas)
    high = all(meta.le is None and meta.lt is None for meta in metas)
    lower = [msgspec.Meta(ge=LOWEST)] if low else []
    return [*extras, *lower, *([msgspec.Meta(le=HIGHEST)] if high else [])]


def _wide_fields(annotation: Any) -> _Fields | None:
    """Return which fields to look into, by class, or None if there is nothing to look for."""
    fields: _Fields = {}
    while True:  # a class that has itself in a field is known only the next time round
        before = dict(fields)
        wide = _wide(annotation, fields, set())
        if fields == before:
            return fields if wide else None


def _wide(annotation: Any, fields: _Fields, seen: set[Any]) -> bool:
    """Return whether values may hold integers of any size; add to `fields` which of a class do."""
    if annotation is int or isinstance(annotation, TypeVar):
        return True
    if isinstance(annotation, NewType):
        return _wide(annotation.__supertype__, fields, seen)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, *extras = arguments
        if inner is int:
            return _limits(extras) != extras
        return _wide(inner, fields, seen)
    wide = [_wide(argument, fields, seen) for argument in arguments if argument is not ...]
    kind = origin or annotation
    return _wide_class(kind, fields, seen) if _has_fields(kind) else any(wide)


def _wide_class(kind: Any, fields: _Fields, seen: set[Any]) -> bool:
    if kind not in seen:
        seen.add(kind)
        hints = get_type_hints(kind, include_extras=True)
        found = [name for name, hint in hints.items() if _wide(hint, fields, seen)]
        fields[kind] = tuple(found)
    return bool(fields.get(kind))


def _has_fields(kind: Any) -> bool:
    """Return whether something is a class with annotated fields that msgspec decodes."""
    if not isinstance(kind, type):
        return False
    named = (
        hasattr(kind, "_fields") or hasattr(kind, "__total__") or hasattr(kind, "__attrs_attrs__")
    )
    return named or issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind)


def _check(value: Any, fields: _Fields) -> None:
    kind = type(value)
    if kind is int:
        if not LOWEST <= value <= HIGHEST:
            raise msgspec.ValidationError("Expected `int` of 64 bits")
    elif kind in fields:
        for name in fields[kind]:
            _check(getattr(value, name), fields)
    elif kind is dict:
        for key, inner in value.items():
            _check(key, fields)
            _check(inner, fields)
    elif kind in (list, tuple, set, frozenset):
        for inner in value:
            _check(inner, fields)
