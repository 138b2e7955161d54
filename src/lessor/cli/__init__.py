"""The command line: it wires the parts together and holds no rule."""
