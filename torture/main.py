"""One run: set up, let the faults strike, close, judge, tell."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from random import Random

from lessor.clock import SystemClock
from lessor.model.lease import terms_for
from torture import recovering
from torture.checker import find_violations, load_history
from torture.closing import Closing
from torture.cluster import NotThereError
from torture.log import History
from torture.nemesis import Nemesis
from torture.place import FAULTS, Place
from torture.recovering import percentiles, recoveries_ms

PROGRESS_MS = 10_000
ACCEPTS = ("double_accepts",)
LOSSES = ("lost_acknowledgements", "lost_pushes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as asked; 0 where nothing was found, 1 where something was."""
    asked = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # everything is taken away on the way out
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    faults = [*FAULTS] if asked.faults == "all" else [*filter(None, asked.faults.split(","))]
    unknown = [fault for fault in faults if fault not in FAULTS]
    if unknown:
        sys.stderr.write(f"no such fault: {', '.join(unknown)}; there are {', '.join(FAULTS)}\n")
        return 2
    _tell(
        f"torture  {asked.store}, {asked.seconds} s, {asked.workers} workers, term {asked.ttl} ms, seed {seed}"
    )
    try:
        place = Place(asked.store, faults)
    except NotThereError as reason:
        _tell(f"skipped  {reason}")
        return 0
    for fault, why in sorted(place.skipped.items()):
        _tell(f"skipped  {fault}: {why}")
    _tell(f"faults   {', '.join(sorted(place.faults)) or 'none'}")
    if asked.store == "postgres":
        _tell(f"way      {place.way}")
        if place.no_namespaces:
            _tell(f"         {place.no_namespaces}")
    found = True
    try:
        found = _run(asked, place, Random(seed), seed)
    finally:
        place.close(keep=found or asked.keep)
        if found or asked.keep:
            _tell(f"logs     {place.logs}")
    return int(found)


def _run(asked: argparse.Namespace, place: Place, rng: Random, seed: int) -> bool:
    clock = SystemClock()
    nemesis = Nemesis(
        place,
        rng,
        workers=asked.workers,
        ttl_ms=asked.ttl,
        every_ms=asked.every,
        long=asked.long,
        enough=asked.open,
    )

    began = next_line = 0

    def tell() -> None:
        nonlocal next_line
        now = clock.boottime_ms()
        if now >= next_line:
            next_line = now + PROGRESS_MS
            _tell(
                f"{(now - began) // 1000:6} s {sum(nemesis.counts.values()):5} faults  {_kinds(nemesis.counts)}"
            )

    try:
        nemesis.await_workers()
        began = clock.boottime_ms()
        next_line = began + PROGRESS_MS
        nemesis.run(began + asked.seconds * 1000, tell)
        nemesis.calm()
    finally:
        nemesis.kill_all()
    closing = Closing(place, rng, ttl_ms=asked.ttl)
    closing.run()
    history = load_history(
        place.logs,
        place.remote.folder if place.remote else None,
        ttl_ms=asked.ttl,
        margin_ms=terms_for(asked.ttl).margin_ms,
    )
    violations = find_violations(history)
    if asked.untimed:
        violations.pop(recovering.late_recoveries.__name__, None)
    if nemesis.stuck:
        violations["stuck_workers"] = nemesis.stuck
    if nemesis.broken:
        violations["broken_workers"] = nemesis.broken[:5]
    if closing.left:
        violations["unfinished_tasks"] = [
            f"{closing.left} tasks couldn't be finished when all was calm"
        ]
    return _summary(asked, seed, history, nemesis, violations)


def _summary(
    asked: argparse.Namespace,
    seed: int,
    history: History,
    nemesis: Nemesis,
    violations: dict[str, list[str]],
) -> bool:
    ops = Counter(call.op for call in history.calls)
    found = recoveries_ms(history)
    middle, late = percentiles(found)
    told = {
        "store": asked.store,
        "seed": seed,
        "seconds": asked.seconds,
        "ttl_ms": asked.ttl,
        "calls": len(history.calls),
        "asked": ops["claim"] + ops["acquire"],
        "claims": sum(
            len(call.ok["grants"])
            for call in history.calls
            if call.op in {"claim", "acquire"} and call.ok
        ),
        "completions": sum(call.op == "complete" and call.ok is not None for call in history.calls),
        "pushes": ops["push"],
        "landed": len(history.moves),
        "open": sum(call.is_open for call in history.calls),
        "refused": sum(call.no is not None and not call.is_open for call in history.calls),
        "faults": dict(sorted(nemesis.counts.items())),
        "double_accepts": _broken(violations, *ACCEPTS),
        "lost_acknowledgements": _broken(violations, *LOSSES),
        "unknown_pushes": _broken(violations, "unknown_pushes"),
        "deaths": len(found),
        "recovery_p50_ms": round(middle),
        "recovery_p99_ms": round(late),
        "violations": violations,
    }
    _tell(
        f"calls    {told['calls']}: {told['asked']} claims, {told['claims']} leases granted, {told['completions']} completed, "
        f"{told['pushes']} pushes of which {told['landed']} landed, {told['refused']} refused, {told['open']} without an answer"
    )
    _tell(f"faults   {sum(nemesis.counts.values())}: {_kinds(nemesis.counts)}")
    _tell(
        f"judged   {told['double_accepts']} double accepts, {told['lost_acknowledgements']} lost acknowledgements, "
        f"{told['unknown_pushes']} unknown pushes left"
    )
    _tell(
        f"recovery p50 {middle / 1000:.1f} s, p99 {late / 1000:.1f} s, of {len(found)} leases of the dead"
    )
    for rule, lines in violations.items():
        _tell(f"BROKEN   {rule}")
        for line in lines:
            _tell(f"         {line}")
    _tell("found    nothing" if not violations else f"found    {len(violations)} rules broken")
    _tell(json.dumps(told, separators=(",", ":")))
    return bool(violations)


def _broken(violations: dict[str, list[str]], *rules: str) -> int:
    return sum(len(violations.get(rule, ())) for rule in rules)


def _kinds(counts: Counter[str]) -> str:
    return ", ".join(f"{kind} {number}" for kind, number in sorted(counts.items()))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="torture/run", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long the faults strike")
    parser.add_argument("--seed", type=int, help="chance's; a new one without")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument(
        "--faults", default="all", help=f"of {', '.join(FAULTS)}; all of them without"
    )
    parser.add_argument(
        "--workers", type=int, default=6, help="that faults strike; two more are spared"
    )
    parser.add_argument("--ttl", type=int, default=3000, help="every lease's term in milliseconds")
    parser.add_argument(
        "--every", type=int, default=1000, help="milliseconds from fault to fault, on average"
    )
    parser.add_argument(
        "--long",
        type=int,
        default=30,
        help="of a hundred leases, worked on for long; others a moment",
    )
    parser.add_argument("--open", type=int, default=12, help="open tasks that workers see to")
    parser.add_argument(
        "--untimed", action="store_true", help="tell how long recovery took, and don't judge it"
    )
    parser.add_argument("--keep", action="store_true", help="leave the logs")
    return parser
