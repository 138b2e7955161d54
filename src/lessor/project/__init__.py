"""A repository as its owner set it up: `lessor.toml`, what is found without it, lists of tasks.

Owns the meaning of these files and the person's trust in the commands that they name. It runs
nothing, writes only below the trust directory, and reads settings from a commit, never from a work
tree: a branch under judgement can't change what judges it.
"""

from lessor.project.project import Project, project_of

__all__ = ["Project", "project_of"]
