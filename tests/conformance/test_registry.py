"""Repositories, checkouts, workers, queues and limits."""

from __future__ import annotations

from builders import Yard
from lessor.model.worker import NewWorker


def test_a_repository_is_registered_once(yard: Yard) -> None:
    again = yard.lessor.registry.add_repository(
        "github.com/acme/shop", name="other", fold_case=True
    )
    assert again == yard.repository
    assert (again.name, again.fold_case, again.normalize) == ("shop", False, True)
    assert yard.lessor.registry.repository(again.id) == again
    assert yard.lessor.registry.repositories() == [again]


def test_a_repository_keeps_its_own_path_rules(yard: Yard) -> None:
    made = yard.lessor.registry.add_repository("local/mac", fold_case=True, normalize=False)
    assert (made.fold_case, made.normalize, made.fence, made.term) == (True, False, 0, 0)


def test_clones_are_checkouts_of_one_repository(yard: Yard) -> None:
    registry = yard.lessor.registry
    for _ in range(2):
        registry.add_checkout(yard.repository.id, host_id="h1", common_dir="/a/.git")
    registry.add_checkout(yard.repository.id, host_id="h2", common_dir="/a/.git")
    assert registry.checkouts(yard.repository.id) == [("h1", "/a/.git"), ("h2", "/a/.git")]
    docs = registry.add_repository("github.com/acme/docs")
    registry.add_checkout(docs.id, host_id="h1", common_dir="/a/.git")
    assert registry.checkouts(yard.repository.id) == [("h2", "/a/.git")]


def test_a_worker_is_what_it_said_of_itself(yard: Yard) -> None:
    said = NewWorker(
        agent="claude-9",
        kind="claude",
        host_id="h1",
        boot_id="b1",
        pid=77,
        pid_namespace="4026531836",
        start_ticks=12345,
        capabilities=("gpu", "docker"),
        heartbeat=True,
    )
    worker = yard.lessor.registry.add_worker(said)
    assert yard.lessor.registry.worker(worker.id) == worker
    for name in (
        "agent",
        "kind",
        "host_id",
        "boot_id",
        "pid",
        "pid_namespace",
        "start_ticks",
        "heartbeat",
    ):
        assert getattr(worker, name) == getattr(said, name), name
    assert worker.capabilities == ("docker", "gpu")
    assert worker.registered_ms == yard.lessor.now_ms()


def test_workers_are_listed_until_they_retire(yard: Yard) -> None:
    registry = yard.lessor.registry
    there = yard.add_worker("there", host_id="h1")
    assert {w.id for w in registry.workers()} == {yard.worker.id, yard.other.id, there.id}
    assert [w.id for w in registry.workers(host_id="h1")] == [there.id]
    registry.retire_worker(there.id)
    registry.retire_worker(there.id)
    assert registry.workers(host_id="h1") == []
    assert registry.worker(there.id).retired_ms == yard.lessor.now_ms()


def test_the_terms_of_a_lease_follow_the_workers_class(yard: Yard) -> None:
    yard.add("one", scopes=("a",))
    yard.add("two", scopes=("b",))
    beating = yard.add_worker("beats", heartbeat=True)
    assert yard.claim_one(worker=beating.id, ttl_ms=None).ttl_ms == 300_000
    assert yard.claim_one(ttl_ms=None).ttl_ms == 900_000


def test_a_queue_keeps_the_settings_that_arent_named(yard: Yard) -> None:
    registry = yard.lessor.registry
    first = registry.set_queue("q", wait_max_ms=1_000, overtake_limit=3)
    assert first == {
        "name": "q",
        "paused": 0,
        "wait_max_ms": 1_000,
        "overtake_limit": 3,
        "overtake_ms": 600_000,
    }
    assert registry.set_queue("q", paused=True) == {**first, "paused": 1}
    assert registry.set_queue("q", overtake_ms=5) == {**first, "paused": 1, "overtake_ms": 5}
    yard.add("work")
    assert [q["name"] for q in registry.queues()] == ["default", "q"]


def test_limits_are_set_changed_and_taken_away(yard: Yard) -> None:
    registry = yard.lessor.registry
    registry.set_limit("queue", "default", 2)
    registry.set_limit("key", "db", 1)
    registry.set_limit("queue", "default", 3)
    assert registry.limits() == [("key", "db", 1), ("queue", "default", 3)]
    registry.set_limit("key", "db", None)
    registry.set_limit("key", "never", None)
    assert registry.limits() == [("queue", "default", 3)]
