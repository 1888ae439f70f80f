"""How keys look outside, where they are bytes."""

from collections.abc import Callable
from typing import Any

import msgspec

from floodway.connectors.encoding import Format
from floodway.connectors.formats import Text
from floodway.core.schema import Schema

_ANY = Schema.of(object)


def key_encoder(form: Format) -> Callable[[Any], bytes | None]:
    """Return the function from a key to bytes; no key stays None.

    In a text, what is no text itself is JSON: a key of several columns is an array.

    Examples
    --------
    >>> encode = key_encoder(Text())
    >>> encode("gate"), encode(7), encode(("gate", 7)), encode(None)
    (b'gate', b'7', b'["gate",7]', None)
    """
    encode = form.encoder(_ANY)
    if isinstance(form, Text):
        return lambda key: _text(key, encode)
    return lambda key: None if key is None else encode(key)


def key_decoder(form: Format) -> Callable[[Any], Any]:
    """Return the function from bytes to a key; arrays become tuples, since keys are hashed.

    An object is no key: it raises, as what cannot be decoded does.

    Examples
    --------
    >>> from floodway.connectors.formats import Json
    >>> decode = key_decoder(Json())
    >>> decode(b'["gate", 7]'), decode(None)
    (('gate', 7), None)
    """
    decode = form.decoder(_ANY)
    if isinstance(form, Text):
        return lambda raw: None if raw is None else decode(raw)
    return lambda raw: None if raw is None else _hashable(decode(raw))


def _text(key: Any, encode: Callable[[Any], bytes]) -> bytes | None:
    if isinstance(key, str):
        return encode(key)
    return None if key is None else msgspec.json.encode(key)


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        raise TypeError("an object cannot be a key")
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
