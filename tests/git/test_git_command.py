"""The one door to git lets nothing of the caller's session in and says what git said."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lessor.errors import GitError, GitMissingError
from lessor.git import command
from lessor.git.command import (
    GitResult,
    pipe_git,
    require_git,
    run_git,
)
from lessor.git.complaint import failure, hide_credentials
from lessor.git.slow import told_when_slow
from lessor.git.unwanted import wishes_to_stop

Git = Callable[..., str]


@pytest.fixture
def fake_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in git's place."""

    def write(script: str) -> None:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        require_git.cache_clear()

    return write


@pytest.fixture(autouse=True)
def _ask_for_the_version_again():
    yield
    require_git.cache_clear()


SIGNED = ("commit", "--allow-empty", "-S", "-m", "signed")


def test_a_hook_s_variables_do_not_reach_git(
    main: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.bare")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    assert run_git(["rev-parse", "--show-toplevel"], cwd=main).text == str(main)
    assert run_git(["ls-files"], cwd=main).lines


def test_variables_that_are_given_do_reach_git(main: Path):
    given = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    said = run_git(["var", "GIT_AUTHOR_IDENT"], cwd=main, env=given)
    assert said.text.startswith("Ada <ada@example.org> ")


def test_a_named_repository_is_not_searched_for(main: Path, tmp_path: Path):
    with pytest.raises(GitError):
        run_git(["rev-parse", "HEAD"], cwd=main, git_dir=tmp_path / "nowhere")


def test_a_failure_holds_git_s_own_last_lines(main: Path):
    with pytest.raises(GitError, match="Not a valid object name") as refused:
        run_git(["cat-file", "-t", "nonsense"], cwd=main)
    assert refused.value.facts["command"] == "cat-file"
    assert refused.value.facts["git_code"] == 128


def test_a_failure_does_not_repeat_the_arguments(main: Path):
    with pytest.raises(GitError) as refused:
        run_git(["push", "https://user:hunter2@localhost:1/x"], cwd=main)
    assert refused.value.facts["command"] == "push"
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("password", ["secret", "s@cret", "s:c@r@t", ""])
def test_a_password_is_left_out_whatever_is_in_it(password: str):
    said = hide_credentials(f"can't reach https://me:{password}@host/a@b.git or https://host/a@b")
    assert said == "can't reach https://…@host/a@b.git or https://host/a@b"


def test_no_program_that_the_configuration_names_looks_at_signatures(
    main: Path, tmp_path: Path, git: Git
):
    """`log.showSignature` would run it for each commit, and print its words between ours."""
    program = tmp_path / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    content = git(main, "cat-file", "commit", "HEAD").replace(
        "\n\n", "\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\n", 1
    )
    signed = git(
        main, "hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{content}\n".encode()
    )
    git(main, "config", "log.showSignature", "true")
    git(main, "config", "gpg.program", str(program))
    asked = ["log", "-1", "--format=%H", signed]
    assert run_git(asked, cwd=main).lines == [signed]
    assert not (tmp_path / "ran").exists()
    git(main, "log", "-1", "--format=%H", signed)
    assert (tmp_path / "ran").exists()


def test_one_command_feeds_another_however_much_it_says(main: Path):
    many = b"HEAD\n" * 100_000  # more than both pipes hold
    args = ["cat-file", "--batch-check=%(objectname)"]
    said = pipe_git(args, args, cwd=main, git_dir=main / ".git", input=many)
    assert said.lines == [run_git(["rev-parse", "HEAD"], cwd=main).text] * 100_000


@pytest.mark.parametrize(
    ("first", "second", "blamed"),
    [
        (["cat-file", "-t", "nonsense"], ["patch-id"], "cat-file"),
        (["log", "-p"], ["patch-id", "--nonsense"], "patch-id"),
    ],
)
def test_of_two_commands_the_one_that_failed_is_named(
    main: Path, first: list[str], second: list[str], blamed: str
):
    with pytest.raises(GitError) as refused:
        pipe_git(first, second, cwd=main, git_dir=main / ".git", input=b"")
    assert refused.value.facts["command"] == blamed


def test_paths_are_literal(main: Path, git: Git):
    (main / "*.py").write_text("a star in its name")
    (main / "a.py").write_text("x")
    assert run_git(["ls-files", "-o", "-z", "--", "*.py"], cwd=main).records == ["*.py"]


def test_replaced_objects_do_not_change_history(main: Path, git: Git):
    head = git(main, "rev-parse", "HEAD")
    git(main, "replace", head, "HEAD~1")
    assert run_git(["log", "-1", "--format=%s"], cwd=main).text == "name it"


def test_grafts_do_not_change_history(main: Path, git: Git):
    (main / ".git" / "info" / "grafts").write_text(git(main, "rev-parse", "HEAD") + "\n")
    assert git(main, "rev-list", "--count", "HEAD") == "1"
    assert int(run_git(["rev-list", "--count", "HEAD"], cwd=main).text) > 1


def test_a_failure_says_what_went_wrong_also_where_advice_follows(main: Path, git: Git):
    (main / ".git" / "info" / "grafts").touch()
    git(main, "config", "advice.detachedHead", "true")
    (main / ".git" / "index.lock").touch()
    with pytest.raises(GitError, match=r"index\.lock': File exists") as refused:
        run_git(["rm", "-q", "README"], cwd=main)
    assert "hint" not in str(refused.value)
    assert "graft" not in run_git(["log", "-1"], cwd=main).err.decode()


def test_a_key_that_is_locked_is_told_with_what_helps(main: Path, git: Git):
    git(main, "config", "gpg.program", "false")
    with pytest.raises(GitError, match="gpg failed to sign") as refused:
        run_git(["-c", "user.name=A", "-c", "user.email=a@b", *SIGNED], cwd=main)
    assert "Unlock the key" in refused.value.next_step


def test_a_full_disk_is_told_with_what_helps():
    full = GitResult(code=128, out=b"", err=b"fatal: unable to write: No space left on device")
    assert "Make room" in failure(["hash-object"], full).next_step
    other = GitResult(code=128, out=b"", err=b"fatal: bad object")
    assert failure(["log"], other).next_step == ""


@pytest.mark.parametrize(
    ("said", "of_disk"),
    [
        ("fatal: unable to write: No space left on device", True),
        ("fatal: write error: Out of diskspace.", True),
        ("Preparing worktree\nerror: unable to write file data.bin\nfatal: Could not reset", True),
        ("error: unable to index file 'No space left on device'", False),
        ('error: open("error: unable to write file x"): Permission denied', False),
        ("warning: adding embedded git repository: no space left on device\nfatal: no", False),
        ("remote: fatal: write error: No space left on device\nfatal: the remote end", False),
        (
            'error: open("a\u2028fatal: x: No space left on device\u2028b"): Permission denied',
            False,
        ),
    ],
)
def test_what_a_disk_stands_behind_is_told_by_the_systems_words_and_no_files_name(said, of_disk):
    refused = failure(["add"], GitResult(code=128, out=b"", err=said.encode()))
    assert refused.facts.get("disk", False) is of_disk


def test_a_path_that_git_ends_a_line_with_is_no_word_of_the_systems(main: Path):
    named = b"no space left on device"
    (main / os.fsdecode(named)).mkdir()
    asked = ["update-index", "--add", "-z", "--stdin"]
    with pytest.raises(GitError, match=r"Unable to process path no space left on device") as told:
        run_git(asked, cwd=main, input=named + b"\0")
    assert "disk" not in told.value.facts


FORGED = b"a\nfatal: x: No space left on device\nb"
"""A file's name that reads as three lines, the second of them the system's."""


def test_a_line_of_a_file_s_name_is_no_word_of_the_systems(main: Path):
    (main / os.fsdecode(FORGED)).mkdir()
    with pytest.raises(GitError, match="No space left on device") as told:
        run_git(["update-index", "--add", "-z", "--stdin"], cwd=main, input=FORGED + b"\0")
    assert not told.value.facts["disk"]


@pytest.mark.parametrize("how", [["checkout", "--detach", "--force"], ["reset", "--hard"]])
def test_nor_is_a_line_of_a_committed_file_s_name(main: Path, git: Git, how: list[str]):
    """As of an agent's result, whose checkout a filter refuses."""
    (main / os.fsdecode(FORGED)).write_text("x")
    (main / ".gitattributes").write_text("a* filter=no\n")
    git(main, "add", "-A")
    git(main, "commit", "-q", "-m", "forged")
    forged = git(main, "rev-parse", "HEAD")
    git(main, "reset", "-q", "--hard", "HEAD^")
    git(main, "config", "filter.no.smudge", "false")
    git(main, "config", "filter.no.required", "true")
    with pytest.raises(GitError, match="smudge filter no failed") as told:
        run_git([*how, forged], cwd=main)
    assert not told.value.facts.get("disk")


def test_all_that_git_said_is_read_however_late(main: Path, monkeypatch: pytest.MonkeyPatch):
    """As where this process is stopped for longer than it listens to what may hold git's output."""
    monkeypatch.setattr(command, "_LOOK_S", 0.0)
    text = b"word " * 10_000
    blob = run_git(["hash-object", "-w", "--stdin"], cwd=main, input=text).text
    assert run_git(["cat-file", "blob", blob], cwd=main).out == text
    assert "no such thing" in run_git(["no such thing"], cwd=main, check=False).err.decode()


def test_a_missing_git_is_named(main: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissingError):
        run_git(["version"], cwd=main)


def test_a_missing_directory_is_no_missing_git(tmp_path: Path):
    with pytest.raises(GitError) as refused:
        run_git(["version"], cwd=tmp_path / "nowhere")
    assert not isinstance(refused.value, GitMissingError)


def test_an_old_git_is_refused(fake_git):
    fake_git("echo git version 2.38.9")
    with pytest.raises(GitMissingError, match=r"2\.39"):
        require_git()


@pytest.mark.parametrize(
    ("said", "version"), [("2.39.5 (Apple Git-154)", (2, 39)), ("3.0.0-rc1", (3, 0))]
)
def test_a_new_git_is_accepted(fake_git, said: str, version: tuple[int, int]):
    fake_git(f"echo 'git version {said}'")
    assert require_git() == version


def test_a_command_past_its_time_is_asked_to_stop_and_cleans_up(
    fake_git, main: Path, tmp_path: Path
):
    fake_git(f"trap 'touch {tmp_path}/cleaned; exit 1' TERM\nread never\nsleep 60 & wait $!")
    with pytest.raises(GitError, match="longer than"):
        run_git(["status"], cwd=main, timeout_s=0.2)
    assert (tmp_path / "cleaned").exists()


def test_a_stopped_command_past_its_time_cleans_up_as_well(fake_git, main: Path, tmp_path: Path):
    fake_git(f"trap 'touch {tmp_path}/cleaned; exit 1' TERM\nkill -STOP $$\nsleep 60 & wait $!")
    with pytest.raises(GitError, match="longer than"):
        run_git(["status"], cwd=main, timeout_s=0.2)
    assert (tmp_path / "cleaned").exists()


@pytest.fixture
def wishes() -> Iterator[list[str]]:
    """Who wants the end of git commands; each that is added ends those that run."""
    made: list[str] = []
    before = wishes_to_stop.set(made.__len__)
    yield made
    wishes_to_stop.reset(before)


def test_a_command_that_nobody_waits_for_any_longer_is_stopped_and_cleans_up(
    fake_git, main: Path, tmp_path: Path, wishes: list[str]
):
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)
    fake_git(f"trap 'touch {tmp_path}/cleaned; exit 1' TERM\necho > {fifo}\nsleep 60 & wait $!")

    def wish() -> None:
        fifo.read_text()
        wishes.append("enough")

    asking = threading.Thread(target=wish)
    asking.start()
    with pytest.raises(GitError, match="stopped before its end, as you asked"):
        run_git(["status"], cwd=main)
    asking.join()
    assert (tmp_path / "cleaned").exists()


def test_what_begins_after_a_wish_to_stop_may_do_its_work_and_take_no_long_time(
    fake_git, main: Path, wishes: list[str], monkeypatch: pytest.MonkeyPatch
):
    """It saves what there is."""
    wishes.append("enough")
    assert run_git(["rev-parse", "HEAD"], cwd=main).code == 0
    monkeypatch.setattr(command, "HURRIED_S", 0.2)
    fake_git("sleep 60")
    with pytest.raises(GitError, match=r"longer than 0\.2 s"):
        run_git(["status"], cwd=main)


def test_a_git_that_was_killed_is_told_as_killed(fake_git, main: Path):
    fake_git("kill -KILL $$")
    with pytest.raises(GitError, match=r"git status failed: it was killed by signal 9\."):
        run_git(["status"], cwd=main)


def test_what_git_leaves_running_with_its_output_is_not_waited_for(
    fake_git, main: Path, tmp_path: Path
):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fake_git(f"(read -r end < {fifo}) &\necho answer; echo complaint >&2; exit 3")
    try:
        said = run_git(["push"], cwd=main, check=False, timeout_s=20)
    finally:
        # Not waiting for a reader: where it was ended, there is none.
        with contextlib.suppress(OSError):
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    assert (said.code, said.out, said.err) == (3, b"answer\n", b"complaint\n")


def test_a_git_that_reads_none_of_its_input_is_heard(fake_git, main: Path):
    fake_git("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 4")
    said = run_git(["hash-object"], cwd=main, input=b"x" * 1_000_000, check=False)
    assert (said.code, len(said.out), len(said.err)) == (4, 1_000_000, 1_000_000)


def test_a_git_that_is_told_of_as_slow_gets_all_of_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "told"
    os.mkfifo(fifo)

    def tell(verb: str, _: float) -> None:
        fifo.write_text(f"{verb}\n")

    monkeypatch.setattr(command, "SLOW_S", 0.01)
    told = told_when_slow.set(tell)
    try:
        reads = f"alias.reads=!read -r verb < {fifo}; echo $verb; wc -c"
        more_than_a_pipe_holds = b"x" * 1_000_000
        said = run_git(
            ["-c", reads, "reads"], cwd=tmp_path, input=more_than_a_pipe_holds, timeout_s=60
        )
    finally:
        told_when_slow.reset(told)
    assert said.text.split() == ["reads", "1000000"]


def test_ctrl_c_does_not_reach_git(fake_git, main: Path, tmp_path: Path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    fake_git(f"ps -o pgid= -p $$ > {fifo}")
    groups: list[int] = []
    reader = threading.Thread(target=lambda: groups.append(int(fifo.read_text())))
    reader.start()
    run_git(["status"], cwd=main)
    reader.join()
    assert groups != [os.getpgid(0)]
    assert signal.getsignal(signal.SIGINT) is not None
