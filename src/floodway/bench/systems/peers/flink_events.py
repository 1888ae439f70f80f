"""What is needed of the events, for both Flink systems; its workers import this as well."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

SEEN: dict[str, dict[str, type]] = {
    "ads": {"ad_id": str, "event_type": str, "event_time": int},
    "mean": {"time": int, "geo": int, "seconds": int},
    "join": {"time": int, "kind": str, "item": int, "price": int},
    "words": {"time": int, "text": str},
    "windowed-words": {"time": int, "text": str},
    "grep": {"time": int, "id": int, "text": str},
    "sessions": {"time": int, "user": int},
    "road": {"time": int, "segment": int, "speed": int},
}
"""The fields by workload."""


@cache
def decoder(case: str) -> Callable[[bytes], list[Any]]:
    """Return what decodes the lines of a workload."""
    return msgspec.json.Decoder(msgspec.defstruct("Seen", SEEN[case].items())).decode_lines
