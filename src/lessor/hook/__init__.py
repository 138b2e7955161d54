"""What git itself starts at every push: the standard library alone, and as little of it as goes.

A push waits for this. It is run by its path, without site-packages, and asks a resident process
(`lessor.receive.keeper`) that has everything else loaded. It decides one thing by itself: where
nobody can be asked, no branch is let through.
"""
