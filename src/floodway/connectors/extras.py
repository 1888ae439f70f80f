"""Client libraries that only some need, and secrets that nobody should see."""

import importlib
import re
from collections.abc import Iterable
from types import ModuleType

from floodway.core.errors import ConnectorError

_SECRET = re.compile(r"password|secret|token|credential|jaas|private|key\.pem|oauth", re.IGNORECASE)


def load_extra(module: str, extra: str) -> ModuleType:
    """Return a module of an extra; say how to install it if it is missing.

    Examples
    --------
    >>> load_extra("no_such_client", "kafka")
    Traceback (most recent call last):
    floodway.core.errors.ConnectorError: the library no_such_client is not installed
      remedy: pip install floodway[kafka]
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ConnectorError(
            f"the library {module} is not installed", remedy=f"pip install floodway[{extra}]"
        ) from None


def is_secret(setting: str) -> bool:
    """Return whether the value of a setting of that name must not be shown.

    >>> is_secret("sasl.password"), is_secret("client.id")
    (True, False)
    """
    return _SECRET.search(setting) is not None


def hide(text: str, secrets: Iterable[str | None]) -> str:
    """Return a text without any of the secrets.

    >>> hide("no entry for jane:123", ["123", None])
    'no entry for jane:***'
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text
