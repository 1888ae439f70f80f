"""The base class of what flows: typed, immutable, cheap to make and to encode."""

import copyreg
from inspect import get_annotations
from typing import Any, Self, dataclass_transform, get_type_hints

import msgspec

from floodway.core.bounds import bounded


# msgspec tells type checkers that structs are dataclasses; this adds that records are frozen, so
# that users need not say so again.
@dataclass_transform(frozen_default=True)
class Record(msgspec.Struct, frozen=True):
    """The base of the user's record types.

    A record type is a class with annotated fields. Its instances are immutable, compare by value
    and are encoded without reflection (they are ``msgspec`` structs). An ``int`` has 64 bits: a
    larger one is refused where records are decoded.

    Examples
    --------
    >>> class Click(Record):
    ...     page: str
    ...     at: int = 0
    >>> Click("home").replace(at=5)
    Click(page='home', at=5)
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = get_annotations(cls)
        try:
            hints = get_type_hints(cls, include_extras=True)
        except Exception:  # a name that is defined later: who decodes will look it up
            return
        cls.__annotations__ = {name: bounded(hints[name]) for name in own}

    def replace(self, **fields: Any) -> Self:
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **fields)


_META = tuple(name for name in dir(msgspec.Meta) if not name.startswith("_"))


def _meta(*options: Any) -> msgspec.Meta:
    given = zip(_META, options, strict=True)
    return msgspec.Meta(**{name: option for name, option in given if option is not None})


# Record types of scripts travel by value, with their annotations; msgspec's cannot by themselves.
copyreg.pickle(msgspec.Meta, lambda meta: (_meta, tuple(getattr(meta, n) for n in _META)))
