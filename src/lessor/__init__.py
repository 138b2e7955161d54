"""Lessor: temporary, provable authority for coding agents."""
