"""Many processes make, detach and remove worktrees of one repository at once."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lessor.git.repository import Repository, head_commit, repository_key
from lessor.git.worktree import list_worktrees

Git = Callable[..., str]

WORKERS = 20
RIVALS = 8

ADD = """
import sys
from pathlib import Path
from lessor.git.repository import find_repository
from lessor.git.worktree import add_worktree
main, path, branch, epoch = sys.argv[1:]
repo = find_repository(Path(main))
sys.stdin.readline()
add_worktree(repo, path=Path(path), branch=branch, base="origin/main", task=epoch, epoch=1,
             reason="task=" + epoch)
"""

REMOVE = """
import sys
from pathlib import Path
from lessor.git.inspection import inspect_worktree
from lessor.git.repository import find_repository
from lessor.git.worktree import remove_worktree
main, path = sys.argv[1:]
repo = find_repository(Path(main))
sys.stdin.readline()
nobody = lambda _: ()
verdict = inspect_worktree(Path(path), base="origin/main", snapshot={}, occupants=nobody)
remove_worktree(repo, Path(path), verdict=verdict, occupants=nobody)
"""

KEY = """
import sys
from pathlib import Path
from lessor.git.repository import find_repository, repository_key
repo = find_repository(Path(sys.argv[1]))
sys.stdin.readline()
print(repository_key(repo))
"""


def together(script: str, arguments: Sequence[Sequence[str]]) -> list[tuple[int, str, str]]:
    """Start one Python per argument list, let all go at once; exit codes and what they printed."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for given in arguments
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    done = [(process, *process.communicate()) for process in started]
    return [(process.returncode, out, err) for process, out, err in done]


@pytest.fixture
def with_origin(main: Path, tmp_path: Path, git: Git) -> Path:
    """`main` with a remote whose branch is the start point: git would write an upstream."""
    git(tmp_path, "clone", "-q", "--bare", str(main), "origin.git")
    git(main, "remote", "add", "origin", str(tmp_path / "origin.git"))
    git(main, "fetch", "-q", "origin")
    return main


def branches(main: Path, git: Git) -> set[str]:
    return set(git(main, "for-each-ref", "--format=%(refname:short)", "refs/heads").split())


@pytest.mark.race
@pytest.mark.parametrize("same_basename", [False, True])
def test_twenty_claims_at_once_make_twenty_worktrees(
    with_origin: Path, repo: Repository, tmp_path: Path, git: Git, same_basename: bool
):
    names = [f"{n}/tree" if same_basename else f"{n}-1" for n in range(WORKERS)]
    paths = [tmp_path / "trees" / name for name in names]
    done = together(
        ADD,
        [[str(with_origin), str(path), f"ai/{n}-x", str(n)] for n, path in enumerate(paths)],
    )
    assert [code for code, _, _ in done] == [0] * WORKERS, [err for _, _, err in done]
    found = list_worktrees(repo)
    assert {tree.path for tree in found} == {with_origin, *paths}
    assert branches(with_origin, git) == {"main", *(f"ai/{n}-x" for n in range(WORKERS))}
    assert {tree.branch for tree in found} == branches(with_origin, git)
    assert all(git(path, "status", "--porcelain") == "" for path in paths)
    if same_basename:
        return
    removed = together(REMOVE, [[str(with_origin), str(path)] for path in paths])
    assert [code for code, _, _ in removed] == [0] * WORKERS, [err for _, _, err in removed]
    assert [tree.path for tree in list_worktrees(repo)] == [with_origin]


@pytest.mark.race
@pytest.mark.parametrize("existing", [False, True])
def test_of_many_claims_of_one_branch_one_gets_it(
    with_origin: Path, repo: Repository, tmp_path: Path, git: Git, existing: bool
):
    """Git's own look for a branch that is checked out is no lock: alone it gave it to fifteen."""
    if existing:
        git(with_origin, "branch", "-q", "ai/one")
    done = together(
        ADD,
        [
            [str(with_origin), str(tmp_path / "trees" / f"{n}-1"), "ai/one", str(n)]
            for n in range(RIVALS)
        ],
    )
    assert sorted(code for code, _, _ in done) == [0] + [1] * (RIVALS - 1)
    assert all("WorktreeError" in err for code, _, err in done if code)
    holders = [tree for tree in list_worktrees(repo) if tree.branch == "ai/one"]
    assert len(holders) == 1
    assert head_commit(holders[0].path) == head_commit(with_origin)
    assert branches(with_origin, git) == {"main", "ai/one"}


@pytest.mark.race
@pytest.mark.parametrize(
    "rival",
    [
        ["worktree", "prune", "--expire=now"],
        ["pack-refs", "--all"],
        ["config", "some.key", "some value"],
    ],
    ids=lambda rival: rival[0],
)
def test_claims_beside_somebody_elses_git_make_their_worktrees(
    with_origin: Path, repo: Repository, tmp_path: Path, git: Git, rival: list[str]
):
    """A person or another tool runs git at the same time, and knows nothing of Lessor's lock."""
    paths = [tmp_path / "trees" / f"{n}-1" for n in range(WORKERS)]
    over = threading.Event()

    def interfere() -> None:
        while not over.is_set():
            git(with_origin, *rival, check=False)

    others = [threading.Thread(target=interfere) for _ in range(3)]
    for other in others:
        other.start()
    try:
        done = together(
            ADD,
            [[str(with_origin), str(path), f"ai/{n}-x", str(n)] for n, path in enumerate(paths)],
        )
    finally:
        over.set()
        for other in others:
            other.join()
    assert [code for code, _, _ in done] == [0] * WORKERS, [err for _, _, err in done]
    assert {tree.path for tree in list_worktrees(repo)} == {with_origin, *paths}
    assert branches(with_origin, git) == {"main", *(f"ai/{n}-x" for n in range(WORKERS))}
    assert all(git(path, "status", "--porcelain") == "" for path in paths)


@pytest.mark.race
def test_large_checkouts_at_once_are_whole(
    with_origin: Path, repo: Repository, tmp_path: Path, git: Git
):
    for n in range(1_000):
        file = with_origin / f"part{n % 20}" / f"file{n}"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"{n}\n" * 20)
    git(with_origin, "add", "-A")
    git(with_origin, "commit", "-q", "-m", "many files")
    git(with_origin, "push", "-q", "origin", "main")
    paths = [tmp_path / "trees" / f"{n}-1" for n in range(WORKERS)]
    done = together(
        ADD,
        [[str(with_origin), str(path), f"ai/{n}-x", str(n)] for n, path in enumerate(paths)],
    )
    assert [code for code, _, _ in done] == [0] * WORKERS, [err for _, _, err in done]
    assert all(len(list(path.glob("part*/file*"))) == 1_000 for path in paths)
    assert all(git(path, "status", "--porcelain") == "" for path in paths)


@pytest.mark.race
def test_all_processes_agree_on_the_key_of_a_repository_without_a_remote(
    main: Path, repo: Repository
):
    done = together(KEY, [[str(main)]] * RIVALS)
    assert {out.strip() for _, out, _ in done} == {repository_key(repo)}
    assert [path.name for path in repo.common_dir.glob("lessor-id*")] == ["lessor-id"]
