"""Receiving: what a server with Lessor's hooks answers to a push.

git's hooks ask a resident process of the bare repository, which asks whoever keeps the leases: the
store on this machine today, a service tomorrow (`Book`). Where nobody can be asked, no branch moves.
"""
