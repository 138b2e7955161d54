"""The gate at commit: real hooks, real git, a real store."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_rig import RunRig, git

from lessor.git.hooks import hooks_folder
from lessor.git.trailer import labels_of
from lessor.ids import new_request_id, new_token
from lessor.model.grant import ClaimRequest, Result
from lessor.model.worker import NewWorker
from lessor.runner.gating import gate_commits
from lessor.runner.lease_file import forget_holder, lease_file, write_holder
from lessor.runner.workplace import Place, Workplace

WHO = {
    "GIT_AUTHOR_NAME": "Agent",
    "GIT_AUTHOR_EMAIL": "agent@example.org",
    "GIT_COMMITTER_NAME": "Agent",
    "GIT_COMMITTER_EMAIL": "agent@example.org",
}


class Leased:
    """A task that is held, its worktree, and the gate before its commits."""

    def __init__(self, shop: RunRig, agent: str = "claude-1", **wish: Any) -> None:
        self.shop = shop
        self.task = shop.add(**wish)
        self.agent = agent
        self.claim()

    def claim(self) -> None:
        worker = self.shop.lessor.registry.add_worker(NewWorker(agent=self.agent))
        request = ClaimRequest(
            worker=worker.id,
            request_id=new_request_id(),
            secret=new_token(),
            repository=self.shop.repository,
            task=self.task,
        )
        (self.grant,) = self.shop.lessor.leases.claim(request)
        self.desk = self.shop.desk()
        self.token = lease_file(self.desk.tokens_dir, self.grant.lease)
        write_holder(self.token, self.grant.holder)
        self.place: Place = Workplace(self.desk, tell=self.tell).take(self.grant)
        self.gate()

    def gate(self) -> None:
        gate_commits(self.desk, self.grant, self.place, tell=self.tell)

    def tell(self, *said: object, **more: object) -> None:
        self.said = said

    @property
    def worktree(self) -> Path:
        return self.place.worktree

    def git(self, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Git as an agent runs it, and what became of it."""
        return subprocess.run(
            ["git", *args],
            cwd=self.worktree,
            env={**os.environ, **WHO, "GIT_EDITOR": "false", **env},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def done(self, *args: str, **env: str) -> str:
        ended = self.git(*args, **env)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.rstrip("\n")

    def write(self, path: str, text: str = "new\n") -> None:
        place = self.worktree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        git(self.worktree, "add", "-A")

    def commit(self, path: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        self.write(path)
        return self.git("commit", "-m", f"change {path}", *args, **env)

    def head(self) -> str:
        return git(self.worktree, "rev-parse", "HEAD")

    def labels(self, rev: str = "HEAD") -> list[str]:
        """What Lessor reads; git has to see the same."""
        out = git(
            self.worktree, "log", "-1", "--format=%(trailers:key=Lessor-Label,valueonly)", rev
        )
        body = git(self.worktree, "log", "-1", "--format=%B", rev)
        found = labels_of(body.encode())
        assert [line for line in out.split("\n") if line] == found
        return found

    def message(self, rev: str = "HEAD") -> str:
        return git(self.worktree, "log", "-1", "--format=%B", rev).rstrip("\n")


@pytest.fixture
def leased(shop: RunRig) -> Leased:
    return Leased(shop, scopes=("src",))


def test_a_commit_inside_the_scope_is_made_with_its_label(leased: Leased) -> None:
    assert leased.commit("src/app.py").returncode == 0
    assert leased.labels() == [leased.grant.label]


def test_the_scope_grows_over_what_nobody_holds(leased: Leased) -> None:
    assert leased.commit("docs/more.md").returncode == 0
    assert leased.shop.lessor.leases.lease(leased.grant.lease).paths == ("src", "docs")


def test_a_path_that_another_holds_is_refused_with_its_holder_and_one_command(
    leased: Leased,
) -> None:
    other = Leased(leased.shop, agent="codex-1", scopes=("docs",))
    before = leased.head()
    leased.write("lib/new.py")
    ended = leased.commit("docs/it's.md")
    assert ended.returncode == 1
    assert leased.head() == before
    assert f"docs/it's.md belongs to #{other.grant.number} (codex-1)" in ended.stderr
    (command,) = [line for line in ended.stderr.splitlines() if "git restore" in line]
    assert leased.shop.lessor.leases.lease(leased.grant.lease).paths == ("src",)
    assert (leased.worktree / "docs/it's.md").exists()
    # What it says to do does it.
    subprocess.run(
        command.removeprefix("lessor:").strip(), shell=True, check=True, cwd=leased.worktree
    )
    assert leased.git("commit", "-qm", "the rest").returncode == 0
    assert git(leased.worktree, "show", "--format=", "--name-only") == "lib/new.py"


def test_what_was_taken_meanwhile_is_refused_though_it_is_free_again(leased: Leased) -> None:
    other = Leased(leased.shop, agent="codex-1", scopes=("docs",))
    leased.shop.lessor.leases.complete_one(other.grant.holder, Result(said="done"))
    Leased(leased.shop, agent="codex-2", scopes=("lib",))  # a claim frees what has ended
    ended = leased.commit("docs/x.md")
    assert ended.returncode == 1
    assert "these paths can't be part of #1" in ended.stderr
    assert f"docs/x.md was taken meanwhile by #{other.grant.number} (codex-1)" in ended.stderr


def test_a_confined_task_may_commit_nothing_else(shop: RunRig) -> None:
    leased = Leased(shop, scopes=("src",), strict=True)
    ended = leased.commit("docs/x.md")
    assert ended.returncode == 1
    assert "confined to src" in ended.stderr


@pytest.mark.parametrize(
    "args", [["-a"], ["--", "src/app.py", "docs/index.md"], ["-i", "docs/index.md"]]
)
def test_the_index_that_git_commits_is_the_one_that_is_judged(
    leased: Leased, args: Sequence[str]
) -> None:
    Leased(leased.shop, agent="codex-1", scopes=("docs",))
    for path in ("src/app.py", "docs/index.md"):
        (leased.worktree / path).write_text("changed\n")
    ended = leased.git("commit", "-m", "x", *args)
    assert ended.returncode == 1
    assert "docs/index.md belongs to" in ended.stderr


def test_both_sides_of_a_rename_and_a_deletion_count(leased: Leased) -> None:
    Leased(leased.shop, agent="codex-1", scopes=("docs",))
    leased.done("mv", "docs/index.md", "src/index.md")
    assert "docs/index.md belongs to" in leased.git("commit", "-m", "x").stderr
    leased.done("reset", "-q", "--hard")
    leased.done("rm", "-q", "docs/index.md")
    assert "docs/index.md belongs to" in leased.git("commit", "-m", "x").stderr


def test_on_a_branch_without_a_commit_every_path_counts(leased: Leased) -> None:
    Leased(leased.shop, agent="codex-1", scopes=("docs",))
    leased.done("checkout", "-q", "--orphan", "ai/afresh")
    assert "docs/index.md belongs to" in leased.git("commit", "-m", "x").stderr
    leased.done("rm", "-q", "-r", "--cached", "docs")
    assert leased.git("commit", "-qm", "x").returncode == 0


def test_what_a_merge_brings_from_others_is_theirs(leased: Leased) -> None:
    shop = leased.shop
    Leased(shop, agent="codex-1", scopes=("docs",))
    shop.write("docs/index.md", "# theirs\n")
    shop.write("src/app.py", "theirs\n")
    shop.commit("theirs")
    leased.commit("lib/a.py")
    assert leased.git("merge", "-q", "--no-edit", "main").returncode == 0
    leased.done("reset", "-q", "--hard", "HEAD~1")
    leased.write("src/app.py", "ours\n")
    leased.done("commit", "-qm", "ours")
    assert leased.git("merge", "-q", "main").returncode == 1  # a conflict
    leased.write("src/app.py", "both\n")
    assert leased.git("commit", "-q", "--no-edit").returncode == 0
    assert leased.labels() == [leased.grant.label]
    # An edit hidden in a merge is the merge's own.
    leased.done("reset", "-q", "--hard", "HEAD~1")
    leased.git("merge", "-q", "main")
    leased.write("src/app.py", "both\n")
    leased.write("docs/index.md", "mine now\n")
    assert "docs/index.md belongs to" in leased.git("commit", "-q", "--no-edit").stderr


def end(leased: Leased, how: str) -> None:
    shop = leased.shop
    if how == "forced":
        shop.lessor.leases.force_release(leased.task, actor="ann", reason="stuck", checked="looked")
    elif how == "completed":
        shop.lessor.leases.complete_one(leased.grant.holder, Result(said="done"))
    else:
        shop.lessor.tasks.cancel([leased.task], actor="ann", reason="no")


@pytest.mark.parametrize("token", ["there", "gone"])
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("forced", "a person released it by force"),
        ("completed", "it was completed"),
        ("cancelled", "a person cancelled the task"),
    ],
)
def test_after_a_lost_lease_no_commit_is_made_and_nothing_is_lost(
    leased: Leased, how: str, why: str, token: str
) -> None:
    end(leased, how)
    if token == "gone":
        forget_holder(leased.token)
    before = leased.head()
    ended = leased.commit("src/new.py", LESSOR_COMMIT_UNASKED="1")
    assert ended.returncode == 1
    assert leased.head() == before
    assert f"#1 can't be committed at epoch 1: {why}" in ended.stderr
    assert "nothing is lost" in ended.stderr
    assert "lessor show 1" in ended.stderr
    assert git(leased.worktree, "status", "--porcelain") == "A  src/new.py"
    assert leased.git("rebase", "-q", "--force-rebase", "HEAD~0").returncode == 1
    assert leased.git("commit", "-qm", "x", "--no-verify").returncode == 0


def test_who_holds_the_task_now_is_told(leased: Leased) -> None:
    end(leased, "forced")
    old, stale = leased.worktree, leased.place
    leased.agent = "codex-1"
    leased.claim()
    assert leased.worktree != old
    leased.place, mine = stale, leased.place
    ended = leased.commit("src/new.py")
    assert "codex-1 holds it now at epoch 2" in ended.stderr
    leased.place = mine
    assert leased.commit("src/new.py").returncode == 0


def test_a_process_of_the_last_epoch_commits_nothing_in_the_next_ones_worktree(
    leased: Leased,
) -> None:
    leased.grant = replace(leased.grant, epoch=2)
    leased.gate()
    theirs = {"LESSOR_TASK": leased.task, "LESSOR_EPOCH": "1"}
    assert "this worktree is epoch 2's now" in leased.commit("src/x", **theirs).stderr
    leased.grant = replace(leased.grant, epoch=1)
    leased.gate()
    assert leased.commit("src/x", **theirs).returncode == 0


def test_a_store_that_cannot_be_asked_refuses_and_leaves_the_word_to_whoever_commits(
    leased: Leased,
) -> None:
    store = Path(leased.shop.url.removeprefix("sqlite://"))
    away = store.with_name("away.db")
    before = leased.head()
    leased.shop.lessor.close()
    store.rename(away)
    try:
        ended = leased.commit("src/new.py")
        assert ended.returncode == 1
        assert leased.head() == before
        assert "nobody can say whether the lease still holds" in ended.stderr
        assert "LESSOR_COMMIT_UNASKED=1 git commit" in ended.stderr
        assert not store.exists(), "no empty store was made in its place"
        ended = leased.git("commit", "-qm", "x", LESSOR_COMMIT_UNASKED="1")
        assert ended.returncode == 0
        assert "judged at completion" in ended.stderr
        assert leased.labels() == [leased.grant.label]
    finally:
        away.rename(store)


def test_a_person_may_let_a_whole_run_commit_without_asking(
    shop: RunRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For agents that can't reach the store: in a container, or in a sandbox."""
    task = shop.add()
    agent = (
        'cd "$LESSOR_WORKTREE"; here=$(git rev-parse --absolute-git-dir)/lessor-hooks; '
        'sed -i "s|sqlite://|sqlite:///nowhere|" "$here/lease.json"; '
        'echo x > new; git add -A; git commit -qm "by hand"; exit $?'
    )
    monkeypatch.setenv("LESSOR_COMMIT_UNASKED", "1")
    assert shop.run(agent) == 0
    assert shop.messages(task)[0].startswith("by hand")


def test_a_worktree_that_has_lost_what_its_hooks_know_refuses_and_labels_nothing(
    leased: Leased,
) -> None:
    (hooks_folder(leased.worktree) / "lease.json").unlink()
    ended = leased.commit("src/x")
    assert ended.returncode == 1
    assert "doesn't say which lease" in ended.stderr
    ended = leased.git("commit", "-qm", "x", "--no-verify")
    assert ended.returncode == 0
    assert ended.stderr.splitlines()[-1] == "lessor: the commit is made without its label."
    assert leased.labels() == []


def test_nothing_in_the_worktree_is_imported_by_the_gate(leased: Leased) -> None:
    for name in ("json.py", "lessor/__init__.py", "click.py", "re.py"):
        leased.write(name, "raise SystemExit(9)\n")
    assert leased.git("commit", "-qm", "x", PYTHONPATH=str(leased.worktree)).returncode == 0


# The label, exactly once.


def editor(tmp_path: Path, text: str) -> str:
    """An editor that does this to the lines of the message."""
    path = tmp_path / "editor.py"
    path.write_text(
        "import sys\npath = sys.argv[1]\ntext = open(path).read()\n"
        f"open({str(tmp_path / 'seen')!r}, 'w').write(text)\n{text}\nopen(path, 'w').write(text)\n"
    )
    return f"{sys.executable} {path}"


TYPE = "text = 'typed\\n\\nwhy\\n' + text"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"commit.verbose": "true"},
        {"core.commentChar": ";"},
        {"core.commentChar": "auto"},
        {"commit.cleanup": "scissors", "commit.verbose": "true"},
        {"commit.cleanup": "scissors"},
        {"commit.cleanup": "whitespace", "commit.status": "false"},
        {"commit.cleanup": "strip", "core.commentChar": "%"},
    ],
    ids=str,
)
def test_with_an_editor_the_label_is_there_once(
    leased: Leased, tmp_path: Path, settings: dict[str, str]
) -> None:
    given = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    for number in range(2):  # once by `git -c`, once out of the configuration
        leased.write(f"src/{number}")
        typed = editor(tmp_path, TYPE)
        leased.done(*given, "commit", "-q", GIT_EDITOR=typed)
        assert "Lessor-Label" not in (tmp_path / "seen").read_text()
        assert leased.labels() == [leased.grant.label]
        assert leased.message().startswith("typed\n\nwhy")
        leased.done(*given, "commit", "-q", "--amend", GIT_EDITOR=editor(tmp_path, ""))
        assert leased.labels() == [leased.grant.label]
        assert leased.message().count("Lessor-Label") == 1
        for name, value in settings.items():
            git(leased.worktree, "config", "--worktree", name, value)
        given = []


@pytest.mark.parametrize("text", ["", "text = ''", "text = '# only a comment\\n'"])
def test_an_empty_message_still_means_that_nothing_is_committed(
    leased: Leased, tmp_path: Path, text: str
) -> None:
    before = leased.head()
    leased.write("src/x")
    ended = leased.git("commit", GIT_EDITOR=editor(tmp_path, text))
    assert ended.returncode == 1
    assert "empty commit message" in ended.stderr
    assert leased.head() == before
    leased.done("commit", "-qm", "one")
    if text:
        before = leased.head()
        assert leased.git("commit", "--amend", GIT_EDITOR=editor(tmp_path, text)).returncode == 1
        assert leased.head() == before


def test_a_template_that_nobody_touched_still_means_that_nothing_is_committed(
    leased: Leased, tmp_path: Path
) -> None:
    (tmp_path / "template").write_text("ABC-\n")
    leased.write("src/x")
    asked = ["-c", f"commit.template={tmp_path / 'template'}", "commit"]
    assert leased.git(*asked, GIT_EDITOR=editor(tmp_path, "")).returncode == 1
    assert leased.git(*asked, GIT_EDITOR=editor(tmp_path, TYPE)).returncode == 0
    assert leased.labels() == [leased.grant.label]


def test_every_way_to_commit_gives_it_once(leased: Leased, tmp_path: Path) -> None:
    label = [leased.grant.label]
    leased.write("src/a")
    leased.done("commit", "-q", "-m", "subject", "-m", "#12 is text", "-s")
    assert leased.labels() == label
    assert "#12 is text" in leased.message()
    leased.done("commit", "-q", "--amend", "--no-edit")
    assert leased.labels() == label
    leased.done("commit", "-q", "--amend", "--no-verify", "-m", "again")
    assert leased.labels() == label
    leased.write("src/b")
    leased.done("commit", "-q", "-m", "b", "--trailer", "Fixes: #1")
    assert leased.labels() == label
    leased.done("commit", "-q", "--allow-empty", "-C", "HEAD")
    assert leased.labels() == label
    leased.done("revert", "--no-edit", "HEAD~1")
    assert leased.labels() == label


def test_a_merge_a_cherry_pick_and_applied_mail_give_it_once(
    leased: Leased, tmp_path: Path
) -> None:
    label = [leased.grant.label]
    shop = leased.shop
    git(shop.root, "checkout", "-q", "-b", "side")
    shop.write("web/x", "x\n")
    picked = shop.commit("side work")
    shop.write("web/y", "y\n")
    mailed = shop.commit("mailed work")
    git(shop.root, "checkout", "-q", "main")
    shop.write("web/z", "z\n")
    shop.commit("main moved")
    leased.done("cherry-pick", "-x", picked)
    assert leased.labels() == label
    assert "cherry picked from" in leased.message()
    (tmp_path / "mail").write_text(git(shop.root, "format-patch", "-1", "--stdout", mailed))
    leased.done("am", "-q", str(tmp_path / "mail"))
    assert leased.labels() == label
    leased.done("merge", "-q", "--no-edit", "main")
    assert leased.labels() == label
    leased.done("merge", "-q", "--no-ff", "-m", "again", "side")
    assert leased.labels() == label


def test_a_rebase_gives_it_once_also_to_what_it_squashes(leased: Leased, tmp_path: Path) -> None:
    shop = leased.shop
    base = leased.head()
    for name in "abcd":
        leased.write(f"src/{name}")
        subject = f"fixup! {name}" if name == "c" else name
        leased.done("-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", subject)
    shop.write("web/z", "z\n")
    shop.commit("main moved")
    leased.done("rebase", "-q", "main")
    revs = git(leased.worktree, "rev-list", "main..HEAD").split()
    assert [leased.labels(rev) for rev in revs] == [[leased.grant.label]] * 4
    squash = "text = ''.join(l if i % 2 == 0 else l.replace('pick', 'squash', 1) for i, l in enumerate(text.splitlines(True)))"
    leased.done(
        *("rebase", "-q", "-i", "main"),
        GIT_SEQUENCE_EDITOR=editor(tmp_path, squash),
        GIT_EDITOR="true",
    )
    revs = git(leased.worktree, "rev-list", "main..HEAD").split()
    assert len(revs) == 2
    for rev in revs:
        assert leased.labels(rev) == [leased.grant.label]
        assert leased.message(rev).count("Lessor-Label") == 1
    assert base != leased.head()


def test_the_persons_hook_that_judges_messages_sees_none_of_it(
    leased: Leased, tmp_path: Path
) -> None:
    hook = leased.shop.root / ".git" / "hooks" / "commit-msg"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncat "$1" >> %s\n! grep -q Lessor "$1"\n' % (tmp_path / "judged"))
    hook.chmod(0o755)
    leased.write("src/a")
    leased.done("commit", "-q", "-m", "subject")
    leased.done("commit", "-q", "--amend", "--no-edit")
    assert (tmp_path / "judged").read_text() == "subject\n" * 2
    assert leased.labels() == [leased.grant.label]


def test_a_password_is_not_kept_beside_the_hooks(leased: Leased) -> None:
    leased.desk = replace(leased.desk, store_url="postgresql://ann:s3cret@127.0.0.1:1/x")
    leased.gate()
    kept = [p for p in (leased.shop.root / ".git").rglob("*") if p.is_file()]
    assert not [p for p in kept if b"s3cret" in p.read_bytes()]
    ended = leased.commit("src/x")
    assert ended.returncode == 1
    assert "nobody can say whether the lease still holds" in ended.stderr
    assert "s3cret" not in ended.stderr


def test_without_store_and_token_the_lease_counts_as_lost(leased: Leased) -> None:
    leased.desk = replace(leased.desk, store_url="postgresql://ann@127.0.0.1:1/x")
    leased.gate()
    forget_holder(leased.token)
    ended = leased.commit("src/x", LESSOR_COMMIT_UNASKED="1")
    assert ended.returncode == 1
    assert "its run is over" in ended.stderr


def test_a_live_lease_without_its_token_here_commits_nothing(leased: Leased) -> None:
    forget_holder(leased.token)
    ended = leased.commit("src/x", LESSOR_COMMIT_UNASKED="1")
    assert ended.returncode == 1
    assert "the lease's token isn't here any more" in ended.stderr


def test_a_whole_run_commits_through_the_gate(shop: RunRig) -> None:
    task = shop.add(scopes=("src",))
    assert shop.run('echo x > src/new.py; git add -A; git commit -qm "by hand" || exit 5') == 0
    assert shop.messages(task)[0].count("Lessor-Label") == 1


def test_hooks_that_the_setup_command_installs_run_too(shop: RunRig) -> None:
    from lessor.runner.desk import Plan  # noqa: PLC0415

    ran = shop.directory / "ran"
    setup = (
        'h=$(git rev-parse --git-path hooks); mkdir -p "$h"; '
        f'printf "#!/bin/sh\\necho ran >> {ran}\\n" > "$h/pre-commit"; chmod +x "$h/pre-commit"'
    )
    shop.add()
    assert (
        shop.run("echo x > src/new.py; git add -A; git commit -qm x", plan=Plan(setup=setup)) == 0
    )
    assert ran.read_text() == "ran\n"
    assert (shop.root / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize("verb", ["paths", "label"])
def test_a_commit_waits_for_no_module_that_it_does_not_need(
    leased: Leased, tmp_path: Path, verb: str
) -> None:
    """Nearly all that the gate costs is its imports."""
    leased.write("src/new.py")
    message = tmp_path / "message"
    message.write_text("change\n")
    folder = str(hooks_folder(leased.worktree))
    asked = {"paths": ["paths"], "label": ["label", str(message), "message"]}[verb]
    code = (
        "import sys; from lessor.guard.commit import main\n"
        "code = main(sys.argv[1:]); print(*sys.modules); sys.exit(code)"
    )
    ended = subprocess.run(
        [sys.executable, "-P", "-E", "-c", code, *asked, folder],
        cwd=leased.worktree,
        env={**os.environ, "GIT_EDITOR": ":"},
        capture_output=True,
        text=True,
        check=True,
    )
    spared = {"tempfile", "importlib.resources", "psycopg", "click", "rich", "asyncio"}
    if verb == "label":
        spared |= {"apsw", "dataclasses", "subprocess", "lessor.store"}
        assert "Lessor-Label" in message.read_text()
    assert spared & set(ended.stdout.split()) == set()
