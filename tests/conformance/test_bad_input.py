"""What comes in wrong: a typed refusal that says what to do, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from builders import Yard
from lessor.connect import connect
from lessor.errors import InvalidError, LessorError
from lessor.ids import public_id
from lessor.model.grant import Failure, Grant, Result
from lessor.model.task import NewTask
from lessor.model.worker import NewWorker

NUL, HALF, BELL = "a\0b", "\ud800", "a\x07b"
HUGE = "x" * (5 * 1024 * 1024)
INJECTED = ("a;branch=main", "a=b", "task_1;epoch=9", "'; DROP TABLE task; --", "%s", ":now")
WRONG_TYPES: tuple[Any, ...] = (None, 5, 1.5, b"bytes", ["x"], {"x": 1}, object(), True)
WRONG_NUMBERS: tuple[Any, ...] = (-1, 2**63, 10**30, 1.5, "1", None, True, float("nan"))

Call = Callable[[], object]


@pytest.fixture
def grant(yard: Yard) -> Grant:
    """A live lease to be wrong about."""
    return yard.running("src")


def refuse_all(yard: Yard, calls: Iterator[tuple[str, Call]]) -> None:
    """Each call is refused with a typed error, and the store is as it was."""
    before = yard.store.contents()
    tried = 0
    for what, call in calls:
        refused: LessorError | None = None
        answer: object = None
        try:
            answer = call()
        except LessorError as error:
            refused = error
        assert refused is not None, f"{what} was taken: {answer!r}"
        assert refused.code != "internal", what
        assert len(str(refused)) < 2_000, what
        tried += 1
    assert tried
    assert yard.store.contents() == before


def test_texts_of_a_task(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        names = ("title", "queue", "unique_key", "idempotency_key", "agent", "limit_key")
        wrong: tuple[Any, ...] = (NUL, HALF, BELL, "", "  ", "a\nb", "x" * 600, 5, b"x", ["x"])
        for name in names:
            for value in wrong:
                yield (
                    f"{name}={str(value)[:20]!r}",
                    lambda n=name, v=value: yard.lessor.tasks.submit([yard.asked(**{n: v})]),
                )
        for name, values in (
            ("prompt", (NUL, HALF, HUGE, None, 5)),
            ("check", (NUL, HALF, HUGE, "", 5)),
            ("repository", (5, "", "repo_x", b"x", ["x"])),
            ("effects", ("workspace", None, 5, "magic")),
        ):
            for value in values:
                yield (
                    f"{name}={str(value)[:20]!r}",
                    lambda n=name, v=value: yard.lessor.tasks.submit([yard.asked(**{n: v})]),
                )

    refuse_all(yard, calls())


def test_numbers_flags_and_times_of_a_task(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        for name, values in (
            ("priority", (1001, -1001, 2**63, 1.5, "1", None, True)),
            ("max_attempts", (0, -1, 1001, 1.5, "3", None, True)),
            ("strict", (None, 1, "yes")),
            ("progress", (None, 0, "no")),
            ("delay", (5, "1s", timedelta(-1), timedelta(days=99_999), timedelta.max)),
            ("run_at", ("tomorrow", 5, datetime(2030, 1, 1))),  # noqa: DTZ001 - that is what is wrong
        ):
            for value in values:
                yield (
                    f"{name}={value!r}",
                    lambda n=name, v=value: yard.lessor.tasks.submit([yard.asked(**{n: v})]),
                )
        both = {"delay": timedelta(1), "run_at": datetime.fromisoformat("2030-01-01T00:00+00:00")}
        yield "both times", lambda: yard.lessor.tasks.submit([yard.asked(**both)])

    refuse_all(yard, calls())


def test_lists_of_a_task(yard: Yard) -> None:
    many = tuple(f"d{n}" for n in range(10_001))

    def calls() -> Iterator[tuple[str, Call]]:
        for name, values in (
            ("scopes", (many, "src", None, 5, (5,), (None,), (NUL,), (HUGE,))),
            ("reads", (many, "src", {"src"}, (b"src",), (HALF,))),
            ("capabilities", (tuple("ab" * 60), "gpu", (5,), ("",), (BELL,))),
            ("needs", ("task_x", (5,), (None,), ("task_x",), ("x" * 1_000,), many)),
            ("needs_index", ((0,), (1,), (-1,), ("0",), (True,), (1.0,), 5, many)),
        ):
            for value in values:
                yield (
                    f"{name}={str(value)[:30]!r}",
                    lambda n=name, v=value: yard.lessor.tasks.submit([yard.asked(**{n: v})]),
                )
        for path in (
            "..",
            "a/../b",
            "/etc",
            "a\\b",
            "C:/x",
            ".git/config",
            "a/.GIT",
            "a\tb",
            "x" * 5_000,
        ):
            yield (
                f"scope {path[:20]!r}",
                lambda p=path: yard.lessor.tasks.submit([yard.asked(scopes=(p,))]),
            )
        for branch in (
            "main",
            "x",
            "feature/",
            "feature/A",
            "feature/a..b",
            5,
            "",
            "feature/a.lock",
        ):
            yield (
                f"branch {branch!r}",
                lambda b=branch: yard.lessor.tasks.submit([yard.asked(branch=b)]),
            )

    refuse_all(yard, calls())


def test_what_is_no_task(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        submit: Any = yard.lessor.tasks.submit
        for value in (None, "task", 5, NewTask(title="x"), [None], ["x"], [{"title": "x"}]):
            yield f"{value!r}"[:40], lambda v=value: submit(v)
        yield "too many", lambda: submit([NewTask(title="x")] * 10_001)
        one = [yard.asked()]
        for value in (NUL, HALF, None, 5, "x" * 70_000):
            yield f"submitter {value!r:.20}", lambda v=value: submit(one, submitter=v)
        for value in (NUL, BELL, 5, "x" * 300, " a", ["x"]):
            yield f"request {value!r:.20}", lambda v=value: submit(one, request_id=v)
        yield "scope without repository", lambda: submit([NewTask(title="x", scopes=("a",))])
        yield "branch without repository", lambda: submit([NewTask(title="x", branch="fix/a")])
        amend: Any = yard.lessor.tasks.amend
        task = yard_task
        for value in (None, "x", 5, yard.asked(title="")):
            yield f"amend {value!r:.20}", lambda v=value: amend(task, v)
        yield "amend actor", lambda: amend(task, yard.asked(), actor=NUL)

    yard_task = yard.add("there").task
    refuse_all(yard, calls())


def test_ids_that_name_nothing_here(yard: Yard, tmp_path: Any, grant: Grant) -> None:
    other = connect(f"sqlite://{tmp_path}/other.db")
    stray = other.tasks.submit([NewTask(title="x")])[0].task
    other.close()
    key = yard.lessor.store.key
    unknown = public_id("task", store_key=key, row=999_999)
    ids: tuple[Any, ...] = (
        *(stray, unknown, "", "task_", "task_x", grant.task.upper(), grant.task + "0"),
        *(grant.lease, yard.worker.id, "1", "#1", NUL, HALF, HUGE, *INJECTED, *WRONG_TYPES),
        *(public_id("task", store_key=key, row=0), public_id("task", store_key=key, row=2**62 - 1)),
    )

    def calls() -> Iterator[tuple[str, Call]]:
        tasks, leases = yard.lessor.tasks, yard.lessor.leases
        for value in ids:
            what = f"{value!r}"[:40]
            for name in ("task", "why", "history", "needs"):
                yield f"{name} {what}", lambda n=name, v=value: getattr(tasks, n)(v)
            for name in ("cancel", "block", "unblock", "requeue"):
                yield f"{name} {what}", lambda n=name, v=value: getattr(tasks, n)([v])
            yield f"answer {what}", lambda v=value: tasks.answer(v, "yes")
            yield f"amend {what}", lambda v=value: tasks.amend(v, yard.asked())
            yield f"need {what}", lambda v=value: tasks.submit([yard.asked(needs=(v,))])
            yield (
                f"force {what}",
                lambda v=value: leases.force_release(v, actor="a", reason="b", checked="c"),
            )
            yield f"gone {what}", lambda v=value: leases.end_gone(v, epoch=1, proof="p")
            if value is not None:
                yield f"claim {what}", lambda v=value: yard.claim(task=v)
            if value != grant.lease:
                yield f"lease {what}", lambda v=value: leases.lease(v)
            if value and value not in ids[-1:] and value != unknown:  # these are places in the list
                yield f"page {what}", lambda v=value: tasks.tasks(before=v)

    refuse_all(yard, calls())


def test_repositories_and_workers_that_name_nothing_here(yard: Yard, grant: Grant) -> None:
    stray = yard.lessor.naming.repository(99)
    ids: tuple[Any, ...] = (stray, "repo_x", grant.task, NUL, HUGE, 5, b"x", ["x"], object())

    def calls() -> Iterator[tuple[str, Call]]:
        registry, tasks, leases = yard.lessor.registry, yard.lessor.tasks, yard.lessor.leases
        for value in ids:
            what = f"{value!r}"[:40]
            yield f"repository {what}", lambda v=value: registry.repository(v)
            yield (
                f"checkouts {what}",
                lambda v=value: registry.checkouts(v),
            )
            yield (
                f"checkout {what}",
                lambda v=value: registry.add_checkout(v, host_id="h", common_dir="/d"),
            )
            yield f"submit {what}", lambda v=value: tasks.submit([NewTask(title="x", repository=v)])
            yield f"claim {what}", lambda v=value: yard.claim(repository=v)
            yield f"who {what}", lambda v=value: leases.who("src", repository=v)
            yield f"worker {what}", lambda v=value: registry.worker(v)
            yield f"claim by {what}", lambda v=value: yard.claim(worker=v)
            if value is not stray:
                yield f"sweep {what}", lambda v=value: leases.sweep(repository=v)
                yield f"counts {what}", lambda v=value: tasks.counts(repository=v)
                yield f"tasks {what}", lambda v=value: tasks.tasks(repository=v)
                yield f"open {what}", lambda v=value: tasks.open_tasks(repository=v)
                yield f"keyed {what}", lambda v=value: tasks.with_keys(["k"], repository=v)
                yield f"on {what}", lambda v=value: tasks.newest_on(["b"], repository=v)
                yield f"keys {what}", lambda v=value: tasks.open_with_keys("k", repository=v)
                yield f"ready {what}", lambda v=value: tasks.ready(repository=v)
                yield f"leases {what}", lambda v=value: leases.leases(repository=v)
                yield f"retire {what}", lambda v=value: registry.retire_worker(v)
        yield "retire nobody", lambda: registry.retire_worker(yard.lessor.naming.worker(99))

    refuse_all(yard, calls())


def test_claims(yard: Yard) -> None:
    yard.add("work")

    def calls() -> Iterator[tuple[str, Call]]:
        for name, values in (
            ("wanted", (0, 1_001, *WRONG_NUMBERS)),
            ("ttl_ms", (0, 19, -5, 400 * 24 * 3_600_000, 1.5, "60", True)),
            ("max_hold_ms", (0, -1, 59_999, 2**63, 1.5, "9", True)),
            ("request_id", ("", NUL, BELL, HALF, "x" * 300, None, 5, " a")),
            ("secret", ("", "short", NUL * 20, HALF * 20, None, 5, "x" * 2_000)),
            ("queue", ("", NUL, BELL, None, 5, "x" * 300)),
        ):
            for value in values:
                yield f"{name}={value!r:.30}", lambda n=name, v=value: yard.claim(**{n: v})
        claim: Any = yard.lessor.leases.claim
        for value in (None, "x", 5, {"worker": "x"}):
            yield f"request {value!r}", lambda v=value: claim(v)
        for value in (-1, 2**63, 4_000_000, "5", None, 1.5, True):
            yield f"wait {value!r}", lambda v=value: claim(yard.request(), wait_ms=v)

    refuse_all(yard, calls())


def test_holders(yard: Yard, grant: Grant) -> None:
    wrong: list[Any] = [None, "x", 5, grant, {"task": grant.task}]
    for name, values in (
        ("epoch", (0, *WRONG_NUMBERS)),
        ("token", (NUL, HALF, "x" * 2_000, None, 5)),
        ("task", ("task_x", grant.lease, None, 5, HUGE)),
        ("worker", ("worker_x", grant.task, None, 5)),
    ):
        wrong += [replace(grant.holder, **{name: value}) for value in values]

    def calls() -> Iterator[tuple[str, Call]]:
        leases: Any = yard.lessor.leases
        for value in wrong:
            what = f"{value!r}"[:200]
            yield f"renew {what}", lambda v=value: leases.renew([v])
            yield f"renew one {what}", lambda v=value: leases.renew_one(v)
            yield f"complete {what}", lambda v=value: leases.complete([(v, Result())])
            yield f"complete one {what}", lambda v=value: leases.complete_one(v, Result())
            yield (
                f"fused {what}",
                lambda v=value: leases.complete_and_claim([(v, Result())], yard.request()),
            )
            yield f"fail {what}", lambda v=value: leases.fail(v, Failure(error="x"))
            yield f"release {what}", lambda v=value: leases.release(v)
            yield f"ask {what}", lambda v=value: leases.ask(v, "which?")
            yield f"widen {what}", lambda v=value: leases.widen(v, ["docs"])
            yield f"watch {what}", lambda v=value: leases.watch(v)
            yield f"admit {what}", lambda v=value: leases.admit(v, [])
            yield f"acknowledge {what}", lambda v=value: leases.acknowledge(v)
        for version in (0, *WRONG_NUMBERS):
            holder = replace(grant.holder, version=version)
            yield f"version {version!r}", lambda h=holder: leases.renew_one(h)
        for value in (None, "x", 5, grant.holder, [grant.holder] * 10_001):
            yield f"holders {value!r:.30}", lambda v=value: leases.renew(v)
        for value in (NUL, BELL, 5, "x" * 300):
            yield (
                f"request {value!r:.30}",
                lambda v=value: leases.renew([grant.holder], request_id=v),
            )
        for value in (None, "x", [grant.holder], [(grant.holder,)], [(grant.holder, Result(), 1)]):
            yield f"items {value!r:.30}", lambda v=value: leases.complete(v)

    refuse_all(yard, calls())


def test_results_and_reasons(yard: Yard, grant: Grant) -> None:
    results: list[Any] = [None, "done", {}, Result(stage="done"), Result(stage=None)]  # type: ignore[arg-type]
    for name in ("said", "base", "commit", "no_change", "error"):
        results += [Result(**{name: value}) for value in (NUL, HALF, HUGE, 5, b"x")]
    results.append(Result(said=None))  # type: ignore[arg-type]
    results += [
        Result(facts=facts)  # type: ignore[arg-type]
        for facts in (
            *(
                None,
                "x",
                ["x"],
                {"a": object()},
                {"a": [1]},
                {"a": float("nan")},
                {"a": float("inf")},
            ),
            *({5: 1}, {"": 1}, {NUL: 1}, {"a": NUL}, {"a": HUGE}, {str(n): n for n in range(101)}),
        )
    ]

    def calls() -> Iterator[tuple[str, Call]]:
        leases: Any = yard.lessor.leases
        holder, task = grant.holder, grant.task
        for result in results:
            what = f"{result!r}"[:60]
            yield f"complete {what}", lambda r=result: leases.complete_one(holder, r)
            if result is not None:
                yield (
                    f"fail {what}",
                    lambda r=result: leases.fail(holder, Failure(error="x", result=r)),
                )
                yield f"ask {what}", lambda r=result: leases.ask(holder, "?", result=r)
        for failure in (
            *(None, "boom", Failure(error=None), Failure(error=NUL), Failure(error=HUGE)),  # type: ignore[arg-type]
            *(Failure(error="x", fingerprint=5), Failure(error="x", retry="yes")),  # type: ignore[arg-type]
            Failure(error="x", credential=None),  # type: ignore[arg-type]
        ):
            yield f"fail {failure!r:.60}", lambda f=failure: leases.fail(holder, f)
        for text in (NUL, HALF, HUGE, None, 5):
            what = f"{text!r}"[:20]
            yield f"release {what}", lambda t=text: leases.release(holder, reason=t)
            yield f"ask {what}", lambda t=text: leases.ask(holder, t)
            yield f"gone {what}", lambda t=text: leases.end_gone(task, epoch=1, proof=t)
            for name in ("actor", "reason", "checked"):
                words = {"actor": "a", "reason": "b", "checked": "c", name: text}
                yield f"force {name} {what}", lambda w=words: leases.force_release(task, **w)
            for name in ("actor", "reason"):
                yield (
                    f"cancel {name} {what}",
                    lambda n=name, t=text: yard.lessor.tasks.cancel([task], **{n: t}),
                )
            yield f"answer {what}", lambda t=text: yard.lessor.tasks.answer(task, t)
            yield (
                f"addition {what}",
                lambda t=text: yard.lessor.tasks.requeue([task], addition=t),
            )
        yield "ask nothing", lambda: leases.ask(holder, "  ")
        for epoch in (0, *WRONG_NUMBERS):
            yield f"epoch {epoch!r}", lambda e=epoch: leases.end_gone(task, epoch=e, proof="p")
        for tasks in (None, "task_x", 5, {grant.task}, [grant.task] * 10_001):
            yield f"tasks {tasks!r:.20}", lambda t=tasks: yard.lessor.tasks.cancel(t)

    refuse_all(yard, calls())


def test_paths_to_widen_and_to_look_up(yard: Yard, grant: Grant) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        leases: Any = yard.lessor.leases
        for path in (
            "",
            "..",
            "/",
            "a/../..",
            "C:",
            "a\\b",
            ".git",
            NUL,
            HALF,
            BELL,
            HUGE,
            None,
            5,
            b"x",
        ):
            what = f"{path!r}"[:20]
            yield f"widen {what}", lambda p=path: leases.widen(grant.holder, [p])
            yield f"who {what}", lambda p=path: leases.who(p, repository=yard.repository.id)
        for paths in (None, "docs", 5, {"docs"}, ["d"] * 10_001):
            yield f"paths {paths!r:.20}", lambda p=paths: leases.widen(grant.holder, p)
        for paths in (None, "docs", 5, {"docs"}, [None], ["d", b"x"]):
            yield f"admit {paths!r:.20}", lambda p=paths: leases.admit(grant.holder, p)
        for mode in (None, "w", "write", 5):
            yield f"mode {mode!r}", lambda m=mode: leases.widen(grant.holder, ["d"], mode=m)

    refuse_all(yard, calls())


def test_repositories_and_checkouts(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        registry: Any = yard.lessor.registry
        for key in ("", "  ", NUL, HALF, BELL, "x" * 3_000, None, 5, b"x"):
            yield f"repository {key!r:.20}", lambda k=key: registry.add_repository(k)
        for name in (NUL, BELL, "x" * 300, 5, b"x"):
            yield f"name {name!r:.20}", lambda n=name: registry.add_repository("new", name=n)
        for flag in (None, 1, "yes"):
            yield f"fold {flag!r}", lambda f=flag: registry.add_repository("new", fold_case=f)
            yield f"normalize {flag!r}", lambda f=flag: registry.add_repository("new", normalize=f)
        for text in (NUL, HALF, None, 5, "x" * 70_000):
            place = {"host_id": "h", "common_dir": "/d"}
            for name in place:
                yield (
                    f"{name} {text!r:.20}",
                    lambda n=name, t=text, p=place: registry.add_checkout(
                        yard.repository.id, **{**p, n: t}
                    ),
                )

    refuse_all(yard, calls())


def test_workers(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        registry: Any = yard.lessor.registry
        for agent in ("", "  ", NUL, BELL, HALF, "ä", "a b", "x" * 300, None, 5, *INJECTED[:4]):
            yield f"agent {agent!r:.20}", lambda a=agent: registry.add_worker(NewWorker(agent=a))
        for name, values in (
            ("kind", (NUL, BELL, "x" * 300, 5)),
            ("host_id", (NUL, HALF, "x" * 300, None, 5)),
            ("boot_id", (NUL, HALF, "x" * 300, None, 5)),
            ("pid_namespace", (NUL, None, 5)),
            ("pid", (-1, 2**63, "7", 1.5, True)),
            ("start_ticks", (-1, 2**63, "7", 1.5, True)),
            ("capabilities", ("gpu", None, (5,), ("",), (BELL,), tuple("ab" * 60))),
            ("heartbeat", (None, 1, "yes")),
        ):
            for value in values:
                worker = NewWorker(**{"agent": "a", name: value})
                yield f"{name}={value!r:.20}", lambda w=worker: registry.add_worker(w)
        for worker in (None, "x", {"agent": "a"}):
            yield f"worker {worker!r}", lambda w=worker: registry.add_worker(w)
        for host in (NUL, HALF, 5, None):
            yield f"workers {host!r}", lambda h=host: registry.workers(host_id=h)

    refuse_all(yard, calls())


def test_queues_and_limits(yard: Yard) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        registry: Any = yard.lessor.registry
        for name in ("", NUL, BELL, "x" * 300, None, 5):
            yield f"queue {name!r:.20}", lambda n=name: registry.set_queue(n)
            yield f"limit {name!r:.20}", lambda n=name: registry.set_limit("queue", n, 1)
        for name in ("wait_max_ms", "overtake_limit", "overtake_ms"):
            for value in (0, -1, 2**63, "5", 1.5, True):
                yield f"{name}={value!r}", lambda n=name, v=value: registry.set_queue("q", **{n: v})
        for value in (1, "yes", 0):
            yield f"paused={value!r}", lambda v=value: registry.set_queue("q", paused=v)
        for kind in ("", "task", None, 5, ["queue"]):
            yield f"kind {kind!r}", lambda k=kind: registry.set_limit(k, "x", 1)
        for value in (-1, 2**63, "5", 1.5, True):
            yield f"maximum {value!r}", lambda v=value: registry.set_limit("queue", "q", v)

    refuse_all(yard, calls())


def test_what_is_asked_for_when_reading(yard: Yard, grant: Grant) -> None:
    def calls() -> Iterator[tuple[str, Call]]:
        tasks: Any = yard.lessor.tasks
        leases: Any = yard.lessor.leases
        for most in (0, *WRONG_NUMBERS):
            yield f"tasks {most!r}", lambda m=most: tasks.tasks(most=m)
            yield f"open {most!r}", lambda m=most: tasks.open_tasks(repository=None, most=m)
            yield f"ready {most!r}", lambda m=most: tasks.ready(repository=None, most=m)
            yield f"overdue {most!r}", lambda m=most: tasks.overdue(repository=None, most=m)
            yield f"history {most!r}", lambda m=most: tasks.history(grant.task, most=m)
            yield f"leases {most!r}", lambda m=most: leases.leases(most=m)
        for number in WRONG_NUMBERS:
            yield f"after {number!r}", lambda n=number: tasks.history(grant.task, after=n)
            yield f"number {number!r}", lambda n=number: tasks.task_numbered(n, repository=None)
        for queue in (NUL, HALF, 5, None):
            yield f"queue {queue!r}", lambda q=queue: tasks.tasks(queue=q)
            yield f"ready queue {queue!r}", lambda q=queue: tasks.ready(repository=None, queue=q)
        for states in ("queued", None, 5, [5], [NUL]):
            yield f"states {states!r}", lambda s=states: tasks.tasks(states=s)

    refuse_all(yard, calls())


def test_text_that_looks_like_something_else_is_kept_as_it_is(yard: Yard) -> None:
    """What is allowed is data: it comes back as it went in, whatever it would mean elsewhere."""
    for text in (
        *INJECTED,
        "{}",
        "\\u0000",
        "%(now)s",
        "NULL",
        "null",
        "[]",
        "--",
        "/*",
        "$1",
        "ü" * 80,
    ):
        done = yard.add(text, prompt=text, check=text, unique_key=text, limit_key=text, queue=text)
        task = yard.lessor.tasks.task(done.task)
        assert (task.title, task.prompt, task.check, task.unique_key, task.queue) == (text,) * 5
        grant = yard.claim_one(queue=text)
        assert (grant.title, grant.prompt) == (text, text)
        yard.complete(grant, said=text, facts={text: text})
        assert yard.lessor.tasks.task(done.task).said == text


def test_a_megabyte_of_prompt_and_ten_thousand_scopes_are_taken(yard: Yard) -> None:
    scopes = tuple(f"d{n // 100}/f{n}.py" for n in range(10_000))
    yard.add("big", prompt="p" * 1_048_576, scopes=scopes)
    grant = yard.claim_one()
    assert (len(grant.prompt), len(grant.scopes)) == (1_048_576, 10_000)
    yard.complete(grant)
    assert yard.lessor.leases.sweep() == []


def test_a_store_that_is_none() -> None:
    for url in ("", "sqlite://", "ftp://x", "a\0b", "mysql://x", "://"):
        with pytest.raises(InvalidError) as refused:
            connect(url)
        assert refused.value.next_step
