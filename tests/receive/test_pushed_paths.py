"""Which paths a push touches, for the remote that has to say no: every way around that is known."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gated import Gated, git

from lessor.model.grant import Grant


@pytest.fixture
def billing(gated: Gated) -> Grant:
    """A lease over services/billing, its branch checked out."""
    return gated.holding("services/billing")


def staged(gated: Gated, *, message: str = "work") -> str:
    git(gated.clone, "commit", "-q", "-m", message)
    return gated.head()


def refused(gated: Gated, grant: Grant) -> str:
    said = gated.refused(grant)
    assert f"#{grant.number} has no lease over these paths" in said
    assert gated.tip(grant.branch or "") == ""
    return said


def test_paths_inside_of_the_lease_go_through(gated: Gated, billing: Grant) -> None:
    gated.commit("services/billing/a", "services/billing/new/b", text="two\n")
    (gated.clone / "services/billing/a").unlink()
    gated.commit()
    assert gated.push(billing).moved


def test_a_path_of_another_is_named_with_its_commit(gated: Gated, billing: Grant) -> None:
    head = gated.commit("libs/x", "services/billing/a", text="two\n")
    said = refused(gated, billing)
    assert f"libs/x (commit {head[:12]})" in said
    assert "services/billing/a" not in said


def test_a_directory_with_a_longer_name_isnt_inside(gated: Gated, billing: Grant) -> None:
    gated.commit("services/billing-v2/a")
    assert "services/billing-v2/a" in refused(gated, billing)


def test_moving_a_file_in_takes_it_from_where_it_was(gated: Gated, billing: Grant) -> None:
    git(gated.clone, "mv", "libs/x", "services/billing/x")
    staged(gated)
    assert "libs/x" in refused(gated, billing)


@pytest.mark.parametrize("kind", ["delete", "mode", "link", "submodule"])
def test_every_kind_of_change_counts(gated: Gated, billing: Grant, kind: str) -> None:
    place = gated.clone / "libs/x"
    if kind == "delete":
        git(gated.clone, "rm", "-q", "libs/x")
    elif kind == "mode":
        place.chmod(0o755)
        git(gated.clone, "add", "libs/x")
    elif kind == "link":
        place.unlink()
        place.symlink_to("../README")
        git(gated.clone, "add", "libs/x")
    else:
        git(gated.clone, "update-index", "--add", "--cacheinfo", f"160000,{gated.head()},libs/x")
    staged(gated)
    assert "libs/x" in refused(gated, billing)


def test_a_name_that_is_no_text_is_told_safely(gated: Gated, billing: Grant) -> None:
    name = b"libs/caf\xe9\n\x1b[31m"
    (gated.clone / os.fsdecode(name)).write_text("x")
    gated.commit()
    said = refused(gated, billing)
    assert "\x1b" not in said
    assert "caf" in said


def test_what_was_undone_in_the_same_push_was_touched_all_the_same(
    gated: Gated, billing: Grant
) -> None:
    gated.commit("libs/x", text="in between\n")
    git(gated.clone, "revert", "--no-edit", "HEAD")
    assert "libs/x" in refused(gated, billing)


def test_what_the_target_brought_along_is_nobodys(gated: Gated, billing: Grant) -> None:
    gated.commit("services/billing/a", text="mine\n")
    git(gated.clone, "checkout", "-q", "main")
    gated.commit("libs/x", "services/tax/rate", text="theirs\n")
    git(gated.clone, "push", "-q", "origin", "main")
    git(gated.clone, "checkout", "-q", billing.branch or "")
    git(gated.clone, "merge", "-q", "--no-edit", "main")
    assert gated.push(billing).moved
    git(gated.clone, "rebase", "-q", "main")


def test_a_branch_on_an_old_target_isnt_blamed_for_the_new_one(
    gated: Gated, billing: Grant
) -> None:
    gated.commit("services/billing/a", text="mine\n")
    git(gated.clone, "checkout", "-q", "main")
    gated.commit("libs/x", text="theirs\n")
    git(gated.clone, "push", "-q", "origin", "main")
    git(gated.clone, "checkout", "-q", billing.branch or "")
    assert gated.push(billing).moved


def _diverged(gated: Gated, billing: Grant) -> None:
    gated.commit("services/billing/a", text="mine\n")
    git(gated.clone, "checkout", "-q", "main")
    gated.commit("libs/x", text="theirs\n")
    git(gated.clone, "push", "-q", "origin", "main")
    git(gated.clone, "checkout", "-q", billing.branch or "")


def test_an_edit_that_is_hidden_in_a_merge_shows(gated: Gated, billing: Grant) -> None:
    _diverged(gated, billing)
    git(gated.clone, "merge", "-q", "--no-commit", "main")
    gated.write("services/tax/rate", "evil\n")
    git(gated.clone, "add", "-A")
    staged(gated)
    assert "services/tax/rate" in refused(gated, billing)


def test_an_edit_of_one_merge_that_the_next_one_undoes_shows(gated: Gated, billing: Grant) -> None:
    """Nothing of it would land, and no single commit but the merges has it."""
    _diverged(gated, billing)
    git(gated.clone, "merge", "-q", "--no-commit", "main")
    gated.write("services/tax/rate", "evil\n")
    git(gated.clone, "add", "-A")
    staged(gated)
    git(gated.clone, "checkout", "-q", "main")
    gated.commit("README", text="further\n")
    git(gated.clone, "push", "-q", "origin", "main")
    git(gated.clone, "checkout", "-q", billing.branch or "")
    git(gated.clone, "merge", "-q", "--no-commit", "main")
    git(gated.clone, "checkout", "-q", "main", "--", "services/tax/rate")
    staged(gated)
    assert git(gated.clone, "diff", "--name-only", "main...") == "services/billing/a"
    assert "services/tax/rate" in refused(gated, billing)


def test_a_merge_that_drops_the_other_side_shows(gated: Gated, billing: Grant) -> None:
    _diverged(gated, billing)
    git(gated.clone, "merge", "-q", "--no-edit", "-s", "ours", "main")
    assert "libs/x" in refused(gated, billing)


def test_a_merge_of_three_goes_through(gated: Gated, billing: Grant) -> None:
    sides = []
    for name in ("one", "two"):
        git(gated.clone, "checkout", "-q", "-b", name, "main")
        sides.append(gated.commit(f"services/billing/{name}"))
    git(gated.clone, "checkout", "-q", billing.branch or "")
    gated.commit("services/billing/three")
    git(gated.clone, "merge", "-q", "--no-edit", *sides)
    assert len(git(gated.clone, "rev-list", "--parents", "-1", "HEAD").split()) == 4
    assert gated.push(billing).moved


def test_an_octopus_doesnt_hide_an_edit(gated: Gated, billing: Grant) -> None:
    sides = []
    for name in ("one", "two"):
        git(gated.clone, "checkout", "-q", "-b", name, "main")
        sides.append(gated.commit(f"services/billing/{name}"))
    git(gated.clone, "checkout", "-q", billing.branch or "")
    gated.commit("services/billing/three")
    git(gated.clone, "merge", "-q", "--no-edit", *sides)
    gated.write("services/tax/rate", "evil\n")
    git(gated.clone, "add", "-A")
    git(gated.clone, "commit", "-q", "--amend", "--no-edit")
    assert "services/tax/rate" in refused(gated, billing)


@pytest.mark.parametrize("by", ["refs/tags/first", "refs/heads/first", "refs/notes/first"])
def test_what_came_by_another_reference_before_isnt_hidden(
    gated: Gated, billing: Grant, by: str
) -> None:
    gated.commit("libs/x", text="evil\n")
    git(gated.clone, "revert", "--no-edit", "HEAD")
    gated.commit("services/billing/a", text="fine\n")
    gated.plainly(f"HEAD:{by}")
    assert gated.tip(by) == gated.head()
    assert "libs/x" in refused(gated, billing)


def test_what_is_on_the_branch_already_isnt_judged_again_but_what_would_land_is(
    gated: Gated, billing: Grant
) -> None:
    """The commit was there before the hooks were."""
    early = gated.commit("libs/x", text="early\n")
    git(gated.bare, "fetch", "-q", str(gated.clone), f"{early}:refs/heads/{billing.branch}")
    gated.commit("services/billing/a", text="fine\n")
    assert "libs/x" in gated.refused(billing)


def test_further_targets_can_be_trusted(gated: Gated, billing: Grant) -> None:
    git(gated.clone, "checkout", "-q", "-b", "release/1", "main")
    gated.commit("libs/x", text="released\n")
    gated.plainly("release/1")
    git(gated.clone, "checkout", "-q", billing.branch or "")
    git(gated.clone, "merge", "-q", "--no-edit", "--no-ff", "release/1")
    assert "libs/x" in refused(gated, billing)
    git(gated.bare, "config", "lessor.trusted", "refs/heads/release/*")
    said = gated.refused(billing)
    assert "libs/x" in said  # it would still land in main with this branch
    git(gated.clone, "push", "-q", "origin", "release/1:main")
    assert gated.push(billing).moved


def test_a_rebased_branch_is_judged_by_its_new_commits(gated: Gated, billing: Grant) -> None:
    _diverged(gated, billing)
    git(gated.clone, "rebase", "-q", "main")
    assert gated.push(billing).moved


def test_a_long_list_is_cut(gated: Gated, billing: Grant) -> None:
    gated.commit(*(f"libs/many-{n:02}" for n in range(30)))
    said = refused(gated, billing)
    assert "libs/many-19" in said
    assert "libs/many-20" not in said
    assert "and 10 more" in said


def test_lessor_push_takes_what_nobody_has_and_says_whose_the_rest_is(
    gated: Gated, billing: Grant
) -> None:
    gated.commit("libs/x", text="two\n")
    assert gated.push(billing, judged=False).moved
    assert "libs" in gated.yard.lessor.tasks.task(billing.task).scopes
    other = gated.yard.add("other", scopes=["services/tax"])
    gated.claim(other.task)
    gated.commit("services/tax/rate", text="two\n")
    said = gated.refused(billing, judged=False)
    assert "services/tax/rate" in said
    assert "codex-1" in said
    assert gated.tip(billing.branch or "") != gated.head()


def test_a_repository_of_long_ids_is_judged_too(gated: Gated, tmp_path: Path) -> None:
    bare, clone = tmp_path / "long.git", tmp_path / "long"
    git(tmp_path, "init", "-q", "--bare", "--object-format=sha256", "-b", "main", str(bare))
    git(tmp_path, "init", "-q", "--object-format=sha256", "-b", "main", str(clone))
    git(clone, "remote", "add", "origin", str(bare))
    long = Gated(yard=gated.yard, bare=bare, clone=clone)
    long.commit("services/billing/a")
    git(clone, "push", "-q", "origin", "main")
    long.install()
    try:
        grant = long.holding("services/billing")
        long.commit("services/billing/a", text="two\n")
        assert long.push(grant).moved
        long.commit("libs/x")
        assert "libs/x" in long.refused(grant)
        assert "deleted" in long.plainly("HEAD:refs/heads/mine") + long.plainly(":mine")
    finally:
        long.stop()
