"""The process table: fields in their places, trees by parentage."""

import os
import subprocess

import pytest
from supervisor_rig import until

from lessor.runner import proctable
from lessor.runner.proctable import (
    TICK_MS,
    ProcessRow,
    descendants,
    has_environment,
    parse_stat,
    process_row,
    process_table,
)

STAT = (
    "{pid} ({name}) S 17 4242 4243 0 -1 4194560 155 9999 0 0 3 4 50 600 20 0 1 0 97846 "
    "3358720 200 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)


@pytest.mark.parametrize("name", ["sleep", "a b", "x) S 1 (y", ")", "((", "a\nb"])
def test_fields_are_counted_after_the_last_parenthesis(name):
    row = parse_stat(STAT.format(pid=31, name=name))
    assert row == ProcessRow(
        pid=31,
        ppid=17,
        session=4243,
        state="S",
        start_ticks=97846,
        cpu_ms=int((3 + 4 + 50 + 600) * TICK_MS),
    )


def row(pid: int, ppid: int) -> ProcessRow:
    return ProcessRow(pid=pid, ppid=ppid, session=1, state="S", start_ticks=1, cpu_ms=0)


def test_descendants_come_parents_first_and_leave_others_out():
    table = {r.pid: r for r in [row(9, 4), row(4, 2), row(3, 2), row(2, 1), row(7, 1), row(8, 7)]}
    assert [r.pid for r in descendants(2, table)] == [4, 3, 9]


def test_a_table_read_across_changes_may_hold_a_circle_and_still_ends():
    table = {r.pid: r for r in [row(2, 3), row(3, 2)]}
    assert sorted(r.pid for r in descendants(2, table)) == [2, 3]


def test_our_own_row_is_in_the_table():
    mine = process_table()[os.getpid()]
    assert (mine.ppid, mine.session) == (os.getppid(), os.getsid(0))
    assert not mine.ended
    assert not mine.stopped


@pytest.mark.parametrize("linux", [True, False])
def test_both_readers_see_parent_session_start_and_environment(linux, monkeypatch):
    if linux and not proctable.LINUX:
        pytest.skip("there is no /proc here")
    monkeypatch.setattr(proctable, "LINUX", linux)
    child = subprocess.Popen(
        ["/bin/sleep", "600"], env={"LESSOR_REPORT": "/a b/c"}, start_new_session=True
    )
    try:
        first = process_row(child.pid)
        assert (first.pid, first.ppid, first.session) == (child.pid, os.getpid(), child.pid)
        assert process_row(child.pid).start_ticks == first.start_ticks
        # Popen returns in the middle of the exec: Linux shows the new environment a moment later.
        until(lambda: has_environment(child.pid, "LESSOR_REPORT=/a b/c"), "its environment")
        assert not has_environment(child.pid, "LESSOR_REPORT=/a b")
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert process_row(child.pid).ended
    finally:
        child.kill()
        child.wait()
    assert process_row(child.pid) is None
    assert not has_environment(child.pid, "LESSOR_REPORT=/a b/c")
