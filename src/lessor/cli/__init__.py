"""The command line: it wires the parts together and holds no rule.

`commands` lists the commands, `main` starts one and turns refusals into exit codes, `invocation`
is what every command stands on. Text of tasks, agents and repositories is data here too: it
reaches the terminal through `text.shown` alone.
"""
