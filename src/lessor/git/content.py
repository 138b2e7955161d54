"""What a commit holds, read without a work tree."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lessor.git.command import run_git
from lessor.git.revision import resolve_commit
from lessor.git.understood import understood

_FILES = frozenset({"100644", "100755"})

_MANIFESTS = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "package.json", "deno.json"),
        *("Cargo.toml", "go.mod", "pom.xml", "build.gradle", "build.gradle.kts"),
        *("composer.json", "Gemfile", "mix.exs", "Package.swift", "pubspec.yaml"),
    }
)
_FOREIGN = frozenset({"node_modules", "vendor", "third_party"})


def read_file_at(common_dir: Path, commit: str, path: str) -> bytes | None:
    """The bytes of `path` in `commit`; None when there is no plain file (a link is none).

    Configuration and checks are read so, from the base commit: a branch can't change what judges
    it, and a link can't point the reader elsewhere.

    Raises:
        GitError: `commit` names none.
    """
    oid = resolve_commit(common_dir, commit)
    listed = run_git(
        ["ls-tree", "-z", "--full-tree", oid, "--", path], cwd=common_dir, git_dir=common_dir
    )
    for record in listed.records:
        fields, _, name = record.partition("\t")
        with understood(f"the files of {commit[:12]}"):
            mode, _, blob = fields.split(" ")
        if name == path and mode in _FILES:
            return run_git(["cat-file", "blob", blob], cwd=common_dir, git_dir=common_dir).out
    return None


def files_at(common_dir: Path, commit: str) -> list[str]:
    """Every tracked path of `commit`, relative to the top, in git's byte order.

    Raises:
        GitError: `commit` names none.
    """
    oid = resolve_commit(common_dir, commit)
    args = ["ls-tree", "-r", "-z", "--full-tree", "--name-only", oid]
    return run_git(args, cwd=common_dir, git_dir=common_dir).records


def packages_at(common_dir: Path, commit: str) -> list[str]:
    """The directories of `commit` that hold a package's manifest, sorted; the top is `.`.

    They are the natural scopes: who edits one file of a package mostly edits that package.
    Vendored code is nobody's package here.

    Raises:
        GitError: `commit` names none.
    """
    paths = map(PurePosixPath, files_at(common_dir, commit))
    found = {str(path.parent) for path in paths if path.name in _MANIFESTS}
    return sorted(name for name in found if _FOREIGN.isdisjoint(PurePosixPath(name).parts))
