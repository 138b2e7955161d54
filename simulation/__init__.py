"""Lessor under a simulated clock, network, remote and set of processes, judged after every commit."""
