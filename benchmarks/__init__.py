"""What DivideMix costs on this machine, beside a plain implementation of it: `python -m benchmarks`.

Each module with a `run(options)` is one benchmark of it; `against_cleanlab` is a command of its own, and the others
serve them. Both sides of a ratio are measured in the same run, in turns.
"""
