"""What the tests of the runner share."""

import os

import pytest
from run_rig import RunRig
from supervisor_rig import Rig


@pytest.fixture
def rig(tmp_path):
    """Real supervisors; whatever is left of them ends with the test."""
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.fixture
def own_environment(tmp_path, monkeypatch):
    """Nothing of the machine's configuration, and of the session that tests run in, counts."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "LESSOR_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    (tmp_path / "gitconfig").write_text(
        "[user]\n\tname = Dana\n\temail = dana@example.org\n[commit]\n\tgpgSign = false\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def shop(tmp_path, own_environment):
    """A repository with a store and runs over it."""
    made = RunRig(tmp_path)
    yield made
    made.close()
