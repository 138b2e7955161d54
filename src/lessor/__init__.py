"""Lessor: temporary, provable authority for coding agents."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Really imported: importing the module `lessor.connect` later would put it over the function.
from lessor.connect import connect

if TYPE_CHECKING:
    from lessor.errors import LeaseLostError, LessorError, ScopeHeldError
    from lessor.model.grant import ClaimRequest, Failure, Grant, Result
    from lessor.model.lease import Holder
    from lessor.model.task import NewTask, Task
    from lessor.model.worker import NewWorker
    from lessor.service.lessor import Lessor

__version__ = "0.1.0"

__all__ = [
    "ClaimRequest",
    "Failure",
    "Grant",
    "Holder",
    "LeaseLostError",
    "Lessor",
    "LessorError",
    "NewTask",
    "NewWorker",
    "Result",
    "ScopeHeldError",
    "Task",
    "connect",
]

_HOMES = {
    "LeaseLostError": "lessor.errors",
    "LessorError": "lessor.errors",
    "ScopeHeldError": "lessor.errors",
    "ClaimRequest": "lessor.model.grant",
    "Failure": "lessor.model.grant",
    "Grant": "lessor.model.grant",
    "Result": "lessor.model.grant",
    "Holder": "lessor.model.lease",
    "NewTask": "lessor.model.task",
    "Task": "lessor.model.task",
    "NewWorker": "lessor.model.worker",
    "Lessor": "lessor.service.lessor",
}


def __getattr__(name: str) -> Any:
    # PEP 562: importing one module must not import all of them, which costs a command 100 ms.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
