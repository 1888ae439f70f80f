"""Functions that read and write dates and times in a format.

A format must be a constant; it is translated once. The letters that are supported are those whose
meaning is the same in every locale and every Spark release.
"""

from typing import Any

from floodway.core.errors import UnsupportedExpressionError
from floodway.core.types import DATE, LONG, NULL, STRING, TIMESTAMP
from floodway.expressions.casts import convert, implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import mismatch
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import dates, formats

define = definer("Dates and times")


def _writer(assembly: Assembly, pattern: Code, text: str) -> str:
    try:
        return assembly.keep("write", formats.write_plan(pattern.value), repr(pattern.value))
    except formats.UnknownFormat as error:
        raise _unknown(pattern, text, error) from None


def _reader(assembly: Assembly, pattern: Code, text: str) -> str:
    try:
        return assembly.keep("read", formats.read_plan(pattern.value), repr(pattern.value))
    except formats.UnknownFormat as error:
        raise _unknown(pattern, text, error) from None


def _unknown(pattern: Code, text: str, error: Exception) -> UnsupportedExpressionError:
    return UnsupportedExpressionError(
        f"the format {pattern.text} in {text} cannot be used: {error}",
        remedy="use yyyy, MM, dd, HH, mm, ss, SSS and quoted text, or a Python function",
    )


def _date_format(assembly: Assembly, codes: list[Code], text: str) -> Code:
    plan, name = _writer(assembly, codes[1], text), assembly.refer(formats.write_moment)
    return assembly.strict(codes[:1], lambda c: f"{name}({c[0].source}, {plan})", STRING, text)


define(
    "date_format",
    "time TIMESTAMP, format TEXT CONSTANT",
    STRING,
    _date_format,
    "the time written in a format such as 'yyyy-MM-dd HH:mm'",
    builder=True,
)


def _from_unixtime(assembly: Assembly, codes: list[Code], text: str) -> Code:
    moment = convert(assembly, codes[0], TIMESTAMP)
    if len(codes) > 1:
        return _date_format(assembly, [moment, codes[1]], text)
    pattern = assembly.constant("yyyy-MM-dd HH:mm:ss", STRING, text)
    return _date_format(assembly, [moment, pattern], text)


define(
    "from_unixtime",
    "seconds BIGINT, [format TEXT CONSTANT]",
    STRING,
    _from_unixtime,
    "the moment that many seconds after 1970, written in a format",
    builder=True,
)


def _read(assembly: Assembly, code: Code, pattern: Code, text: str, *, lenient: bool) -> Code:
    subject = implied(assembly, code, STRING)
    if subject is None or code.type not in (STRING, NULL):
        raise mismatch(text, [code, pattern], "read a STRING, or leave the format out")
    plan, name = _reader(assembly, pattern, text), assembly.refer(formats.read_moment)
    return assembly.strict(
        [subject],
        lambda c: f"{name}({c[0].source}, {plan}, {lenient})",
        TIMESTAMP,
        text,
        nullable=lenient,
    )


def _to(target: Any, *, lenient: bool = False) -> Any:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        if len(codes) == 1 or codes[0].type in (DATE, TIMESTAMP):
            code = codes[0]
            if code.type not in (STRING, DATE, TIMESTAMP, NULL):
                raise mismatch(text, codes, "use a STRING, a DATE or a TIMESTAMP")
            return assembly.renamed(convert(assembly, code, target, lenient=lenient), text)
        moment = _read(assembly, codes[0], codes[1], text, lenient=lenient)
        return assembly.renamed(convert(assembly, moment, target), text)

    return build


define(
    "to_date",
    "value ANY, [format TEXT CONSTANT]",
    DATE,
    _to(DATE),
    "the date that a text names, in a format if one is given",
    builder=True,
)
define(
    "to_timestamp",
    "value ANY, [format TEXT CONSTANT]",
    TIMESTAMP,
    _to(TIMESTAMP),
    "the moment that a text names, in a format if one is given",
    builder=True,
)
define(
    "try_to_timestamp",
    "value ANY, [format TEXT CONSTANT]",
    TIMESTAMP,
    _to(TIMESTAMP, lenient=True),
    "the moment that a text names, or NULL",
    builder=True,
)


def _unix_timestamp(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if code.type in (STRING, NULL):
        default = assembly.constant("yyyy-MM-dd HH:mm:ss", STRING, text)
        pattern = codes[1] if len(codes) > 1 else default
        moment = _read(assembly, code, pattern, text, lenient=False)
    elif code.type in (DATE, TIMESTAMP):
        moment = convert(assembly, code, TIMESTAMP)
    else:
        raise mismatch(text, codes, "use a STRING, a DATE or a TIMESTAMP")
    return assembly.call(dates.whole_seconds, [moment], LONG, text)


define(
    "unix_timestamp, to_unix_timestamp",
    "value ANY, [format TEXT CONSTANT]",
    LONG,
    _unix_timestamp,
    "the seconds from 1970 to a time; a text is read as 'yyyy-MM-dd HH:mm:ss' or in a format",
    builder=True,
)
