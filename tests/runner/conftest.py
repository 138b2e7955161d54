"""What the tests of the runner share."""

import pytest
from supervisor_rig import Rig


@pytest.fixture
def rig(tmp_path):
    """Real supervisors; whatever is left of them ends with the test."""
    made = Rig(tmp_path)
    yield made
    made.close()
