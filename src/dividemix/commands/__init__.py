"""One file per command of the command line: `add` gives a parser its flags, and the command what it does.

Importing a command loads nothing heavy: that waits until it runs.
"""
