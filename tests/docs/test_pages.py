"""The pages say what is true: links lead somewhere, commands exist, the example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lessor.cli.commands import COMMANDS
from lessor.errors import LessorError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
CALL = re.compile(r"^\$? ?lessor ([a-z][a-z-]*)|`lessor ([a-z][a-z-]*)", re.MULTILINE)


def slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}


def test_links_lead_from_the_readme_to_every_page() -> None:
    reached: set[Path] = set()
    waiting = [ROOT / "README.md", ROOT / "CHANGELOG.md"]  # where releases are, everybody knows
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        found = LINK.findall(page.read_text(encoding="utf-8"))
        waiting += [(page.parent / target).resolve() for target, _ in found if target]
    assert sorted(set(PAGES) - reached) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    named = {a or b for a, b in CALL.findall(page.read_text(encoding="utf-8"))}
    assert named <= set(COMMANDS)


def test_the_program_in_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert program is not None
    names: dict = {}
    exec(program[1].replace("sqlite:///var/lib", f"sqlite:///{tmp_path}"), names)
    lessor = names["lessor"]
    assert [task.said for task in lessor.tasks.tasks(everywhere=True)] == ["done"]
    lessor.close()


def test_every_refusal_has_a_code_of_its_own() -> None:
    kinds, waiting = [], [LessorError]
    while waiting:
        kind = waiting.pop()
        kinds.append(kind)
        waiting += [sub for sub in kind.__subclasses__() if sub.__module__ == "lessor.errors"]
    codes = [kind.code for kind in kinds]
    assert len(codes) == len(set(codes))
    assert all(
        f"`{code}`" in (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") for code in codes
    )
