"""What was found to be somebody else's stays so, however often the branch is handed on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lessor.model.inheritance import still_foreign

COMMITS = st.lists(st.integers(0, 30).map(str), unique=True)


@given(branch=COMMITS, more=COMMITS, recorded=st.frozensets(st.integers(0, 30).map(str)))
def test_handing_on_takes_nothing_off_the_record(
    branch: list[str], more: list[str], recorded: frozenset[str]
) -> None:
    found = still_foreign(branch, recorded=recorded)
    later = [*(commit for commit in more if commit not in branch), *branch]

    assert set(found) == recorded & set(branch)
    assert [commit for commit in branch if commit in found] == list(found)
    assert set(found) <= set(still_foreign(later, recorded=recorded))
