"""Histories by hand: a few lines for each process, instants in milliseconds."""

from __future__ import annotations

from typing import Any

from torture.log import Call, Fault, History, Move

TTL_MS, MARGIN_MS = 3000, 150
REPOSITORY = "repo"


class Told:
    """Collects what some processes asked and were told."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.moves: list[Move] = []
        self.last: dict[str, Any] | None = None

    def call(
        self,
        who: str,
        op: str,
        at: int,
        done: int | None,
        *,
        ok: dict[str, Any] | None = None,
        no: str | None = None,
        **asked: Any,
    ) -> Told:
        self.calls.append(
            Call(
                who=who,
                op=op,
                asked=asked,
                at=at * 1_000_000,
                done=None if done is None else done * 1_000_000,
                ok=ok,
                no=no,
            )
        )
        return self

    def claim(
        self,
        who: str,
        at: int,
        *,
        task: str = "t",
        epoch: int = 1,
        fence: int = 1,
        term: int = 0,
        paths: tuple[str, ...] = ("a/0",),
        request: str = "",
        ttl: int = TTL_MS,
        wanted: int = 1,
    ) -> Told:
        grant = {
            "task": task,
            "epoch": epoch,
            "term": term,
            "fence": fence,
            "repository": REPOSITORY,
            "paths": list(paths),
            "ttl": ttl,
        }
        request = request or f"{who} at {at}"
        return self.call(
            who, "claim", at, at + 10, ok={"grants": [grant]}, request=request, wanted=wanted
        )

    def renew(
        self, who: str, at: int, *, task: str = "t", epoch: int = 1, version: int = 2
    ) -> Told:
        ok = {"version": version, "ttl": TTL_MS}
        request = f"{who} at {at}"
        return self.call(
            who,
            "renew",
            at,
            at + 10,
            ok=ok,
            task=task,
            epoch=epoch,
            request=request,
            version=version - 1,
        )

    def end(
        self,
        who: str,
        at: int,
        *,
        op: str = "complete",
        task: str = "t",
        epoch: int = 1,
        repeated: bool = False,
    ) -> Told:
        state = "succeeded" if op == "complete" else "queued"
        return self.call(
            who, op, at, at + 10, ok={"repeated": repeated, "state": state}, task=task, epoch=epoch
        )

    def push(
        self,
        who: str,
        at: int,
        commit: str,
        *,
        fence: int = 1,
        term: int = 0,
        no: str | None = None,
        lands: bool = True,
        epoch: int = 1,
    ) -> Told:
        ok = {"moved": True} if no is None else None
        ref = "refs/heads/area/a-0"
        if lands:
            self.moves.append(Move(ref=ref, old="0", new=commit))
        return self.call(
            who,
            "push",
            at,
            at + 10,
            ok=ok,
            no=no,
            task="t",
            epoch=epoch,
            ref=ref,
            commit=commit,
            fence=[term, fence],
        )

    def fault(self, kind: str, at: int, until: int, who: str = "") -> Told:
        self.faults.append(Fault(kind=kind, at=at * 1_000_000, until=until * 1_000_000, who=who))
        return self

    def read(
        self,
        *,
        leases: tuple[tuple[str, int, int, int, str], ...] = (),
        tasks: dict[str, str] | None = None,
        intents: tuple[tuple[str, str | None], ...] = (),
    ) -> Told:
        """What the store says at the end: leases as (task, epoch, fence, version, end)."""
        self.last = {
            "tasks": tasks or {"t": "succeeded"},
            "leases": [
                {"task": t, "epoch": e, "term": 0, "fence": f, "version": v, "end": end}
                for t, e, f, v, end in leases
            ],
            "intents": [{"task": "t", "commit": c, "outcome": outcome} for c, outcome in intents],
        }
        return self

    def history(self) -> History:
        return History(
            calls=sorted(self.calls, key=lambda call: call.at),
            faults=self.faults,
            moves=self.moves,
            ttl_ms=TTL_MS,
            margin_ms=MARGIN_MS,
            last=self.last,
        )
