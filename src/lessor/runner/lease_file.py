"""A lease's token on disk: mode 0600, one file a lease, removed with it.

The file is what makes `lessor renew LEASE` work: the id alone is an authority over nothing.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from lessor.errors import LeaseLostError
from lessor.ids import new_token
from lessor.model.lease import Holder


def lease_file(folder: Path, lease: str) -> Path:
    """Where the token of `lease` lies."""
    return folder / f"{lease}.json"


def write_holder(path: Path, holder: Holder) -> None:
    """Write the holder, whole or not at all; a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{new_token()[:8]}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(asdict(holder), file)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def read_holder(path: Path) -> Holder:
    """The holder in the file.

    Raises:
        LeaseLostError: there is no such file, or it can't be read.
    """
    try:
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise LeaseLostError(
            f"There is no usable token for {path.stem} here.",
            next_step="Only the holder has it; see who that is: lessor why TASK.",
            lease=path.stem,
        ) from error


def forget_holder(path: Path) -> None:
    """Remove the token; the lease may live on until it runs out."""
    with suppress(OSError):
        path.unlink()
