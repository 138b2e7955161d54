"""Git, through its own command line: repositories, worktrees, salvage.

Owns every call of git. It doesn't decide who may do what (that is the store's), and it doesn't
delete anything that it can't prove empty.
"""
