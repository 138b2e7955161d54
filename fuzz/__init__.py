"""Fuzzing of every parser; see docs/fuzzing.md."""
