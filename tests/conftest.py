"""What every test may use: a toy network without torch, and small random streams."""

import pytest

from tests.toy import ToyModel


@pytest.fixture
def toy() -> ToyModel:
    return ToyModel(base_size=12, width=5)
