"""A repository full of branches of every kind, made from a seed, each with what became of it."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

LINES = 24
AGENT = "Agent <agent@example.org>"
OTHER = "Somebody Else <else@example.org>"
BEGIN = 1_700_000_000

Lines = tuple[str, ...]
Files = Mapping[str, Lines | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A branch that was made, and what is right to say of it; None where the kind doesn't say."""

    verdict: str
    base: str | None
    kind: str = ""
    branch: str = ""
    seen: str | None = None
    holders: frozenset[str] | None = None
    parts: tuple[int, int] | None = None


class Story:
    """Writes history through `git fast-import`; each branch has a file of its own on main."""

    def __init__(self, top: Path, *, seed: int, branches: int) -> None:
        self.chance = random.Random(seed)
        self._importer = subprocess.Popen(
            ["git", "fast-import", "--quiet", "--force"],
            cwd=top,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._marks = 0
        self._mark: dict[str, str] = {}
        self._seconds = BEGIN
        files: dict[str, Lines | None] = {self.path(n): self.lines(n) for n in range(branches)}
        self.main = [self.commit("main", "begin", {**files, "filler.txt": ("0",)})]

    def path(self, n: int) -> str:
        return f"part{n % 50:02}/file{n:05}.txt"

    def lines(self, n: int) -> Lines:
        return tuple(f"file {n} line {k}" for k in range(LINES))

    def edited(self, n: int, steps: int, *, by: str = "branch") -> Files:
        """The file of branch `n` after so many edits, each of another part of it."""
        places = range(0, steps * 8, 8)
        return {
            self.path(n): tuple(
                f"{line}, edited by {by}" if k in places else line
                for k, line in enumerate(self.lines(n))
            )
        }

    def only(self, n: int, step: int) -> Files:
        """The file of branch `n` with this one edit."""
        done = self.edited(n, step)[self.path(n)]
        before = self.edited(n, step - 1)[self.path(n)]
        assert done is not None
        assert before is not None
        lines = (
            new if new != old else line
            for new, old, line in zip(done, before, self.lines(n), strict=True)
        )
        return {self.path(n): tuple(lines)}

    def commit(
        self,
        branch: str,
        message: str,
        files: Files,
        *,
        start: str | None = None,
        merge: str | None = None,
        author: str = AGENT,
        authored: int | None = None,
    ) -> str:
        """A commit on top of `start`; its id."""
        self._marks += 1
        self._seconds += 60
        text = message.encode()
        out = self._stdin
        out.write(f"commit refs/heads/{branch}\nmark :{self._marks}\n".encode())
        out.write(f"author {author} {authored or self._seconds} +0000\n".encode())
        out.write(f"committer {AGENT} {self._seconds} +0000\n".encode())
        out.write(b"data %d\n%s\n" % (len(text), text))
        out.write(f"from {self._mark[start]}\n".encode() if start else b"")
        out.write(f"merge {self._mark[merge]}\n".encode() if merge else b"")
        for path, content in files.items():
            if content is None:
                out.write(f"D {path}\n".encode())
                continue
            body = "".join(f"{line}\n" for line in content).encode()
            out.write(f"M 100644 inline {path}\ndata {len(body)}\n".encode() + body + b"\n")
        out.write(f"\nget-mark :{self._marks}\n".encode())
        out.flush()
        assert self._importer.stdout is not None
        made = self._importer.stdout.readline().decode().strip()
        self._mark[made] = f":{self._marks}"
        return made

    def land(
        self,
        message: str,
        files: Files,
        *,
        merge: str | None = None,
        author: str = AGENT,
        authored: int | None = None,
    ) -> str:
        """A commit on main; its id."""
        made = self.commit(
            "main",
            message,
            files,
            start=self.main[-1],
            merge=merge,
            author=author,
            authored=authored,
        )
        self.main.append(made)
        return made

    def fill(self) -> None:
        self.land("filler", {"filler.txt": (str(len(self.main)),)})

    def fork(self) -> str:
        """A commit that main was at lately."""
        return self.main[-1 - self.chance.randrange(min(len(self.main), 12))]

    def point(self, branch: str, oid: str) -> None:
        self._stdin.write(f"reset refs/heads/{branch}\nfrom {self._mark[oid]}\n\n".encode())

    def work(self, n: int, branch: str, base: str, count: int) -> list[tuple[str, int]]:
        """`count` commits on the branch, oldest first; the id and the author's time of each."""
        done: list[tuple[str, int]] = []
        for k in range(1, count + 1):
            files = self.edited(n, k)
            tip = self.commit(branch, f"step {k}", files, start=done[-1][0] if done else base)
            done.append((tip, self._seconds))
        return done

    def close(self) -> None:
        with self._importer:  # closes both ends, and waits
            self._stdin.close()
        assert self._importer.returncode == 0

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._importer.stdin is not None
        return self._importer.stdin


# A kind yields to let time pass on main, and returns what is right in the end.
Kind = Callable[[Story, int, str], Generator[None, None, Made]]
KINDS: dict[str, tuple[int, Kind]] = {}


def kind(weight: int) -> Callable[[Kind], Kind]:
    def add(function: Kind) -> Kind:
        KINDS[function.__name__] = (weight, function)
        return function

    return add


def tell(top: Path, *, seed: int, branches: int) -> list[Made]:
    """Make the repository at `top`, which is empty; what is right for each of its branches."""
    story = Story(top, seed=seed, branches=branches)
    names = [name for name, (weight, _) in KINDS.items() for _ in range(weight)]
    running: list[tuple[str, str, Generator[None, None, Made]]] = []
    made: list[Made] = []

    def advance(one: tuple[str, str, Generator[None, None, Made]]) -> None:
        name, branch, steps = one
        try:
            next(steps)
        except StopIteration as done:
            found: Made = done.value
            more = {"verdict": found.verdict, "base": found.base, "seen": found.seen}
            made.append(
                Made(kind=name, branch=branch, holders=found.holders, parts=found.parts, **more)
            )
            running.remove(one)

    for n in range(branches):
        # Every kind comes up, then by their weights.
        name = [*KINDS][n] if n < len(KINDS) else story.chance.choice(names)
        branch = f"claude/{n}-work"
        running.append((name, branch, KINDS[name][1](story, n, branch)))
        advance(running[-1])
        for one in story.chance.sample(running, min(len(running), 2)):
            advance(one)
        if story.chance.random() < 0.3:
            story.fill()
    while running:
        advance(running[0])
    story.fill()
    story.close()
    return sorted(made, key=lambda one: int(one.branch.split("/")[1].split("-")[0]))


def _count(story: Story) -> int:
    return story.chance.choice((1, 1, 2, 3))


def _revert(story: Story, oid: str, files: Files, *, told: bool = True) -> str:
    text = f'Revert "work"\n\nThis reverts commit {oid}.' if told else "take it out again"
    return story.land(text, files)


@kind(10)
def empty(story: Story, n: int, branch: str):
    base = story.fork()
    story.point(branch, base)
    yield
    return Made(verdict="empty", base=base)


@kind(1)
def moved_forward(story: Story, n: int, branch: str):
    """Without a word of whose the commits are: the same as a fast-forward, in history."""
    base = story.main[-1]
    yield
    story.fill()
    story.point(branch, story.main[-1])
    yield
    return Made(verdict="unknown", base=base)


@kind(12)
def merged(story: Story, n: int, branch: str):
    base, count = story.fork(), _count(story)
    tip = story.work(n, branch, base, count)[-1][0]
    yield
    held = story.land(f"Merge {branch}", story.edited(n, count), merge=tip)
    return Made(verdict="merged", base=base, holders=frozenset({held}))


@kind(2)
def merged_without_a_base(story: Story, n: int, branch: str):
    tip = story.work(n, branch, story.fork(), 2)[-1][0]
    yield
    held = story.land(f"Merge {branch}", story.edited(n, 2), merge=tip)
    return Made(verdict="merged", base=None, holders=frozenset({held}))


@kind(2)
def fast_forwarded(story: Story, n: int, branch: str):
    base = story.main[-1]
    yield
    held = story.land("step 1", story.edited(n, 1))
    story.point(branch, held)
    yield
    return Made(verdict="merged", base=base, seen=held, holders=frozenset({held}))


@kind(1)
def fast_forwarded_with_a_label(story: Story, n: int, branch: str):
    base = story.main[-1]
    yield
    label = f"owner=claude-1;branch={branch};env=none;task=task_{n};epoch=1"
    held = story.land(f"step 1\n\nLessor-Label: {label}", story.edited(n, 1))
    story.point(branch, held)
    return Made(verdict="merged", base=base, holders=frozenset({held}))


@kind(14)
def squashed(story: Story, n: int, branch: str):
    base, count = story.fork(), story.chance.choice((2, 3))
    story.work(n, branch, base, count)
    yield
    held = story.land("Squash it (#5)", story.edited(n, count))
    return Made(verdict="squashed", base=base, holders=frozenset({held}), parts=(count, count))


@kind(2)
def squashed_by_somebody_who_names_it(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 2)
    yield
    held = story.land(f"Squash of {branch}", story.edited(n, 2), author=OTHER)
    return Made(verdict="squashed", base=base, holders=frozenset({held}))


@kind(3)
def squashed_then_edited(story: Story, n: int, branch: str):
    """A merge would conflict now, and it landed all the same."""
    base = story.fork()
    story.work(n, branch, base, 2)
    yield
    held = story.land("Squash it", story.edited(n, 2))
    yield
    story.land("improve it", story.edited(n, 2, by="main"))
    return Made(verdict="squashed", base=base, holders=frozenset({held}))


@kind(2)
def squashed_and_deleted(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, f"gone-{n}", base, 2)[-1][0]
    yield
    held = story.land("Squash it", story.edited(n, 2))
    return Made(verdict="squashed", base=base, seen=tip, holders=frozenset({held}))


@kind(10)
def rebased(story: Story, n: int, branch: str):
    base, count = story.fork(), _count(story)
    done = story.work(n, branch, base, count)
    yield
    held = [
        story.land(f"step {k}", story.edited(n, k), authored=at)
        for k, (_, at) in enumerate(done, start=1)
    ]
    return Made(verdict="rebased", base=base, holders=frozenset(held), parts=(count, count))


@kind(1)
def picked_by_somebody(story: Story, n: int, branch: str):
    base = story.fork()
    ((tip, _),) = story.work(n, branch, base, 1)
    yield
    text = f"step 1\n\n(cherry picked from commit {tip})"
    held = story.land(text, story.edited(n, 1), author=OTHER)
    return Made(verdict="rebased", base=base, holders=frozenset({held}))


@kind(3)
def half_picked(story: Story, n: int, branch: str):
    base = story.fork()
    done = story.work(n, branch, base, 3)
    yield
    held = story.land("step 2", story.only(n, 2), authored=done[1][1])
    return Made(verdict="partly", base=base, holders=frozenset({held}), parts=(1, 3))


@kind(2)
def went_on_after_a_squash(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 3)
    yield
    held = story.land("Squash of the first two", story.edited(n, 2))
    return Made(verdict="partly", base=base, holders=frozenset({held}), parts=(2, 3))


@kind(2)
def went_on_after_a_merge(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, branch, base, 2)[-1][0]
    yield
    held = story.land("Merge the first two", story.edited(n, 2), merge=tip)
    yield
    story.commit(branch, "step 3", story.edited(n, 3), start=tip)
    return Made(verdict="partly", base=base, holders=frozenset({held}), parts=(2, 3))


@kind(2)
def squashed_then_reverted(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 2)
    yield
    held = story.land("Squash it", story.edited(n, 2))
    yield
    _revert(story, held, story.edited(n, 0), told=story.chance.random() < 0.5)
    return Made(verdict="reverted", base=base, holders=frozenset({held}))


@kind(2)
def merged_then_reverted(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, branch, base, 2)[-1][0]
    yield
    held = story.land("Merge it", story.edited(n, 2), merge=tip)
    yield
    _revert(story, held, story.edited(n, 0), told=story.chance.random() < 0.5)
    return Made(verdict="reverted", base=base, holders=frozenset({held}))


@kind(2)
def rebased_then_reverted(story: Story, n: int, branch: str):
    base = story.fork()
    done = story.work(n, branch, base, 2)
    yield
    held = [
        story.land(f"step {k}", story.edited(n, k), authored=at)
        for k, (_, at) in enumerate(done, start=1)
    ]
    yield
    if story.chance.random() < 0.5:
        story.land("take both out again", story.edited(n, 0))
    else:
        _revert(story, held[1], story.edited(n, 1))
        _revert(story, held[0], story.edited(n, 0))
    return Made(verdict="reverted", base=base, holders=frozenset(held), parts=(0, 2))


@kind(1)
def rebased_then_half_reverted(story: Story, n: int, branch: str):
    base = story.fork()
    done = story.work(n, branch, base, 2)
    yield
    held = [
        story.land(f"step {k}", story.edited(n, k), authored=at)
        for k, (_, at) in enumerate(done, start=1)
    ]
    yield
    _revert(story, held[1], story.edited(n, 1))
    return Made(verdict="partly", base=base, parts=(1, 2))


@kind(1)
def reverted_and_brought_back(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 2)
    yield
    held = story.land("Squash it", story.edited(n, 2))
    yield
    undone = _revert(story, held, story.edited(n, 0))
    yield
    _revert(story, undone, story.edited(n, 2))
    return Made(verdict="squashed", base=base)


@kind(3)
def undone_on_the_branch(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, branch, base, 2)[-1][0]
    story.commit(branch, "never mind", story.edited(n, 0), start=tip)
    yield
    return Made(verdict="no-change", base=base)


@kind(2)
def only_empty_commits(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.commit(branch, "nothing", {}, start=base)
    story.commit(branch, "still nothing", {}, start=tip)
    yield
    return Made(verdict="no-change", base=base)


@kind(2)
def done_by_somebody_else(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 1)
    yield
    held = story.land("fix the same", story.edited(n, 1), author=OTHER)
    return Made(verdict="equivalent", base=base, holders=frozenset({held}))


@kind(1)
def done_by_another_agent(story: Story, n: int, branch: str):
    """With the same author, as all agents of a person have; the label tells them apart."""
    base = story.fork()
    story.work(n, branch, base, 1)
    yield
    label = f"owner=codex-1;branch=codex/{n}-other;env=none;task=task_x;epoch=1"
    held = story.land(f"the same\n\nLessor-Label: {label}", story.edited(n, 1))
    return Made(verdict="equivalent", base=base, holders=frozenset({held}))


@kind(1)
def contained_in_something_larger(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 2)
    yield
    story.land("a large cleaning", {**story.edited(n, 2), f"large{n}.txt": ("x",)})
    return Made(verdict="equivalent", base=base, holders=frozenset())


@kind(2)
def different_in_white_space(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, 1)
    yield
    lines = story.edited(n, 1)[story.path(n)]
    assert lines is not None
    story.land("step 1", {story.path(n): (f"  {lines[0]}", *lines[1:])})
    return Made(verdict="conflicting", base=base)


@kind(8)
def conflicting(story: Story, n: int, branch: str):
    base = story.fork()
    story.work(n, branch, base, _count(story))
    yield
    story.land("another way", story.edited(n, 1, by="main"))
    return Made(verdict="conflicting", base=base)


@kind(30)
def open_(story: Story, n: int, branch: str):
    base, count = story.fork(), _count(story)
    story.work(n, branch, base, count)
    yield
    return Made(verdict="open", base=base, parts=(0, count))


@kind(4)
def open_with_main_merged_in(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, branch, base, 1)[-1][0]
    yield
    # fast-import takes the tree of the first parent: main's, with the branch's file put in.
    merge = story.commit(branch, "Merge main", story.edited(n, 1), start=story.main[-1], merge=tip)
    yield
    story.commit(branch, "step 2", story.edited(n, 2), start=merge)
    return Made(verdict="open", base=base)


@kind(2)
def squashed_with_main_merged_in(story: Story, n: int, branch: str):
    base = story.fork()
    tip = story.work(n, branch, base, 1)[-1][0]
    yield
    merge = story.commit(branch, "Merge main", story.edited(n, 1), start=story.main[-1], merge=tip)
    story.commit(branch, "step 2", story.edited(n, 2), start=merge)
    yield
    held = story.land("Squash it", story.edited(n, 2))
    return Made(verdict="squashed", base=base, holders=frozenset({held}))


@kind(1)
def rebased_without_what_a_merge_held(story: Story, n: int, branch: str):
    """Its two commits were picked; an edit that was hidden in its merge of main wasn't."""
    base = story.fork()
    ((tip, first),) = story.work(n, branch, base, 1)
    yield
    hidden = {**story.edited(n, 1), f"hidden{n}.txt": ("x",)}
    merge = story.commit(branch, "Merge main", hidden, start=story.main[-1], merge=tip)
    last = story.commit(branch, "step 2", story.edited(n, 2), start=merge)
    assert last
    second = story._seconds
    yield
    story.land("step 1", story.edited(n, 1), authored=first)
    story.land("step 2", story.edited(n, 2), authored=second)
    return Made(verdict="partly", base=base, parts=(2, 3))


@kind(1)
def the_base_is_gone(story: Story, n: int, branch: str):
    story.work(n, branch, story.fork(), 1)
    yield
    return Made(verdict="unknown", base=f"{n:040x}")


@kind(1)
def nothing_is_there(story: Story, n: int, branch: str):
    yield
    return Made(verdict="missing", base=story.main[0])
