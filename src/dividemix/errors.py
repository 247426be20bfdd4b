"""What can go wrong that is not a bug: exceptions that end a command, and warnings for degenerate cases."""

import errno
import os


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


# Answers of the system that are no refusals: no such file, and no such place in it, which damage can ask for.
_OF_THE_FILE = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
    *(errno.EINVAL, errno.EOVERFLOW),
)
_ACCESS, _FILES = "give yourself access, or leave it out of the data", "allow more open files (ulimit -n)"
_REMEDIES = {
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.ENOMEM: "free some memory",
    errno.ENOENT: "get it again, or leave it out of the data",
}


def is_refusal(error: BaseException | None) -> bool:
    """Whether the system refuses to read a file that exists: no access, memory or descriptor, or a failing disk.

    That is no fault of the file: nothing may be called damaged, skipped or made again because of it.
    """
    if isinstance(error, OSError):
        return error.errno is not None and error.errno not in _OF_THE_FILE
    return isinstance(error, MemoryError)


def refused(where: object, error: BaseException) -> InputError:
    """The error to raise if the system refuses to read a part of the data: what it says, and what to do."""
    number = errno.ENOMEM if isinstance(error, MemoryError) else getattr(error, "errno", None)
    words = os.strerror(number) if number else " ".join(str(error).split()) or type(error).__name__
    remedy = _REMEDIES.get(number or 0, "check the disk, or leave it out of the data")
    return InputError(f"{where}: cannot be read: {words}: {remedy}")


class DivergedError(RuntimeError):
    """A loss or a weight became NaN or infinite, so training stops."""


class DegenerateDivisionWarning(UserWarning):
    """A division that says nothing (all losses are equal) or has an empty side. Training continues in a defined way."""


class CautionWarning(UserWarning):
    """A sentence to read before trusting the flags of a run."""


class SkippedSamplesWarning(UserWarning):
    """Parts of the data could not be used and were skipped."""


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
