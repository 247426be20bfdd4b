"""constraints.txt and docs/licences.md, made from the packages that are installed: python tools/dependencies.py.

Run it in an environment that has the extra dev. constraints.txt has the exact versions that the tests passed with.
"""

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
_HEAD = """\
# Licences of the packages that dividemix uses

Made by `python tools/dependencies.py` from the metadata of the installed packages; the packages themselves are
installed by pip and are not part of dividemix. "Used" says whether the package itself needs it, or an extra or the
tests.

| package | version | licence | used |
|---|---|---|---|
"""


def closure(needs: list[str]) -> set[str]:
    """The installed packages that these requirements need, directly or not."""
    found: set[str] = set()
    waiting = [(need, "") for need in needs]
    while waiting:
        text, extra = waiting.pop()
        need = Requirement(text)
        name = canonicalize_name(need.name)
        if (need.marker and not need.marker.evaluate({"extra": extra})) or name in found or not _version(name):
            continue
        found.add(name)
        for one in ("", *need.extras):
            waiting += [(other, one) for other in metadata.requires(name) or []]
    return found


def _version(name: str) -> str:
    """The version, without what marks a build such as +cpu; "" if the package is not installed."""
    try:
        return Version(metadata.version(name)).public
    except metadata.PackageNotFoundError:
        return ""


def licence(name: str) -> str:
    """The licence that a package's metadata names, in one line."""
    about = metadata.metadata(name)
    classifiers = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or [] if "License ::" in line]
    named = [about[field] for field in ("License-Expression", "License") if field in about]
    text = (named[:1] if "License-Expression" in about else classifiers or named) or ["see its files"]
    return ", ".join(text).strip().splitlines()[0][:80].replace("|", "/")


def main() -> None:
    """Write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = closure(project["dependencies"])
    every = closure([*project["dependencies"], *project["optional-dependencies"]["dev"]])
    lines = [f"{name}=={_version(name)}" for name in sorted(every)]
    head = "# The versions that the tests passed with; .ci/run installs them. Made by tools/dependencies.py.\n"
    (ROOT / "constraints.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    rows = [
        f"| {name} | {_version(name)} | {licence(name)} | {'dividemix' if name in needed else 'extra, tests'} |"
        for name in sorted(every)
    ]
    (ROOT / "docs" / "licences.md").write_text(_HEAD + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
