"""Fixtures of the tests of the server."""

import pytest
from serving_helper import Echo, serving_


@pytest.fixture
def echo():
    return Echo()


@pytest.fixture
def server(echo):
    with serving_(echo) as server:
        yield server
