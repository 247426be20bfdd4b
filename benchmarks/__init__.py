"""What DivideMix costs on this machine, beside a plain implementation of it: `python -m benchmarks`.

Each module but the four that serve them (`contract`, `timing`, `subject`, `plain`) is one benchmark with a
`run(options)`. Both sides of a ratio are measured in the same run, in turns.
"""
