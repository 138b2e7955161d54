"""The model's faults and its page keep up with the model."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = (ROOT / "model" / "lessor.pml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
FAULTS = tomllib.loads((ROOT / "model" / "mutants.toml").read_text(encoding="utf-8"))
KNOWN = tomllib.loads((ROOT / "model" / "configurations.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_one_line_of_the_model_and_the_page_has_it(name: str) -> None:
    fault = FAULTS[name]
    assert MODEL.count(fault["line"]) == 1
    assert "\n" not in fault["line"] + fault["instead"]
    assert fault["found_by"] in MODEL
    assert fault["in"] in KNOWN
    assert re.search(
        rf"^{re.escape(name)} +{fault['in']} +{fault['found_by']} ", PAGE, re.MULTILINE
    )


@pytest.mark.parametrize("name", KNOWN)
def test_the_page_has_what_a_configuration_printed(name: str) -> None:
    assert re.search(rf"^{re.escape(name)} +[\d,]+ +[\d,]+ .* holds$", PAGE, re.MULTILINE)


def test_the_page_says_what_every_property_means() -> None:
    declared = re.search(r"hidden byte (one_live_holder.*?);", MODEL, re.DOTALL)
    assert declared is not None
    for name in re.findall(r"\w+", declared[1]):
        assert f"`{name}`" in PAGE
