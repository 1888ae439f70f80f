"""What all behavioural tests share."""

import pytest

from tests.engines import ENGINES, Engine


@pytest.fixture(scope="session", params=list(ENGINES))  # one for all examples of a property
def engine(request: pytest.FixtureRequest) -> Engine:
    """An engine: a factory for something with the reference driver's interface."""
    return ENGINES[request.param]
