"""A command that a signal ends takes away what it began, as at Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from person import Person


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_in_the_middle_of_git_leaves_neither_git_nor_its_files(
    person: Person, finished: Callable[..., str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    finished("a", {"web/search/box.ts": "five\n"})
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        "#!/bin/sh\n"
        f'case " $* " in *" merge-tree "*) echo $$ "$GIT_OBJECT_DIRECTORY" > {fifo}; exec sleep 600;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    slow.chmod(0o755)
    looking = subprocess.Popen(
        person.command("landed"),
        cwd=person.cwd,
        env=person.environment() | {"PATH": f"{slow.parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    pid, objects = fifo.read_text().split()
    assert Path(objects).is_dir()
    looking.send_signal(number)
    out, err = looking.communicate(timeout=60)
    assert (looking.returncode, out, err.strip()) == (code, b"", b"")
    assert not Path(objects).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_nohup_keeps_a_closed_terminal_from_ending_a_command(person: Person) -> None:
    waiting = subprocess.Popen(
        ["nohup", *person.command("claim", "--wait", "60s")],
        cwd=person.cwd,
        env=person.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    lock = person.state / "lessor.db.lock"
    while not (lock.exists() and list(person.state.glob("workers/[!.]*"))):
        assert waiting.poll() is None
    waiting.send_signal(signal.SIGHUP)
    waiting.send_signal(signal.SIGTERM)
    waiting.communicate(timeout=60)
    assert waiting.returncode == 143
