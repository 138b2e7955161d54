"""What this host knows of itself and of the processes on it.

Together with `proctable`, `cgroup` and `occupants` this is the only module that uses what one
system has and another hasn't (/proc, prctl, pidfd, CLOCK_BOOTTIME). Each means has a portable
fallback, and `abilities` says what is weaker without it. Written for Linux and macOS; run on Linux.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lessor.errors import InvalidError
from lessor.runner.cgroup import delegated_directory
from lessor.runner.proctable import LINUX, process_row

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_GET_CHILD_SUBREAPER = 37
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Presence(StrEnum):
    """What is known of a process; only GONE frees anything."""

    ALIVE = "alive"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A presence and the sentence that says how it is known."""

    presence: Presence
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process, told apart from every other that has had or will have its pid.

    Attributes:
        host_id: Lessor's id of the host; empty means unknown.
        boot_id: the boot in which pid and ticks count; empty means unknown.
        pid_namespace: where the pid counts, and the clock its start is measured on.
        start_ticks: when it started (see `ProcessRow`).
    """

    host_id: str
    boot_id: str
    pid_namespace: str
    pid: int
    start_ticks: int

    def __post_init__(self) -> None:
        # kill(0) means our own group and kill(-1) everybody: such a "pid" must never get that far.
        if self.pid < 1:
            raise InvalidError(
                f"{self.pid!r} isn't a process id.", next_step="Give a number above 0."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The host, boot and namespace that this process runs in."""

    id: str
    boot_id: str
    pid_namespace: str

    def identify(self, pid: int) -> ProcessIdentity | None:
        """The identity of a process that runs here now, or None when it can't be read."""
        row = process_row(pid)
        if row is None:
            return None
        return ProcessIdentity(
            host_id=self.id,
            boot_id=self.boot_id,
            pid_namespace=self.pid_namespace,
            pid=pid,
            start_ticks=row.start_ticks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ability:
    """Whether this host has a means, and what that is worth."""

    available: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAbilities:
    """The means that differ between hosts, for `doctor`."""

    subreaper: Ability
    cgroup: Ability
    pidfd: Ability
    boottime: Ability


def this_host(host: str) -> Host:
    """This host under its id (see `host_id`), as it is now."""
    return Host(id=host, boot_id=boot_id(), pid_namespace=pid_namespace())


def boot_id() -> str:
    """The kernel's id of this boot; empty where it can't be read, which proves nothing."""
    if LINUX:
        with suppress(OSError):
            return _BOOT_ID.read_text().strip()
        return ""
    return _sysctl("kern.bootsessionuuid")


def pid_namespace() -> str:
    """Where this process's pids and their start times count.

    Start times are shifted by a time namespace, so its inode stands beside that of the pid
    namespace. Inodes are comparable within one boot only. Systems without namespaces have one.
    """
    if not LINUX:
        return "one"
    try:
        inodes = [Path(f"/proc/self/ns/{kind}").stat().st_ino for kind in ("pid", "time")]
    except OSError:
        return ""
    return "/".join(str(inode) for inode in inodes)


def presence(identity: ProcessIdentity, here: Host) -> Sighting:
    """Whether that process lives, judged from `here`.

    A zombie is gone itself; what it started may live on. Anything that can't be read, or that
    counts in another host's or namespace's numbers, is unknown. A changed boot id is worth as
    much as the host id beside it: whoever acts on it must know that the id is this host's own.
    """
    if not identity.host_id or identity.host_id != here.id:
        return _unknown("it ran on another host")
    if not identity.boot_id or not here.boot_id:
        return _unknown("this host's boot can't be told apart from others")
    if identity.boot_id != here.boot_id:
        return _gone("this host has booted again since")
    if not identity.pid_namespace or identity.pid_namespace != here.pid_namespace:
        return _unknown("it ran in another pid namespace")
    return _presence_here(identity)


def become_subreaper() -> bool:
    """Adopt every orphaned descendant of this process from now on; False where that can't be."""
    return _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Ask for SIGKILL when the thread that started this process ends (Linux; else nothing)."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def can_pin_processes() -> bool:
    """Whether a process can be held by a descriptor, so that a signal can't hit its successor."""
    return hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


def abilities() -> HostAbilities:
    """What this host has of the means that Lessor would like; changes nothing."""
    return HostAbilities(
        subreaper=_ability(
            available=_can_ask_for_subreaper(),
            have="Processes that an agent leaves behind are adopted, ended and proved gone.",
            lack="A process that detaches from its agent can't be followed: leases then end "
            "by expiry, never by proof.",
        ),
        cgroup=_ability(
            available=delegated_directory() is not None,
            have="An agent's whole tree is killed and frozen in one step.",
            lack="Trees are killed and frozen process by process; one that forks quickly "
            "takes several passes.",
        ),
        pidfd=_ability(
            available=can_pin_processes(),
            have="Signals are sent to a process, not to whatever has its number now.",
            lack="Between look and signal a process's number could pass to another.",
        ),
        boottime=_ability(
            available=hasattr(time, "CLOCK_BOOTTIME"),
            have="Time asleep counts: a lease that ran out during suspend is known to have.",
            lack="Time asleep may not count: after a suspend a holder learns from the store "
            "alone that its lease ran out.",
        ),
    )


def _presence_here(identity: ProcessIdentity) -> Sighting:
    try:
        os.kill(identity.pid, 0)
    except ProcessLookupError:
        return _gone(f"no process has the pid {identity.pid}")
    except PermissionError:
        pass  # somebody else's process: it exists, and its start decides whose it is
    row = process_row(identity.pid)
    if row is None:
        return _unknown(f"process {identity.pid} can't be read")
    if row.start_ticks != identity.start_ticks:
        return _gone(f"the pid {identity.pid} belongs to a process that started later")
    if row.ended:
        return _gone(f"process {identity.pid} has ended; its parent hasn't collected it yet")
    state = "is stopped" if row.stopped else "runs"
    return Sighting(presence=Presence.ALIVE, reason=f"process {identity.pid} {state}")


def _gone(reason: str) -> Sighting:
    return Sighting(presence=Presence.GONE, reason=reason)


def _unknown(reason: str) -> Sighting:
    return Sighting(presence=Presence.UNKNOWN, reason=reason)


def _ability(*, available: bool, have: str, lack: str) -> Ability:
    return Ability(available=available, sentence=have if available else lack)


def _can_ask_for_subreaper() -> bool:
    answer = ctypes.c_int()
    return LINUX and _libc().prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0


def _prctl(option: int, value: int) -> bool:
    return LINUX and _libc().prctl(option, value, 0, 0, 0) == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _sysctl(name: str) -> str:
    if os.uname().sysname != "Darwin":
        return ""
    buffer = ctypes.create_string_buffer(128)
    size = ctypes.c_size_t(len(buffer))
    if _libc().sysctlbyname(name.encode(), buffer, ctypes.byref(size), None, 0) != 0:
        return ""
    return buffer.value.decode(errors="replace")
