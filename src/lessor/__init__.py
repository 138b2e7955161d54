"""Lessor: temporary, provable authority for coding agents."""

from lessor.connect import connect
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
