"""Every refusal that Lessor makes, as one tree.

LessorError
├── InvalidError            what was asked can't be meant that way
│   ├── ScopeInvalidError
│   ├── BranchInvalidError
│   ├── LabelInvalidError
│   ├── TermsInvalidError
│   └── CycleError
├── NotFoundError           no such task, lease, worker, repository, queue
├── ConflictError           somebody else holds it, or it changed meanwhile
│   ├── ScopeHeldError
│   ├── RequestReusedError
│   └── TransitionRefusedError
├── LeaseLostError          the caller doesn't hold the lease (any more)
│   └── GrantOverError
├── DeniedError             the caller may not do this
├── StoreError              the store can't be used as it is
│   ├── StoreCorruptError
│   ├── StoreNewerError
│   ├── StoreUnsupportedError
│   ├── StoreUnavailableError
│   └── ConstraintError     the database itself forbade a write
├── GitError                git refused or can't be run
│   ├── GitMissingError
│   ├── NotARepositoryError
│   ├── WorktreeError
│   ├── ForeignCommitsError
│   ├── HoldsWorkError
│   ├── RemoteUnreachableError
│   ├── PushRefusedError
│   └── OutcomeUnknownError
├── AgentError              the agent's process couldn't be started or judged
│   └── AgentMissingError   its program isn't there
├── HostError               this machine stands in the way: a full disk, a directory that isn't ours
├── SetupFailedError        the setup command failed in a new worktree
├── BaseRedError            the check fails on the base already
└── BusyError               try again after `retry_ms`

A class has a stable `code` (part of the interface, never renamed) and an `exit_code` for the
command line. An instance has a sentence that says what happened and what to do next, and
`facts`: the values of both sides, for programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

type_of_fact = str | int | bool | None | list[str]


class LessorError(Exception):
    """A refusal; nothing was changed."""

    code: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, next_step: str = "", **facts: type_of_fact) -> None:
        super().__init__(f"{message} {next_step}".strip())
        self.message = message
        self.next_step = next_step
        self.facts: Mapping[str, type_of_fact] = facts


class InvalidError(LessorError):
    """What was asked can't be meant that way; the message names the value and the rule."""

    code = "invalid"
    exit_code = 2


class ScopeInvalidError(InvalidError):
    """A path or glob that can't be a scope; it is refused, never repaired."""

    code = "scope_invalid"


class BranchInvalidError(InvalidError):
    """A branch name outside Conventional Branch or outside what git accepts."""

    code = "branch_invalid"


class LabelInvalidError(InvalidError):
    """A label that can't be read back into the same values."""

    code = "label_invalid"


class TermsInvalidError(InvalidError):
    """Durations whose relations would let a holder outlive its lease."""

    code = "terms_invalid"


class CycleError(InvalidError):
    """Tasks that would wait for each other."""

    code = "cycle"


class NotFoundError(LessorError):
    """Nothing has this id here."""

    code = "not_found"
    exit_code = 5


class ConflictError(LessorError):
    """Somebody else holds it, or it changed meanwhile."""

    code = "conflict"
    exit_code = 6


class ScopeHeldError(ConflictError):
    """A live grant overlaps the scope that was asked for."""

    code = "scope_held"


class RequestReusedError(ConflictError):
    """The same request id came with another request."""

    code = "request_reused"


class TransitionRefusedError(ConflictError):
    """The task's state doesn't allow this."""

    code = "transition_refused"


class LeaseLostError(LessorError):
    """The caller isn't the live holder at the current epoch."""

    code = "lease_lost"
    exit_code = 7


class GrantOverError(LeaseLostError):
    """A repeated claim whose grant has ended; it never grants a second time."""

    code = "grant_over"


class DeniedError(LessorError):
    """The caller may not do this."""

    code = "denied"
    exit_code = 4


class StoreError(LessorError):
    """The store can't be used as it is."""

    code = "store"


class StoreCorruptError(StoreError):
    """The store's file is damaged; nothing is granted from it."""

    code = "store_corrupt"


class StoreNewerError(StoreError):
    """A newer Lessor wrote this store."""

    code = "store_newer"


class StoreUnsupportedError(StoreError):
    """The store lies where its promises can't be kept (a network file system, an old server)."""

    code = "store_unsupported"


class StoreUnavailableError(StoreError):
    """The store can't be reached, read or written now."""

    code = "store_unavailable"
    exit_code = 75


class ConstraintError(StoreError):
    """The database itself forbade a write that the rules let through; `constraint` names it."""

    code = "constraint"
    exit_code = 6


class GitError(LessorError):
    """Git refused or can't be run."""

    code = "git"


class GitMissingError(GitError):
    """There is no usable git on this machine."""

    code = "git_missing"


class NotARepositoryError(GitError):
    """The directory isn't inside a git repository."""

    code = "not_a_repository"
    exit_code = 5


class WorktreeError(GitError):
    """A worktree can't be made, moved or removed."""

    code = "worktree"


class ForeignCommitsError(GitError):
    """A branch that was lent out has commits which its holder didn't make; `commits` names them."""

    code = "foreign_commits"
    exit_code = 6


class HoldsWorkError(GitError):
    """A removal was refused because the worktree holds work, or because nobody can tell."""

    code = "holds_work"
    exit_code = 6


class RemoteUnreachableError(GitError):
    """A remote can't be asked now; nothing was sent to it."""

    code = "remote_unreachable"
    exit_code = 75


class PushRefusedError(GitError):
    """A remote took nothing of a push."""

    code = "push_refused"
    exit_code = 6


class OutcomeUnknownError(GitError):
    """Nobody knows yet whether a remote took a push; what overlaps it waits until it was asked."""

    code = "outcome_unknown"
    exit_code = 75


class AgentError(LessorError):
    """The agent's process couldn't be started or judged."""

    code = "agent"


class HostError(LessorError):
    """This machine stands in the way: a full disk, a directory that isn't ours to write."""

    code = "host"
    exit_code = 75


class SetupFailedError(LessorError):
    """The setup command failed in a new worktree, or left what would end in a result."""

    code = "setup_failed"


class BaseRedError(LessorError):
    """The check fails on the base already, so that no agent could pass it."""

    code = "base_red"


class AgentMissingError(AgentError):
    """The agent's program isn't there: no task can be worked on with it."""

    code = "agent_missing"
    exit_code = 5


class BusyError(LessorError):
    """Not now: try again after `retry_ms` milliseconds."""

    code = "busy"
    exit_code = 75
