"""Secrets by reference: a flow says where a password is, and not what it is.

A reference is looked up where a connector is opened, in the process of the task. The secret itself
is in no plan, and so in nothing that travels, is stored or shown.

>>> import floodway as fw
>>> fw.secret.env("KAFKA_PASSWORD")
secret.env('KAFKA_PASSWORD')
"""

import os
import socket
from typing import Any, Literal, NoReturn

import msgspec

from floodway.core.errors import ConnectorError, OptionError


class Secret(msgspec.Struct, frozen=True):
    """A reference to a secret; made by `env` and `file`."""

    kind: Literal["env", "file"]
    name: str

    def reveal(self) -> str:
        """Return the secret, for whoever needs it now and keeps it to himself."""
        found = self._from_environment() if self.kind == "env" else self._from_file()
        if not found:
            raise ConnectorError(
                f"{self!r} is empty on {socket.gethostname()}", remedy="put the secret there"
            )
        return found

    def _from_environment(self) -> str:
        found = os.environ.get(self.name)
        if found is None:
            raise ConnectorError(
                f"the environment variable {self.name} is not set on {socket.gethostname()}, in "
                "the process that opens the connector",
                remedy="set it where the driver and where Spark's executors are started, before "
                "they are; or use secret.file with a path that every host has",
            )
        return found

    def _from_file(self) -> str:
        try:
            with open(self.name, encoding="utf-8") as file:
                return file.read().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConnectorError(
                f"the secret in {self.name} cannot be read on {socket.gethostname()}: {why}",
                remedy="put the file on every host where the flow runs, readable for its user",
            ) from None

    def __repr__(self) -> str:
        return f"secret.{self.kind}({self.name!r})"

    def __format__(self, _spec: str) -> NoReturn:
        raise OptionError(
            f"{self!r} cannot be made part of a text: it is looked up only where it is needed",
            remedy="pass it as an option of its own, such as password=, or refer to the whole text",
        )


def env(name: str) -> Secret:
    """Refer to an environment variable of the process that opens the connector.

    Parameters
    ----------
    name
        The variable's name. It has to be set in the driver, which checks connectors, and wherever
        Spark starts its executors.

    Examples
    --------
    >>> import os
    >>> os.environ["EXAMPLE_PASSWORD"] = "12345"
    >>> env("EXAMPLE_PASSWORD"), env("EXAMPLE_PASSWORD").reveal()
    (secret.env('EXAMPLE_PASSWORD'), '12345')
    """
    return Secret("env", _named("secret.env", name))


def file(path: str | os.PathLike[str]) -> Secret:
    """Refer to a file on the host that opens the connector; a line end at its end does not count.

    Parameters
    ----------
    path
        The file's path, the same on every host. It is read anew each time the connector is opened.

    Examples
    --------
    >>> file("/run/secrets/kafka")
    secret.file('/run/secrets/kafka')
    """
    return Secret("file", _named("secret.file", os.fspath(path)))


def revealed(value: Any) -> Any:
    """Return what a reference refers to, and anything else as it is."""
    return value.reveal() if isinstance(value, Secret) else value


def _named(function: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise OptionError(
            f"{function} takes a name, and got {type(name).__name__ if name else 'none'}",
            remedy="name where the secret is, e.g. secret.env('KAFKA_PASSWORD')",
        )
    return name
