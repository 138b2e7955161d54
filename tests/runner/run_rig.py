"""Real runs: a git repository, a SQLite store, scripted agents, their supervisors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from supervisor_rig import PATIENCE_MS, QUICK, until

from lessor.clock import SystemClock
from lessor.connect import connect
from lessor.git.repository import Repository, find_repository, repository_key
from lessor.model.retry import RetryPolicy
from lessor.model.task import NewTask, Task
from lessor.runner.desk import Desk, Plan, RunOptions
from lessor.runner.host import Host, this_host
from lessor.runner.host_id import host_id
from lessor.runner.noting import Note, NoteKind
from lessor.runner.process import kill_marked
from lessor.runner.run import Run
from lessor.runner.spec import MARK
from lessor.runner.stopping import Stopping
from lessor.service.lessor import Lessor

QUICKLY = RetryPolicy(first_ms=10, factor=1, ceiling_ms=10)
HERE = Path(__file__).parent
IGNORED = ".env\n*.log\nbuild/\ndeps/\n"
ADD = 'echo work >> "$LESSOR_NUMBER.txt"; echo done'
"""An agent that adds a file of its own at the root, uncommitted."""


def git(cwd: Path, *args: str, check: bool = True) -> str:
    """Plain git as a person runs it."""
    done = subprocess.run(["git", *args], cwd=cwd, capture_output=True, check=False)
    assert done.returncode == 0 or not check, done.stderr.decode(errors="replace")
    return os.fsdecode(done.stdout).rstrip("\n")


class Notes:
    """Remembers what a run says."""

    def __init__(self) -> None:
        self.all: list[Note] = []

    def note(self, note: Note) -> None:
        self.all.append(note)

    def of(self, kind: NoteKind) -> list[Note]:
        return [note for note in self.all if note.kind is kind]

    def texts(self, kind: NoteKind) -> list[str]:
        return [note.text for note in self.of(kind)]


class RunRig:
    """A repository `shop`, its store, and runs over it."""

    def __init__(self, directory: Path, *, url: str = "") -> None:
        self.directory = directory
        self.root = directory / "shop"
        self.state = directory / "state"
        self.state.mkdir()
        self.notes = Notes()
        self.stopping = Stopping()
        self._begin()
        self.repo: Repository = find_repository(self.root)
        self.host: Host = this_host(host_id(self.state))
        self.url = url or f"sqlite://{self.state / 'lessor.db'}"
        self.lessor: Lessor = self.connect()
        key = repository_key(self.repo)
        self.repository = self.lessor.registry.add_repository(key, name="shop").id
        self._others: list[Lessor] = []
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []

    def connect(self) -> Lessor:
        return connect(self.url, policy=QUICKLY, host_id=self.host.id)

    def _begin(self) -> None:
        self.root.mkdir()
        git(self.root, "init", "-q", "-b", "main")
        files = {
            ".gitignore": IGNORED,
            "README": "shop\n",
            "src/app.py": "one\ntwo\nthree\n",
            "src/tax/rate.py": "rate = 19\n",
            "docs/index.md": "# docs\n",
        }
        for path, text in files.items():
            self.write(path, text)
        self.commit("begin")

    def write(self, path: str, text: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def commit(self, message: str) -> str:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", message)
        return git(self.root, "rev-parse", "HEAD")

    def commit_empty(self, message: str) -> str:
        git(self.root, "commit", "-q", "--allow-empty", "-m", message)
        return git(self.root, "rev-parse", "HEAD")

    def add(self, title: str = "work", **more: Any) -> str:
        """A queued task's id."""
        wish = NewTask(title=title, repository=self.repository, **more)
        return self.lessor.tasks.submit([wish])[0].task

    def task(self, task: str) -> Task:
        return self.lessor.tasks.task(task)

    def agent(self, text: str, name: str = "agent") -> tuple[str, ...]:
        """A command that runs a shell script."""
        path = self.directory / f"{name}.sh"
        path.write_text(text + "\n")
        return ("/bin/sh", str(path))

    def python(self, text: str, name: str = "agent") -> tuple[str, ...]:
        """A command that runs a Python script."""
        path = self.directory / f"{name}.py"
        path.write_text(text + "\n")
        return (sys.executable, str(path))

    def desk(
        self, agent: str | tuple[str, ...] = ADD, *, plan: Plan | None = None, **options: Any
    ) -> Desk:
        command = self.agent(agent) if isinstance(agent, str) else agent
        made = plan or Plan()
        settings: dict[str, Any] = {"agent": "claude", "kind": "claude", "patience": QUICK}
        reporter = options.pop("reporter", self.notes)
        more = {
            name: options.pop(name)
            for name in ("cwd", "lessor", "repo", "state_dir", "plan_at", "listen_dsn")
            if name in options
        }
        return Desk(
            **{
                "lessor": self.lessor,
                "repo": self.repo,
                "cwd": self.root,
                "repository": self.repository,
                "store_url": self.url,
                "listen_dsn": None,
                "state_dir": self.state,
                "host": self.host,
                "clock": SystemClock(),
                "options": RunOptions(command=command, **{**settings, **options}),
                "plan_at": lambda _commit: made,
                "reporter": reporter,
                **more,
            }
        )

    def run(self, agent: str | tuple[str, ...] = ADD, **more: Any) -> int:
        """A whole run in this thread; its exit code."""
        return Run(self.desk(agent, **more), self.stopping).run()

    def start(self, agent: str | tuple[str, ...] = ADD, **more: Any) -> Started:
        """A run in a thread of its own."""
        started = Started(Run(self.desk(agent, **more), self.stopping))
        started.thread.start()
        self._threads.append(started.thread)
        return started

    def spawn(
        self, agent: str | tuple[str, ...] = ADD, *, before: Sequence[str] = (), **config: Any
    ) -> Spawned:
        """A run in a process of its own; `before` is a command that starts it."""
        command = self.agent(agent) if isinstance(agent, str) else agent
        path = self.directory / f"run-{len(self._processes)}.json"
        path.write_text(
            json.dumps(
                {
                    "root": str(self.root),
                    "state": str(self.state),
                    "url": self.url,
                    "repository": self.repository,
                    "command": command,
                    **config,
                }
            )
        )
        output = self.directory / f"run-{len(self._processes)}.out"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*before, sys.executable, str(HERE / "run_process.py"), str(path)],
                stdout=file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._processes.append(process)
        return Spawned(process, output)

    def started_notes(self) -> list[Note]:
        return self.notes.of(NoteKind.STARTED)

    def await_note(self, kind: NoteKind, *, count: int = 1) -> Note:
        until(lambda: len(self.notes.of(kind)) >= count, f"{count} notes of {kind}")
        return self.notes.of(kind)[count - 1]

    def branch(self, task: str) -> str:
        found = self.task(task).branch
        assert found is not None
        return found

    def shown(self, task: str, path: str) -> str:
        """A file's content on the task's branch."""
        return git(self.root, "show", f"{self.branch(task)}:{path}")

    def messages(self, task: str) -> list[str]:
        """The messages of the branch's own commits, newest first."""
        out = git(self.root, "log", "-z", "--format=%B", f"main..{self.branch(task)}")
        return [text for text in out.split("\0") if text.strip()]

    def ends(self, task: str) -> list[str]:
        return [str(lease.end) for lease in self.lessor.leases.leases(task=task)]

    def worktree(self, task: str, *, epoch: int = 1) -> Path:
        """Where the epoch's worktree is or was made."""
        found = self.lessor.workspaces.of_task(task, gone=True)
        return Path(next(w.path for w in found if f"-e{epoch}" in w.path))

    def signal(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def close(self) -> None:
        self.stopping.ask()
        self.stopping.ask()
        for note in self.started_notes():
            for pid in (note.supervisor, note.pid):
                self.signal(pid, signal.SIGCONT)
        for process in self._processes:
            self.signal(process.pid, signal.SIGKILL)
            process.wait()
        for thread in self._threads:
            thread.join(timeout=PATIENCE_MS / 1000)
        for report in self.state.glob("runs/*/report-*.jsonl"):
            kill_marked(f"{MARK}={report}")
        self.lessor.close()


class Started:
    """A run in a thread."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.code: int | None = None
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._work, daemon=True)

    def result(self) -> int:
        self.thread.join(timeout=PATIENCE_MS / 1000)
        assert not self.thread.is_alive(), "the run doesn't end"
        if self.error is not None:
            raise self.error
        assert self.code is not None
        return self.code

    def _work(self) -> None:
        try:
            self.code = self.run.run()
        except Exception as error:  # noqa: BLE001 - raised again where the result is asked for
            self.error = error


class Spawned:
    """A run in a process; its notes are lines of JSON."""

    def __init__(self, process: subprocess.Popen[bytes], output: Path) -> None:
        self.process = process
        self.output = output

    @property
    def pid(self) -> int:
        return self.process.pid

    def notes(self) -> list[dict[str, Any]]:
        lines = self.output.read_text(errors="replace").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def await_note(self, kind: NoteKind) -> dict[str, Any]:
        def there() -> bool:
            assert self.process.poll() is None or self._has(kind), self.output.read_text()
            return self._has(kind)

        until(there, f"a note {kind}")
        return next(note for note in self.notes() if note["kind"] == kind)

    def result(self) -> int:
        try:
            return self.process.wait(timeout=PATIENCE_MS / 1000)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the run doesn't end: {self.output.read_text()}") from None

    def _has(self, kind: NoteKind) -> bool:
        return any(note["kind"] == kind for note in self.notes())


def file_appears(path: Path) -> Callable[[], bool]:
    return path.exists
