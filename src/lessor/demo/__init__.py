"""`lessor demo` and `lessor drill`: the product shown and tried, by the product's own code.

Nothing here is special-cased by the parts below: the demo's agents are scripts that are run like any
agent, and its saboteur only sends signals, as a person could.
"""
