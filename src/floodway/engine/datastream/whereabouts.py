"""Where a thread is: which operator, with which record, at which line of the user's code.

Nobody notes that for each record. It is read from the thread's frames when somebody asks: generated
loops have the record in their variables, and the line tells the operator.
"""

import dis
import reprlib
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

import floodway
from floodway.operators.base import Kernel
from floodway.operators.on_error import ErrorHandler

NOT_THE_USERS = (
    "<floodway",
    "<frozen",
    str(Path(floodway.__file__).parent),
    sysconfig.get_path("purelib"),
    sysconfig.get_path("stdlib"),
)
"""Where the code is that the user has not written: ours, libraries, Python."""
_RECORDS = ("fact", "change", "record")
"""What kernels that are not generated call the row they work on."""


class _Short(reprlib.Repr):
    """Shows values of any size in a few words."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = 60
        self.maxlevel = 3

    def repr_instance(self, x: Any, level: int) -> str:
        """Show a record by its fields, so that a long one need not be written out first."""
        if not isinstance(x, msgspec.Struct):
            return super().repr_instance(x, level)
        if level <= 0:
            return f"{type(x).__name__}(...)"
        names = x.__struct_fields__
        shown = [f"{name}={self.repr1(getattr(x, name), level - 1)}" for name in names[:6]]
        return f"{type(x).__name__}({', '.join(shown + ['...'] * (len(names) > 6))})"


_SHORT = _Short()


def whereabouts(frame: FrameType) -> str:
    """Return operator, record and line, as far as the frames of a thread tell them."""
    parts = [_place(frame)]
    for each in _outwards(frame):
        found = _operator(each)
        if found is not None:
            record = _record(frame)
            parts = [f"{found}", *([f"at the record {record}"] if record else []), *parts]
            break
    return ", ".join(parts)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _operator(frame: FrameType) -> str | None:
    """Return the operator whose code a frame runs, and where it was written."""
    if frame.f_code.co_filename.startswith("<floodway"):
        handler = _handler(frame)
    else:
        kernel = frame.f_locals.get("self")
        handlers = getattr(kernel, "handlers", []) if isinstance(kernel, Kernel) else []
        handler = handlers[0] if handlers else None
    return None if handler is None else handler.where


def _handler(frame: FrameType) -> ErrorHandler | None:
    """Return who is told if the current line of generated code fails.

    Each operator's statements are followed by the line that calls its handler.
    """
    found: dict[int, ErrorHandler] = {}
    for instruction in dis.get_instructions(frame.f_code):
        handler = frame.f_globals.get(str(instruction.argval))
        line = instruction.positions.lineno if instruction.positions else None
        if isinstance(handler, ErrorHandler) and line is not None:
            found[line] = handler
    later = [line for line in found if line >= frame.f_lineno]
    return found[min(later)] if later else None


def _record(frame: FrameType) -> str | None:
    for each in _outwards(frame):
        names = each.f_locals
        generated = each.f_code.co_filename.startswith("<floodway")
        if generated and {"t", "k", "v"} <= names.keys():
            return _shown((names["t"], names["k"], names["v"]))
        if isinstance(names.get("self"), Kernel):
            row = next((names[name] for name in _RECORDS if name in names), None)
            if row is not None:
                return _shown(row)
    return None


def _shown(row: Any) -> str:
    timestamp, key, value = row[:3]
    try:
        keyed = "" if key is None else f" with key {_SHORT.repr(key)}"
        return f"{_SHORT.repr(value)}{keyed} at time {timestamp}"
    except Exception as error:  # a user's own __repr__
        return f"of type {type(value).__name__} ({type(error).__name__} in its __repr__)"


def _place(frame: FrameType) -> str:
    """Return the innermost line of the user's code, or if there is none just the innermost."""
    calls = traceback.extract_stack(frame)
    generated = [i for i, c in enumerate(calls) if c.filename.startswith("<floodway")]
    # Outside of generated code, what is not Floodway's is whatever started the flow.
    inside = calls[generated[-1] :] if generated else calls[-1:]
    own = [c for c in inside if not c.filename.startswith(NOT_THE_USERS)]
    call = own[-1] if own else inside[-1]
    return f"{call.filename}:{call.lineno} in {call.name}"
