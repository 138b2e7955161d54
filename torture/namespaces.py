"""Network namespaces for workers: a partition is a link that is down, and nobody is told."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespace:
    """A namespace, its link's name on this side, and this side's address on it."""

    name: str
    link: str
    address: str

    def prefix(self) -> list[str]:
        """What a command line begins with that runs inside."""
        return ["ip", "netns", "exec", self.name]

    def set_link(self, *, up: bool) -> None:
        """Connect or cut off; packets in between are lost without a word."""
        _ip("link", "set", self.link, "up" if up else "down")


def why_not() -> str:
    """Why there can be no namespaces here; empty where there can."""
    if shutil.which("ip") is None:
        return "there is no `ip` here (Debian: iproute2)"
    try:
        remove_namespaces(make_namespaces(1))
    except (OSError, subprocess.SubprocessError) as refused:
        said = str(getattr(refused, "stderr", "") or refused).strip()
        return f"this machine refuses network namespaces: {said}"
    return ""


def make_namespaces(count: int) -> list[Namespace]:
    """Namespaces with a link each to this one, addresses out of a private range."""
    made = []
    try:
        for n in range(count):
            name, net = f"lst{os.getpid()}n{n}", f"10.{200 + n}.{os.getpid() % 250}"
            near, far = f"lt{os.getpid()}a{n}", f"lt{os.getpid()}b{n}"
            _ip("netns", "add", name)
            made.append(Namespace(name=name, link=near, address=f"{net}.1"))
            _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
            _ip("addr", "add", f"{net}.1/24", "dev", near)
            _ip("link", "set", near, "up")
            for args in (
                ("addr", "add", f"{net}.2/24", "dev", far),
                ("link", "set", far, "up"),
                ("link", "set", "lo", "up"),
            ):
                _ip("-n", name, *args)
    except BaseException:
        remove_namespaces(made)
        raise
    return made


def remove_namespaces(made: list[Namespace]) -> None:
    """Take them away, links and all."""
    for one in made:
        subprocess.run(["ip", "netns", "del", one.name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", one.link], check=False, capture_output=True)


def _ip(*args: str) -> None:
    subprocess.run(["ip", *args], check=True, capture_output=True, text=True, timeout=20)
