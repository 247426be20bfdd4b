"""dividemix doctor: what this machine has, what is fast here, and what is missing. It ends without an error, always."""

import argparse
from collections.abc import Callable

HELP = "show versions, the machine, what is fast here and what is missing"


def add(doctor: argparse.ArgumentParser) -> None:
    """Add no flags."""
    doctor.set_defaults(command=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from dividemix import examination

    for title, examine in examination.PARTS.items():
        print(title)
        for name, finding in _found(examine):
            print(f"  {name:24} {finding}")
    return 0


def _found(examine: Callable[[], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What a part finds; if it breaks, why."""
    try:
        return examine()
    except Exception as error:  # a broken package may raise anything, and that is what the user wants to see
        return [("broken", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")]
