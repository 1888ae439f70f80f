"""All functions, one module per topic; importing them fills the table."""

from floodway.expressions.functions import (
    arrays,
    conditional,
    datetimes,
    encodings,
    formats,
    generators,
    hashes,
    higher_order,
    json,
    maps,
    maths,
    refused,
    regexes,
    strings,
    types,
)
from floodway.expressions.functions.registry import FUNCTIONS, Function

__all__ = [
    "FUNCTIONS",
    "Function",
    "arrays",
    "conditional",
    "datetimes",
    "encodings",
    "formats",
    "generators",
    "hashes",
    "higher_order",
    "json",
    "maps",
    "maths",
    "refused",
    "regexes",
    "strings",
    "types",
]
