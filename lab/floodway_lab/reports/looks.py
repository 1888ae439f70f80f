"""What each system looks like in every chart of every page: one colour for a family."""

import re
from zlib import crc32

import msgspec


class Look(msgspec.Struct, frozen=True):
    """A colour that shows on white and on black, how a line is dashed, and how wide it is."""

    colour: str
    dash: str = ""
    wide: float = 1.75


_DASHED, _DOTTED = "7 3", "2 3"

LOOKS: dict[str, Look] = {
    "floodway-dual": Look("#1f7fc4", wide=3),
    "floodway-data": Look("#4a8fd0", _DASHED),
    "floodway-operation": Look("#3f8fae", "9 3 2 3"),
    "floodway-unbatched": Look("#6b8fc4", _DOTTED),
    "loop": Look("#808080"),
    "loops": Look("#8a8580", _DASHED),
    "bytewax": Look("#dd5f0e"),
    "pathway": Look("#0d9a72"),
    "quix": Look("#d0579b"),
    "spark": Look("#b58309"),
    "flink": Look("#8b6bd6"),
}
"""By the name of a system, or of its family."""

_OTHERS = ("#149299", "#a8705a", "#8a8f1c", "#c9545e", "#6f9e3c", "#a566b8")
_MORE = ("", _DASHED, _DOTTED, "9 3 2 3", "4 2")


def look_of(name: str) -> Look:
    """Return the look of a system: always the same, also of one that nobody has thought of.

    >>> look_of("spark").colour == look_of("spark-realtime").colour == look_of("spark@2").colour
    True
    >>> look_of("spark") == look_of("spark-realtime")
    False
    """
    if name in LOOKS:
        return LOOKS[name]
    family = LOOKS.get(re.split("[-@]", name)[0])
    chance = crc32(name.encode(errors="replace"))
    if family is not None:
        return Look(family.colour, _MORE[1 + chance % (len(_MORE) - 1)])
    return Look(_OTHERS[chance % len(_OTHERS)], _MORE[chance // 7 % len(_MORE)])
