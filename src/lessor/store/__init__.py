"""Rows in, records out; no rule."""
