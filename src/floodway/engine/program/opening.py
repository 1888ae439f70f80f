"""How a connector is opened: what goes wrong says which operator, and where."""

from collections.abc import Iterator
from contextlib import contextmanager

from floodway.connectors.base import Unavailable
from floodway.core.errors import ConnectorError, FloodwayError
from floodway.operators.base import Operator


@contextmanager
def naming(operator: Operator) -> Iterator[None]:
    """Name the operator in errors raised inside."""
    try:
        yield
    except FloodwayError as error:
        raise error.at(operator.name, operator.place) from None


@contextmanager
def opened(operator: Operator) -> Iterator[None]:
    """Name the operator in errors raised inside; what is not there cannot be opened."""
    try:
        with naming(operator):
            yield
    except Unavailable as error:
        raise ConnectorError(
            f"{operator.name} cannot be opened: {error.reason}",
            remedy="see that what it connects to is there",
            operator=operator.name,
            place=operator.place,
        ) from None
