"""String helpers, where Spark counts, pads or encodes in its own way."""

import base64
import binascii
import urllib.parse

from floodway.expressions.runtime.failures import LONGEST_TEXT, fail, fitting, out_of_bounds

_SOUNDEX = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "01230127022455012623017202", strict=True))
_MOST_STEPS = 2**24  # of a distance between two texts, about two seconds


def substring(text: str, position: int, length: int = 2**31 - 1) -> str:
    """Return a part; position 1 is the first character, -1 the last."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    return text[max(start, 0) : max(start + length, 0)]


def left(text: str, count: int) -> str:
    """Return the first characters."""
    return text[:count] if count > 0 else ""


def right(text: str, count: int) -> str:
    """Return the last characters."""
    return text[-count:] if count > 0 else ""


def join_present(separator: str | None, *parts: str | list[str | None] | None) -> str | None:
    """Join what is not None, arrays among it."""
    if separator is None:
        return None
    present: list[str] = []
    for part in parts:
        if isinstance(part, list):
            present += [item for item in part if item is not None]
        elif part is not None:
            present.append(part)
    return joined(present, separator, "concat_ws")


def joined(parts: list[str], separator: str, function: str) -> str:
    """Join texts whose number and separator may both come from a record."""
    fitting(len(parts) * len(separator), LONGEST_TEXT, function)
    return separator.join(parts)


def replace(text: str, search: str, replacement: str = "") -> str:
    """Replace every occurrence; there is none of an empty text."""
    if not search:
        return text
    if len(text) * len(replacement) > LONGEST_TEXT:
        fitting(text.count(search) * len(replacement), LONGEST_TEXT, "replace")
    return text.replace(search, replacement)


def translate(text: str, source: str, target: str) -> str:
    """Replace characters one by one; the first mention of a character counts."""
    table: dict[int, str] = {}
    for i, character in enumerate(source):
        table.setdefault(ord(character), target[i] if i < len(target) else "")
    return text.translate(table)


def repeat(text: str, times: int) -> str:
    """Return the text several times over."""
    fitting(len(text) * times, LONGEST_TEXT, "repeat")
    return text * times


def space(count: int) -> str:
    """Return that many spaces."""
    return " " * fitting(count, LONGEST_TEXT, "space")


def pad_left(text: str, length: int, pad: str = " ") -> str:
    """Fill up on the left, or cut off on the right."""
    missing = fitting(length, LONGEST_TEXT, "lpad") - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    return (pad * (missing // len(pad) + 1))[:missing] + text


def pad_right(text: str, length: int, pad: str = " ") -> str:
    """Fill up, or cut off, on the right."""
    missing = fitting(length, LONGEST_TEXT, "rpad") - len(text)
    if missing <= 0 or not pad:
        return text[: max(length, 0)]
    return text + (pad * (missing // len(pad) + 1))[:missing]


def locate(search: str, text: str, start: int) -> int:
    """Return where a text occurs from a start on, or 0."""
    if start < 1:
        return 0
    return text.find(search, start - 1) + 1 if search else 1


def initcap(text: str) -> str:
    """Put a capital letter first in each word; words are separated by spaces."""
    return " ".join(word[:1].upper() + word[1:] for word in text.lower().split(" "))


def split_part(text: str, delimiter: str, part: int) -> str:
    """Return one of the parts between delimiters."""
    if part == 0:
        fail("part 0 of split_part does not exist", "count parts from 1, or from -1 at the end")
    parts = text.split(delimiter) if delimiter else [text]
    index = part - 1 if part > 0 else len(parts) + part
    return parts[index] if 0 <= index < len(parts) else ""


def substring_index(text: str, delimiter: str, count: int) -> str:
    """Return what is before the count-th delimiter from the left, or after it from the right."""
    if not delimiter or count == 0:
        return ""
    at = -1 if count > 0 else len(text)
    for _ in range(abs(count)):
        if count > 0:
            at = text.find(delimiter, at + 1)
        else:
            # An occurrence may overlap the one found before.
            at = text.rfind(delimiter, 0, at - 1 + len(delimiter)) if at > 0 else -1
        if at < 0:
            return text
    return text[:at] if count > 0 else text[at + len(delimiter) :]


def overlay(text: str, replacement: str, position: int, length: int = -1) -> str:
    """Put a replacement over a text."""
    size = length if length >= 0 else len(replacement)
    return substring(text, 1, position - 1) + replacement + substring(text, position + size)


def character(code: int) -> str:
    """Return the character of the lowest eight bits; nothing for a negative code."""
    return chr(code & 0xFF) if code >= 0 else ""


def levenshtein(one: str, two: str) -> int:
    """Return the edit distance."""
    if len(one) * len(two) > _MOST_STEPS:
        fail(
            f"levenshtein of texts of {len(one)} and {len(two)} characters takes too long",
            "compare shorter texts, e.g. left(text, 1000)",
        )
    row = list(range(len(two) + 1))
    for i, a in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(two, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
    return row[-1]


def soundex(text: str) -> str:
    """Return the Soundex code; a text that does not begin with a letter is left alone."""
    if not text or not ("A" <= (first := text[0].upper()) <= "Z") or not text[0].isascii():
        return text
    code, last = first, _SOUNDEX[first]
    for letter in text[1:]:
        digit = _SOUNDEX.get(letter.upper(), "0") if letter.isascii() and letter.isalpha() else None
        if digit is None:
            last = "0"
            continue
        if digit == "7":
            continue
        if digit not in ("0", last):
            code += digit
            if len(code) == 4:
                break
        last = digit
    return code.ljust(4, "0")


def find_in_set(text: str, listed: str) -> int:
    """Return the position in a list separated by commas."""
    if "," in text:
        return 0
    items = listed.split(",")
    return items.index(text) + 1 if text in items else 0


def mask(text: str) -> str:
    """Replace letters and digits."""
    return "".join(
        "X" if c.isupper() else "x" if c.islower() else "n" if c.isdecimal() else c for c in text
    )


def url_encode(text: str) -> str:
    """Encode as a form field."""
    return urllib.parse.quote_plus(text, safe="*-._").replace("~", "%7E")


def luhn_check(digits: str) -> bool:
    """Whether a number's check digit is right by Luhn's rule."""
    if not digits or not (digits.isascii() and digits.isdigit()):
        return False
    total = 0
    for i, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * 2 if i % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def unhex(digits: str) -> bytes | None:
    """Return the bytes, or None where a character is not hexadecimal."""
    try:
        return binascii.unhexlify(digits if len(digits) % 2 == 0 else "0" + digits)
    except ValueError:
        return None


def to_base64(data: bytes) -> str:
    """Return the bytes in Base64, on one line."""
    return base64.b64encode(data).decode()


def from_base64(text: str) -> bytes:
    """Return the bytes of Base64 text."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        fail(f"{text!r} is not Base64", "check the text before, or use a Python function")


def elt(number: int, choices: tuple[str | None, ...]) -> str | None:
    """Return the choice of that number."""
    if not 1 <= number <= len(choices):
        out_of_bounds(number, len(choices), "elt")
    return choices[number - 1]
