"""Why a push was refused, in few words out of all that git and hooks say."""

from __future__ import annotations

from typing import Any

from lessor.publish.pushing import REFUSED


def refusal_text(said: list[str]) -> str:
    """Why a remote refused: Lessor's hooks in their words, else git's own for the reference at fault."""
    hooks = [line.partition("lessor: ")[2] for line in said if REFUSED in line]
    locks = [line.partition("error: ")[2] for line in said if "cannot lock ref" in line]
    locks = [line.partition("': ")[0] + "'" for line in locks if line.startswith("cannot lock")]
    refused = [line.split("\t")[-1] for line in said if line.startswith("!")]
    return (hooks or locks or refused or [""])[0].strip()


def answer_text(said: dict[str, Any] | None) -> str:
    """What a worker said went wrong."""
    return str(said.get("text", "")) if said else "it gave no answer"
