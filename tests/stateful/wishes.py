"""What the rules draw from: tasks that contend for few paths, and proofs that are often right."""

from __future__ import annotations

from dataclasses import replace

from asking import Wish
from hypothesis import strategies as st
from hypothesis.stateful import Bundle
from territory import NARROW, SCOPES

TTL = 60_000
MANY = 12

holders = Bundle("holders")
"""Every proof that was ever handed out."""

small = st.integers(0, 63)
scopes = st.sampled_from([*NARROW, *NARROW, *NARROW, *SCOPES])
queues = st.sampled_from(["default", "default", "default", "slow"])
workers = st.sampled_from([1, 1, 2, 3])
rarely = st.integers(0, 7).map(lambda n: n == 7)
mostly = rarely.map(lambda rare: not rare)
forgeries = st.sampled_from(
    ["", "", "", "", "", "", "", "token", "worker", "later", "earlier", "stale", "ahead"]
)
wishes = st.builds(
    Wish,
    place=st.sampled_from([1, 1, 1, 2, 0]),
    queue=queues,
    writes=st.lists(scopes, max_size=2).map(tuple),
    reads=st.sampled_from([(), (), ("a",), ("b",), ("*.py",), (".",)]),
    strict=rarely,
    progress=mostly,
    priority=st.sampled_from([0, 0, 0, 1, -1]),
    delay=st.sampled_from([0, 0, 0, 0, 1, TTL]),
    unique=st.sampled_from([None, None, None, "once", "twice"]),
    limit_key=st.sampled_from([None, None, None, "suite"]),
    agent=st.sampled_from([*[None] * 7, "claude", "codex"]),
    capability=st.sampled_from([*[None] * 9, "gpu"]),
    effects=st.sampled_from(
        ["workspace", "workspace", "read-only", "idempotent", "brokered", "unsafe", "undeclared"]
    ),
    keyed=st.booleans(),
    max_attempts=st.sampled_from([2, 3, 1]),
).map(lambda wish: wish if wish.place else replace(wish, writes=(), reads=()))
