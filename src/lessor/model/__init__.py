"""What is true of tasks, leases and scopes: pure values and rules.

Nothing here reads a clock, a file, a database or chance; everything can be tested by calling it.
"""
