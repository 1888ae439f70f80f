"""Functions of strings."""

from floodway.core.types import (
    BOOLEAN,
    INTEGER,
    STRING,
    ArrayType,
    DataType,
)
from floodway.expressions.casts import implied
from floodway.expressions.code import Assembly, Code
from floodway.expressions.coercion import mismatch
from floodway.expressions.functions.registry import definer
from floodway.expressions.runtime import strings

define = definer("Strings")

_LENGTH = (0, 2**31 - 1)

define("upper, ucase", "text STRING", STRING, "{0}.upper()", "the text in capital letters")
define("lower, lcase", "text STRING", STRING, "{0}.lower()", "the text in small letters")
define(
    "length, char_length, character_length, len",
    "text STRING",
    INTEGER,
    "len({0})",
    "the number of characters",
    bounds=_LENGTH,
)
define(
    "octet_length",
    "text STRING",
    INTEGER,
    "len({0}.encode())",
    "the number of bytes in UTF-8",
    bounds=_LENGTH,
)
define(
    "bit_length",
    "text STRING",
    INTEGER,
    "(len({0}.encode()) * 8)",
    "the number of bits in UTF-8",
    bounds=_LENGTH,
)


def _trimmer(method: str) -> object:
    def build(assembly: Assembly, codes: list[Code], text: str) -> Code:
        # As in Spark, the characters come first where there are two arguments.
        subject = codes[-1]
        if len(codes) == 1:
            return assembly.strict(
                [subject], lambda c: f"{c[0].source}.{method}(' ')", STRING, text
            )
        return assembly.strict(
            [subject, codes[0]], lambda c: f"{c[0].source}.{method}({c[1].source})", STRING, text
        )

    return build


define(
    "trim",
    "[characters STRING], text STRING",
    STRING,
    _trimmer("strip"),
    "the text without spaces, or the given characters, at both ends",
    builder=True,
)
define(
    "ltrim",
    "[characters STRING], text STRING",
    STRING,
    _trimmer("lstrip"),
    "the text without spaces, or the given characters, at its start",
    builder=True,
)
define(
    "rtrim",
    "[characters STRING], text STRING",
    STRING,
    _trimmer("rstrip"),
    "the text without spaces, or the given characters, at its end",
    builder=True,
)


def _btrim(assembly: Assembly, codes: list[Code], text: str) -> Code:
    body = "{0}.strip(' ')" if len(codes) == 1 else "{0}.strip({1})"
    return assembly.strict(
        codes, lambda given: body.format(*(code.source for code in given)), STRING, text
    )


define(
    "btrim",
    "text STRING, [characters STRING]",
    STRING,
    _btrim,
    "the text without spaces, or the given characters, at both ends",
    builder=True,
)


def _substring(assembly: Assembly, codes: list[Code], text: str) -> Code:
    """Make a slice of a constant start and length."""
    position = codes[1].value if codes[1].constant else None
    size = codes[2].value if len(codes) == 3 and codes[2].constant else None
    if position is not None and position >= 0 and (len(codes) == 2 or size is not None):
        start = max(position - 1, 0)
        # A position of 0 counts as 1 but the length is then counted from there as well.
        stop = "" if size is None else str(max(start + size, 0))
        return assembly.strict(
            [codes[0]], lambda c: f"{c[0].source}[{start or ''}:{stop}]", STRING, text
        )
    return assembly.call(strings.substring, codes, STRING, text)


define(
    "substring, substr",
    "text STRING, position INT, [length INT]",
    STRING,
    _substring,
    "the part from a position on; positions count from 1, or from the end if negative",
    builder=True,
)
define("left", "text STRING, count INT", STRING, strings.left, "the first characters")
define("right", "text STRING, count INT", STRING, strings.right, "the last characters")


def _concat(assembly: Assembly, codes: list[Code], text: str) -> Code:
    if any(isinstance(code.type, ArrayType) for code in codes):
        return _concat_arrays(assembly, codes, text)
    given = []
    for code in codes:
        converted = implied(assembly, code, STRING)
        if converted is None:
            raise mismatch(text, codes, "cast what is not a string: CAST(... AS STRING)")
        given.append(converted)
    return assembly.strict(
        given, lambda c: f"({' + '.join(code.source for code in c)})", STRING, text
    )


def _concat_arrays(assembly: Assembly, codes: list[Code], text: str) -> Code:
    from floodway.expressions.functions.arrays import same_arrays

    given, target = same_arrays(assembly, codes, text)
    return assembly.strict(
        given, lambda c: f"[{', '.join('*' + code.source for code in c)}]", target, text
    )


define(
    "concat",
    "part ANY...",
    STRING,
    _concat,
    "the parts, strings or arrays, one after the other; also `a || b`",
    builder=True,
)


def _concat_ws(assembly: Assembly, codes: list[Code], text: str) -> Code:
    separator, *parts = codes
    given = []
    for part in parts:
        target: DataType = ArrayType(STRING) if isinstance(part.type, ArrayType) else STRING
        converted = implied(assembly, part, target)
        if converted is None:
            raise mismatch(text, codes, "use strings and arrays of strings")
        given.append(converted)
    name = assembly.refer(strings.join_present)
    rest = "".join(f", {code.source}" for code in given)
    sep = implied(assembly, separator, STRING)
    if sep is None:
        raise mismatch(text, codes, "use a string as the separator")
    if sep.is_null:
        return assembly.null(STRING, text)
    code = Code(f"{name}({sep.source}{rest})", STRING, sep.nullable, text)
    return assembly.folded(code, [sep, *given])


define(
    "concat_ws",
    "separator ANY, part ANY...",
    STRING,
    _concat_ws,
    "the parts that are not null, strings or arrays of them, with a separator between",
    builder=True,
)
define(
    "replace",
    "text STRING, search STRING, [replacement STRING]",
    STRING,
    strings.replace,
    "the text with every occurrence replaced, or removed",
)
define(
    "translate",
    "text STRING, from STRING, to STRING",
    STRING,
    strings.translate,
    "the text with each character of `from` replaced by its counterpart in `to`",
)


def _reverse(assembly: Assembly, codes: list[Code], text: str) -> Code:
    code = codes[0]
    if not isinstance(code.type, ArrayType):
        converted = implied(assembly, code, STRING)
        if converted is None:
            raise mismatch(text, codes, "use a string or an array")
        code = converted
    return assembly.strict([code], lambda c: f"{c[0].source}[::-1]", code.type, text)


define(
    "reverse",
    "value ANY",
    STRING,
    _reverse,
    "the string or the array from its end to its start",
    builder=True,
)
define("repeat", "text STRING, times INT", STRING, strings.repeat, "the text several times over")
define("space", "count INT", STRING, strings.space, "that many spaces")
define(
    "lpad",
    "text STRING, length INT, [pad STRING]",
    STRING,
    strings.pad_left,
    "the text filled up on the left, or cut, to a length",
)
define(
    "rpad",
    "text STRING, length INT, [pad STRING]",
    STRING,
    strings.pad_right,
    "the text filled up on the right, or cut, to a length",
)
define(
    "instr",
    "text STRING, search STRING",
    INTEGER,
    "({0}.find({1}) + 1)",
    "where the search text first occurs, counted from 1, or 0",
    bounds=_LENGTH,
)


def _locate(assembly: Assembly, codes: list[Code], text: str) -> Code:
    if len(codes) == 2:
        return assembly.strict(
            [codes[1], codes[0]],
            lambda c: f"({c[0].source}.find({c[1].source}) + 1)",
            INTEGER,
            text,
        )
    start = codes[2]
    if start.is_null:
        return assembly.constant(0, INTEGER, text)
    if not start.nullable:
        return assembly.call(strings.locate, codes, INTEGER, text)
    # In Spark a start that is not known means 0, whatever the texts are.
    test, bound = assembly.bind(start)
    found = assembly.call(strings.locate, [codes[0], codes[1], bound], INTEGER, text)
    return Code(f"(0 if {test} else {found.source})", INTEGER, found.nullable, text)


define(
    "locate, position",
    "search STRING, text STRING, [start INT]",
    INTEGER,
    _locate,
    "where the search text occurs from a start on, counted from 1, or 0",
    builder=True,
)
define("initcap", "text STRING", STRING, strings.initcap, "each word with a capital letter first")
define(
    "split_part",
    "text STRING, delimiter STRING, part INT",
    STRING,
    strings.split_part,
    "the part of that number, from 1 or from the end if negative; empty if there is none",
)
define(
    "substring_index",
    "text STRING, delimiter STRING, count INT",
    STRING,
    strings.substring_index,
    "what stands before the count-th delimiter, or after it if the count is negative",
)
define(
    "overlay",
    "text STRING, replacement STRING, position INT, [length INT]",
    STRING,
    strings.overlay,
    "the text with a replacement put over it at a position",
)
define(
    "startswith",
    "text STRING, prefix STRING",
    BOOLEAN,
    "{0}.startswith({1})",
    "whether it starts so",
)
define("endswith", "text STRING, suffix STRING", BOOLEAN, "{0}.endswith({1})", "whether it ends so")
define("contains", "text STRING, part STRING", BOOLEAN, "({1} in {0})", "whether the part occurs")
define(
    "ascii",
    "text STRING",
    INTEGER,
    "(ord({0}[0]) if {0} else 0)",
    "the code point of the first character",
)
define("char, chr", "code BIGINT", STRING, strings.character, "the character of a code, modulo 256")
define(
    "levenshtein",
    "left STRING, right STRING",
    INTEGER,
    strings.levenshtein,
    "the number of edits between two texts",
)
define("soundex", "text STRING", STRING, strings.soundex, "the Soundex code of a name")
define(
    "find_in_set",
    "text STRING, list STRING",
    INTEGER,
    strings.find_in_set,
    "the position of a text in a list separated by commas, or 0",
)
define(
    "mask",
    "text STRICT STRING",
    STRING,
    strings.mask,
    "the text with X, x and n for capital letters, small letters and digits",
)
define(
    "luhn_check", "digits STRING", BOOLEAN, strings.luhn_check, "whether the check digit is right"
)
