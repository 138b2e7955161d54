"""A repository is found from anywhere in it, and two clones of one remote are one repository."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lessor.errors import GitError, NotARepositoryError
from lessor.git.repository import (
    Repository,
    behind_remote,
    canonical_remote,
    current_branch,
    files_at,
    find_repository,
    head_commit,
    packages_at,
    read_file_at,
    repository_key,
    resolve_commit,
    uncommitted_files,
)

Git = Callable[..., str]


def test_it_is_the_same_from_everywhere(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path
):
    (tmp_path / "link").symlink_to(main)
    (tmp_path / "link-to-tree").symlink_to(worktree)
    places = [
        *(main / "src", main / ".git", worktree, worktree / "src"),
        *(tmp_path / "link" / "src", tmp_path / "link-to-tree"),
    ]
    assert [find_repository(place) for place in places] == [repo] * len(places)
    assert (repo.root, repo.common_dir, repo.name) == (main, main / ".git", "shop")
    assert not repo.is_bare


def test_a_bare_repository_is_found_from_within_and_from_its_worktree(
    main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", "-b", "x", str(tmp_path / "tree"))
    bare = find_repository(tmp_path / "bare.git")
    assert bare.is_bare
    assert bare.root == bare.common_dir == tmp_path / "bare.git"
    assert bare.name == "bare"
    assert find_repository(tmp_path / "tree") == bare


def test_a_newline_in_its_path_is_part_of_its_path(tmp_path: Path, git: Git):
    place = tmp_path / "two\nlines"
    git(tmp_path, "init", "-q", str(place))
    assert find_repository(place).root == place


def test_a_submodule_is_a_repository_of_its_own(submodule: str, main: Path):
    found = find_repository(main / submodule)
    assert found.root == main / submodule
    assert found.common_dir == main / ".git" / "modules" / submodule


def test_a_separate_git_directory_is_followed(tmp_path: Path, git: Git):
    git(tmp_path, "init", "-q", f"--separate-git-dir={tmp_path / 'store'}", "apart")
    found = find_repository(tmp_path / "apart")
    assert (found.root, found.common_dir) == (tmp_path / "apart", tmp_path / "store")


def test_no_repository_is_said(tmp_path: Path):
    with pytest.raises(NotARepositoryError, match="git init"):
        find_repository(tmp_path)


def test_a_repository_that_git_refuses_is_not_called_missing(main: Path, git: Git):
    git(main, "config", "core.repositoryformatversion", "99")
    with pytest.raises(GitError, match="99") as refused:
        find_repository(main)
    assert not isinstance(refused.value, NotARepositoryError)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@h.org:a/b.git", "h.org/a/b"),
        ("https://h.org/a/b", "h.org/a/b"),
        ("https://H.org/a/b.git/", "h.org/a/b"),
        ("https://user:token@h.org/a/b.git", "h.org/a/b"),
        ("https://h.org:443/a/b", "h.org/a/b"),
        ("ssh://git@h.org:22/a/b.git", "h.org/a/b"),
        ("git+ssh://git@h.org/a/b.git", "h.org/a/b"),
        ("git://h.org/a/b", "h.org/a/b"),
        ("h.org:/a/b", "h.org/a/b"),
        ("ssh://git@h.org:2222/a/b.git", "h.org:2222/a/b"),
        ("git@[::1]:a/b", "[::1]/a/b"),
        ("ssh://git@[::1]:22/a/b", "[::1]/a/b"),
        ("https://h.org/A/B", "h.org/A/B"),
        ("/srv/git/b.git", None),
        ("../b.git", None),
        ("./odd:name", None),
        ("C:\\work\\b", None),
        ("C:/work/b", None),
        ("file:///srv/git/b.git", None),
        ("ext::ssh -p 22 x", None),
        ("https://", None),
        ("https://h.org:port/a", None),
        ("", None),
    ],
)
def test_a_remote_has_one_name_however_it_is_written(url: str, name: str | None):
    assert canonical_remote(url) == name


def test_two_clones_of_one_remote_have_one_key(main: Path, tmp_path: Path, git: Git):
    git(main, "remote", "add", "origin", "git@Example.org:team/shop.git")
    git(tmp_path, "clone", "-q", str(main), "again")
    git(tmp_path / "again", "remote", "set-url", "origin", "https://me@example.org/team/shop")
    repos = [find_repository(place) for place in (main, tmp_path / "again")]
    assert [repository_key(repo) for repo in repos] == ["example.org/team/shop"] * 2
    assert repos[1].name == "shop"


def test_clones_of_a_bare_repository_on_this_machine_have_its_key(
    main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "shop.git")
    git(tmp_path / "shop.git", "remote", "remove", "origin")
    git(tmp_path, "clone", "-q", "shop.git", "one")
    git(tmp_path, "clone", "-q", f"file://{tmp_path / 'shop.git'}", "two")
    (tmp_path / "link").symlink_to(tmp_path / "shop.git")
    git(tmp_path, "clone", "-q", "link", "three")
    keys = [repository_key(find_repository(tmp_path / name)) for name in ("one", "two", "three")]
    assert set(keys) == {repository_key(find_repository(tmp_path / "shop.git"))}
    assert repository_key(find_repository(main)) not in keys


def test_the_key_stays_when_the_remote_is_gone(main: Path, tmp_path: Path, git: Git):
    git(tmp_path, "clone", "-q", "--bare", str(main), "shop.git")
    git(tmp_path, "clone", "-q", "shop.git", "one")
    key = repository_key(find_repository(tmp_path / "one"))
    (tmp_path / "shop.git").rename(tmp_path / "away")
    assert repository_key(find_repository(tmp_path / "one")) == key


def test_a_clone_of_somebodys_checkout_is_a_repository_of_its_own(
    repo: Repository, main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", str(main), "copy")
    assert repository_key(find_repository(tmp_path / "copy")) != repository_key(repo)


@pytest.mark.parametrize("place", ["nothing", "empty", "shop.git/hooks"])
def test_a_remote_that_is_no_repository_gives_no_key(
    main: Path, tmp_path: Path, git: Git, place: str
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "shop.git")
    (tmp_path / "empty").mkdir()
    git(main, "remote", "add", "origin", str(tmp_path / place))
    key = repository_key(find_repository(main))
    assert key == (main / ".git" / "lessor-id").read_text().strip()


def test_where_the_remote_cant_keep_an_id_the_clone_has_its_own(
    main: Path, tmp_path: Path, git: Git
):
    git(tmp_path, "clone", "-q", "--bare", str(main), "shop.git")
    git(tmp_path / "shop.git", "remote", "remove", "origin")
    (tmp_path / "shop.git" / "lessor-id").mkdir()
    git(tmp_path, "clone", "-q", "shop.git", "one")
    key = repository_key(find_repository(tmp_path / "one"))
    assert key == (tmp_path / "one" / ".git" / "lessor-id").read_text().strip()


def test_a_shorthand_for_the_remote_is_the_remote(main: Path, git: Git):
    git(main, "config", "url.https://example.org/.insteadOf", "ex:")
    git(main, "remote", "add", "origin", "ex:team/shop")
    assert find_repository(main).canonical_remote == "example.org/team/shop"


def test_without_a_remote_the_key_is_kept_in_the_common_directory(
    repo: Repository, worktree: Path, main: Path, tmp_path: Path, git: Git
):
    key = repository_key(repo)
    assert repository_key(find_repository(worktree)) == key
    git(tmp_path, "clone", "-q", str(main), "copy")
    git(tmp_path / "copy", "remote", "remove", "origin")
    assert repository_key(find_repository(tmp_path / "copy")) != key


def test_a_foreign_id_file_is_refused(repo: Repository):
    (repo.common_dir / "lessor-id").write_text("something else\n")
    with pytest.raises(GitError, match="lessor-id"):
        repository_key(repo)


def test_where_one_stands(worktree: Path, main: Path, git: Git):
    assert current_branch(worktree) == "claude/7-totals"
    git(worktree, "checkout", "-q", "--detach")
    assert current_branch(worktree) is None
    assert resolve_commit(worktree, "main") == head_commit(main)


def test_a_repository_without_a_commit_has_a_branch_and_no_head(tmp_path: Path, git: Git):
    git(tmp_path, "init", "-q", "-b", "trunk")
    assert current_branch(tmp_path) == "trunk"
    with pytest.raises(GitError):
        head_commit(tmp_path)


@pytest.mark.parametrize("rev", ["--all", "-x", "", "main\nmain", "a\0b", "nowhere", "HEAD:README"])
def test_what_names_no_commit_is_refused(main: Path, rev: str):
    with pytest.raises(GitError):
        resolve_commit(main, rev)


def test_uncommitted_files_are_named_from_the_top(main: Path, git: Git):
    (main / "src" / "app.py").write_text("x")
    (main / "new file").write_text("x")
    (main / ".env").write_text("ignored")
    (main / "staged").write_text("x")
    git(main, "add", "staged")
    assert uncommitted_files(main / "src") == ["new file", "src/app.py", "staged"]


def test_behind_counts_what_the_upstream_has_more(main: Path, tmp_path: Path, git: Git):
    assert behind_remote(main) is None
    git(tmp_path, "clone", "-q", str(main), "clone")
    clone = tmp_path / "clone"
    assert behind_remote(clone) == 0
    git(main, "commit", "-q", "--allow-empty", "-m", "more")
    assert behind_remote(clone) == 0
    git(clone, "fetch", "-q")
    assert behind_remote(clone) == 1


def test_a_file_is_read_from_the_commit_and_not_from_the_work_tree(
    main: Path, repo: Repository, git: Git
):
    (main / "lessor.toml").write_bytes(b"check = 'pytest'\r\n\xff")
    git(main, "add", "lessor.toml")
    git(main, "commit", "-q", "-m", "configure")
    (main / "lessor.toml").write_text("check = 'true'")
    assert read_file_at(repo.common_dir, "HEAD", "lessor.toml") == b"check = 'pytest'\r\n\xff"
    assert read_file_at(repo.common_dir, "HEAD~1", "lessor.toml") is None


@pytest.mark.parametrize("path", ["link", "src", "nowhere", "src/", "*", ":(top)README"])
def test_what_is_no_plain_file_is_not_read(repo: Repository, path: str):
    assert read_file_at(repo.common_dir, "HEAD", path) is None


def test_an_unknown_commit_is_no_missing_file(repo: Repository):
    with pytest.raises(GitError):
        read_file_at(repo.common_dir, "nowhere", "README")


def test_the_files_and_packages_of_a_commit(main: Path, repo: Repository, git: Git):
    for path in ("web/package.json", "web/ui/package.json", "py/setup.py", "vendor/x/go.mod"):
        (main / path).parent.mkdir(parents=True, exist_ok=True)
        (main / path).write_text("x")
    (main / "pyproject.toml").write_text("x")
    git(main, "add", "-f", "-A", ".")
    git(main, "add", "-f", "vendor")
    git(main, "commit", "-q", "-m", "packages")
    assert packages_at(repo.common_dir, "HEAD") == [".", "py", "web", "web/ui"]
    assert "vendor/x/go.mod" in files_at(repo.common_dir, "HEAD")
    assert packages_at(repo.common_dir, "HEAD~1") == []
