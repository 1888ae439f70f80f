"""JSON text: paths, and values written back as Spark's JSON library writes them."""

import json
import math
import re
from typing import Any

from floodway.expressions.runtime.numbers import double_text

Path = tuple[str | int, ...]
_STEP = re.compile(r"\.([^.\[*?']+)|\[(\d+)\]|\['([^'*?]+)'\]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_QUOTED = re.compile(r'["\\\x00-\x1f]')


def read_path(path: str) -> Path | None:
    """Return the steps of a path, or None if it is not a plain one.

    >>> read_path("$.a[0].b")
    ('a', 0, 'b')
    """
    if not path.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        name, index, quoted = found.groups()
        steps.append(int(index) if index is not None else name or quoted)
        at = found.end()
    return tuple(steps)


def json_at(text: str, path: Path) -> str | None:
    """Return what is at a path, as text: a string bare, anything else as JSON."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return None
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return None
    if value is None:
        return None
    return value if isinstance(value, str) else write_json(value)


def write_json(value: Any) -> str:
    """Return a value as compact JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_QUOTED.sub(_escape, value)}"'
        case float():
            return f'"{double_text(value)}"' if not math.isfinite(value) else double_text(value)
        case dict():
            inner = ",".join(f"{write_json(k)}:{write_json(v)}" for k, v in value.items())
            return "{" + inner + "}"
        case list():
            return "[" + ",".join(map(write_json, value)) + "]"
        case _:
            return str(value)


def json_length(text: str) -> int | None:
    """Return the length of an array."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return None
    return len(value) if isinstance(value, list) else None


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def _no_constant(name: str) -> Any:
    raise ValueError(name)
