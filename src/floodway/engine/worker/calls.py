"""Where a thread is: which operator, with which record, at which line of the user's code.

Nobody notes that for each record. It is read from the thread's frames when somebody asks: generated
loops have the record in their variables, and the line tells the operator.
"""

import dis
import reprlib
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

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


class CallFrame(NamedTuple):
    """A frame as it was at one moment: the thread may go on while somebody thinks about it."""

    code: CodeType
    line: int
    names: dict[str, Any]
    constants: dict[str, Any]

    @property
    def generated(self) -> bool:
        """Whether it runs code that was written for this flow."""
        return self.code.co_filename.startswith("<floodway")


def whereabouts(frame: FrameType) -> str:
    """Return operator, record and line, as far as the frames of a thread tell them."""
    frames = list(_outwards(frame))  # all at once, before anything that takes time
    parts = [_place(frames)]
    for each in frames:
        found = _operator(each)
        if found is not None:
            record = _record(frames)
            parts = [f"{found}", *([f"at the record {record}"] if record else []), *parts]
            break
    return ", ".join(parts)


def _outwards(frame: FrameType | None) -> Iterator[CallFrame]:
    while frame is not None:
        yield CallFrame(frame.f_code, frame.f_lineno, dict(frame.f_locals), frame.f_globals)
        frame = frame.f_back


def _operator(frame: CallFrame) -> str | None:
    """Return the operator whose code a frame runs, and where it was written."""
    if frame.generated:
        handler = _handler(frame)
    else:
        kernel = frame.names.get("self")
        handlers = kernel.handlers if isinstance(kernel, Kernel) else ()
        handler = handlers[0] if handlers else None
    return None if handler is None else handler.where


def _handler(frame: CallFrame) -> ErrorHandler | None:
    """Return who is told if the current line of generated code fails.

    Each operator's statements are followed by the line that calls its handler.
    """
    found: dict[int, ErrorHandler] = {}
    for instruction in dis.get_instructions(frame.code):
        handler = frame.constants.get(str(instruction.argval))
        line = instruction.positions.lineno if instruction.positions else None
        if isinstance(handler, ErrorHandler) and line is not None:
            found[line] = handler
    later = [line for line in found if line >= frame.line]
    return found[min(later)] if later else None


def _record(frames: Sequence[CallFrame]) -> str | None:
    for frame in frames:
        names = frame.names
        if frame.generated and {"t", "k", "v"} <= names.keys():
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


def _place(frames: Sequence[CallFrame]) -> str:
    """Return the innermost line of the user's code, or if there is none just the innermost."""
    generated = next((i for i, frame in enumerate(frames) if frame.generated), None)
    # Outside of generated code, what is not Floodway's is whatever started the flow.
    inside = frames[:1] if generated is None else frames[: generated + 1]
    own = (f for f in inside if not f.code.co_filename.startswith(NOT_THE_USERS))
    frame = next(own, inside[0])
    return f"{frame.code.co_filename}:{frame.line} in {frame.code.co_name}"
