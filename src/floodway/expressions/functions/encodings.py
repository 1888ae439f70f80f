"""Functions between text and bytes, and between numbers and digits."""

from floodway.core.types import BINARY, NULL, STRING
from floodway.expressions.casts import implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import INTEGRAL, mismatch
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import strings

define = definer("Strings")

define("url_encode", "text STRING", STRING, strings.url_encode, "the text as part of a URL")


def _hex(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if code.type in INTEGRAL:
        return assembly.strict(
            [code], lambda c: f"('%X' % ({c[0].source} & 0xFFFFFFFFFFFFFFFF))", STRING, text
        )
    if code.type in (BINARY,):
        return assembly.strict([code], lambda c: f"{c[0].source}.hex().upper()", STRING, text)
    if code.type not in (STRING, NULL):
        raise mismatch(text, codes, "use a BIGINT, a STRING or a BINARY")
    given = implied(assembly, code, STRING)
    assert given is not None
    return assembly.strict([given], lambda c: f"{c[0].source}.encode().hex().upper()", STRING, text)


define(
    "hex", "value ANY", STRING, _hex, "a BIGINT, a string or a binary in hexadecimal", builder=True
)
define(
    "unhex",
    "digits STRING",
    BINARY,
    strings.unhex,
    "the bytes of hexadecimal digits",
    nullable=True,
)
define(
    "bin", "number BIGINT", STRING, "format({0} & 0xFFFFFFFFFFFFFFFF, 'b')", "a BIGINT in binary"
)
define("base64", "bytes BINARY", STRING, strings.to_base64, "the bytes in Base64")
define("unbase64", "text STRING", BINARY, strings.from_base64, "the bytes of Base64 text")


def _elt(assembly: Assembly, codes: list[Code], text: str) -> Code:
    number, *choices = codes
    name = assembly.refer(strings.elt)
    listed = ", ".join(code.source for code in choices)
    return assembly.strict(
        [number],
        lambda c: f"{name}({c[0].source}, ({listed},))",
        STRING,
        text,
        nullable=True,
        fold=False,
    )


define(
    "elt",
    "number INT, choice STRING...",
    STRING,
    _elt,
    "the choice of that number, from 1",
    builder=True,
)
