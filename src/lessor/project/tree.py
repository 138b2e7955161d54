"""The top of a commit's tree: its names, and its files when they are asked for."""

from __future__ import annotations

from functools import cached_property

from lessor.git.repository import Repository, read_file_at

LARGEST = 1024 * 1024
"""What is larger isn't a file that somebody configures a project with."""


class Tree:
    """One commit of a repository; git is asked for each name at most once."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit
        self._read: dict[str, str] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Everything at the top, directories too."""
        listed = self._repository.git(["ls-tree", "-z", "--name-only", self._commit])
        return frozenset(listed.records)

    def bytes_of(self, name: str) -> bytes | None:
        """The content of a plain file at the top; None where there is none."""
        if name not in self.names:
            return None
        return read_file_at(self._repository.common_dir, self._commit, name)

    def text_of(self, name: str) -> str:
        """The same as text; empty where it isn't there, is too large or no text."""
        if name not in self._read:
            content = self.bytes_of(name) or b""
            text = content[:LARGEST].decode("utf-8", errors="replace")
            self._read[name] = text
        return self._read[name]
