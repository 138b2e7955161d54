"""Publishing: what leaves this machine for a remote, so that a stale push is refused there.

The store says who may, git's compare-and-swap at the remote sees to it. Everything here can be
repeated: a claim makes its lease ready again, a push asks first what became of the last one, and a
recovery that was cut short begins anew.
"""
