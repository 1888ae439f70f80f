"""JSON text: paths, and values written back as Spark's JSON library writes them.

Spark's reader is generous in some ways (single quotes, control characters, whatever follows the
value) and strict in others; an object may have a key twice, so objects are kept as pairs.
"""

import json
import math
import re
from typing import Any

from floodway.expressions.runtime.numbers import double_text

Path = tuple[str | int, ...]
_STEP = re.compile(r"\.([^.\[*?']+)|\[(\d+)\]|\['([^'*?]+)'\]")
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_QUOTED = re.compile(r'["\\\x00-\x1f]')
_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_WHITE = " \t\n\r"


class Pairs(list[tuple[str, Any]]):
    """An object: its keys and values in the order in which they are written."""


def _no_constant(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_constant, object_pairs_hook=Pairs)


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


def read_json(text: str) -> Any:
    """Return the first value in a text, or raise ValueError."""
    stripped = text.lstrip(_WHITE)
    try:
        return _read(stripped)
    except ValueError:
        if "'" not in stripped:
            raise
        return _read(_TEXT.sub(_double_quoted, stripped))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _read(text: str) -> Any:
    value, end = _DECODER.raw_decode(text)
    if not isinstance(value, str | list) and end < len(text) and text[end] not in _WHITE:
        raise ValueError("a number or a word must end with white space")
    return value


def _double_quoted(match: re.Match[str]) -> str:
    quoted = match.group()
    inner = quoted[1:-1].replace("\\'", "'")
    return f'"{inner}"' if quoted[0] == '"' else '"' + re.sub(r'(?<!\\)"', r"\"", inner) + '"'


def json_at(text: str, path: Path) -> str | None:
    """Return what is at a path, as text: a string bare, anything else as JSON."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    if not path:
        return value if isinstance(value, str) else write_json(value)
    found = _walk(value, path)
    return found if found is None or isinstance(found, str) else write_json(found)


def _walk(value: Any, path: Path) -> Any:
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(value, Pairs):
        # Of a key that occurs twice, the first one counts that has something there.
        candidates = (_walk(item, rest) for key, item in value if key == step)
        return next((found for found in candidates if found is not None), None)
    if isinstance(step, int) and isinstance(value, list) and step < len(value):
        return _walk(value[step], rest)
    return None


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
        case Pairs():
            return "{" + ",".join(f"{write_json(k)}:{write_json(v)}" for k, v in value) + "}"
        case list():
            return "[" + ",".join(map(write_json, value)) + "]"
        case _:
            return str(value)


def json_length(text: str) -> int | None:
    """Return the length of an array."""
    try:
        value = read_json(text)
    except ValueError:
        return None
    return len(value) if isinstance(value, list) and not isinstance(value, Pairs) else None


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
