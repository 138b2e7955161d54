"""Git, through its own command line: repositories, worktrees, salvage.

Owns every call of git. It doesn't decide who may do what (that is the store's), it doesn't look at
processes (the caller says who is inside a worktree), and it deletes nothing that it can't prove
empty or kept elsewhere.
"""
