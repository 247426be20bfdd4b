"""Known holes in the versions of constraints.txt and in the lower bounds of pyproject.toml.

Usage, from the root of the repository: python tools/audit.py DATABASE

DATABASE is a checkout of the Python Packaging Advisory Database, from which pip-audit has its data, too: nothing is
asked of the network. The exit code is 1 if a hole is found.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def versions() -> Iterator[tuple[str, NormalizedName, str]]:
    """What each version is, the name of its package, and the version."""
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, version = line.partition("==")
            yield "constraints.txt", canonicalize_name(name), version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    for need in map(Requirement, [*project["dependencies"], *(one for extra in extras for one in extra)]):
        for bound in need.specifier:
            if bound.operator in (">=", "=="):
                yield "lower bound", canonicalize_name(need.name), bound.version


def is_affected(version: str, advisory: dict[str, Any]) -> bool:
    """Whether the advisory lists the version, or has it in a range."""
    if "withdrawn" in advisory:
        return False
    for affected in advisory.get("affected", []):
        if version in affected.get("versions", []):
            return True
        ranges = [one for one in affected.get("ranges", []) if one["type"] == "ECOSYSTEM"]
        if any(_is_inside(Version(version), one["events"]) for one in ranges):
            return True
    return False


def _is_inside(version: Version, events: list[dict[str, str]]) -> bool:
    """Whether a version is in a range: the last event up to it decides."""
    inside = False
    for event in sorted(events, key=lambda one: Version(next(iter(one.values())))):
        ((kind, at),) = event.items()
        if kind == "last_affected":
            inside = inside and version <= Version(at)
        elif version >= Version(at):
            inside = kind == "introduced"
    return inside


def main(database: Path) -> int:
    """Print every hole, and how much was compared. Returns 1 if there is a hole."""
    files = {canonicalize_name(folder.name): sorted(folder.glob("*.yaml")) for folder in (database / "vulns").iterdir()}
    compared = [
        (f"{what}: {name} {version}", version, yaml.safe_load(file.read_text(encoding="utf-8")))
        for what, name, version in versions()
        for file in files.get(name, [])
    ]
    holes = [f"{words}: {advisory['id']}" for words, version, advisory in compared if is_affected(version, advisory)]
    ids = {advisory["id"] for _, _, advisory in compared}
    newest = max((str(advisory.get("published", ""))[:10] for _, _, advisory in compared), default="none")
    print(*holes, f"{len(ids)} advisories, the newest of {newest}: {len(holes)} holes", sep="\n")  # noqa: T201
    return 1 if holes else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
