"""Client libraries that only some need, and secrets that nobody should see."""

import importlib
import logging
import re
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from floodway.core.errors import ConnectorError

_logger = logging.getLogger(__name__)

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


def warn_of_plain_secrets(connector: Any, options: Iterable[str]) -> None:
    """Say that secrets are part of a flow, if some are."""
    names = ", ".join(sorted(options))
    if names:
        _logger.warning(
            "%r has secrets as plain text (%s): they travel with the flow to every task. Refer to "
            "them instead, with floodway.secret.env(...) or floodway.secret.file(...)",
            connector,
            names,
        )
