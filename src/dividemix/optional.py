"""Packages that an encoder needs and that are not installed with this one, and what they load from elsewhere."""

import importlib
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dividemix.errors import InputError


def import_optional(package: str, name: str, install: str) -> Any:
    """The package. Raises InputError, naming the encoder or net and what to install, if it is missing or broken."""
    try:
        return importlib.import_module(package)
    except Exception as error:  # a broken installation raises anything
        first_line = (str(error).splitlines() or [""])[0][:200]
        raise InputError(f"{name!r} needs {install} ({first_line}): pip install {install}") from error


@contextmanager
def loading(name: str, advice: str) -> Iterator[None]:
    """While inside, whatever goes wrong becomes an InputError of one line that ends with the advice."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # packages raise anything for a wrong name, or without a network
        words = textwrap.shorten(str(error), 200, placeholder=" ...") or type(error).__name__
        raise InputError(f"{name!r} cannot be loaded: {words}; {advice}") from error


def check_folder(model: str, name: str) -> None:
    """Raise InputError if the model of this name is meant as a folder, and is none.

    A name on the hub of transformers is MODEL or OWNER/MODEL.
    """
    is_path = model.startswith((".", "~")) or Path(model).is_absolute() or model.count("/") > 1
    if is_path and not Path(model).is_dir():
        raise InputError(f"{name!r} cannot be loaded: there is no folder {model}")


@contextmanager
def quiet(transformers: Any) -> Iterator[None]:
    """While inside, the package transformers shows no progress bar; a package without one is left as it is."""
    logging: Any = getattr(getattr(transformers, "utils", None), "logging", None)
    with suppress(AttributeError):
        logging.disable_progress_bar()
    try:
        yield
    finally:
        with suppress(AttributeError):
            logging.enable_progress_bar()
