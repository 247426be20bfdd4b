"""What can go wrong that is not a bug: exceptions that end a command, and warnings for degenerate cases."""


class InputError(ValueError):
    """Something the user gave is wrong. The message is one line: what, where, what is allowed, what to do."""


class OtherArithmeticError(InputError):
    """A reproducible run was asked of a process whose arithmetic is not limited; a new process can do it."""


def shown(value: object, length: int = 200) -> str:
    """A value as a message shows it: cut short, whatever it is."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of thousands of digits
        text = "an integer of thousands of digits"
    return text if len(text) <= length else f"{text[:length]}..."


def counted(number: int, noun: str) -> str:
    """A number and its noun, which has an s unless there is one of it: 1 epoch, 2 epochs, 3 classes."""
    many = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else many}"


START_AGAIN = "start again: move the run directory away, or train with --overwrite"  # what to do with a damaged run


def advised(error: InputError, advice: str) -> InputError:
    """The error with advice for a damaged file. If the system refused to read the file, it is whole: no advice."""
    return error if isinstance(error.__cause__, OSError) else InputError(f"{error}; {advice}")


class DivergedError(RuntimeError):
    """A loss or a weight became NaN or infinite, so training stops."""


class DegenerateDivisionWarning(UserWarning):
    """A division that says nothing (all losses are equal) or has an empty side. Training continues in a defined way."""


class CompilationWarning(UserWarning):
    """A net, or a part of it, could not be compiled. It runs uncompiled: slower, with the same result."""


class OtherOpinionWarning(UserWarning):
    """A method cannot give its own opinion of all labels; a mixture over the losses gives it."""


class OtherProcessorWarning(UserWarning):
    """A run is resumed on another processor, or with another instruction set: bits of its results may differ."""


class DamagedImageWarning(UserWarning):
    """An image turned out to be damaged during training and is replaced by a black one."""


class DamagedCacheWarning(UserWarning):
    """Vectors that were kept on disk are not what was written. They are computed again."""


class HeadOnlyWarning(UserWarning):
    """An encoder cannot be exported, so a file has only the networks that were trained on its vectors."""
