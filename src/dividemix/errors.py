"""What can go wrong that is not a bug: one exception class per way out, one warning class per degenerate case."""


class InputError(ValueError):
    """Something the user gave is wrong: the message is one line with what, where, what is allowed and what to do."""


START_AGAIN = "start again: move the run directory away, or train with --overwrite"  # what to do with a damaged run


class DivergedError(RuntimeError):
    """Training left the numbers: a loss or a weight is not finite, so going on would only write NaN."""


class DegenerateDivisionWarning(UserWarning):
    """A division that says nothing (all losses equal) or leaves a side empty; training goes on in a defined way."""


class CompilationWarning(UserWarning):
    """A net, or a part of it, could not be compiled and runs as it is, slower but the same."""


class DamagedImageWarning(UserWarning):
    """An image that turned out to be damaged while training and is taken for a black one."""
