"""constraints.txt and docs/licences.md against pyproject.toml: every requirement has a version that it allows."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINNED = {
    one.name: one
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#") and (one := Requirement(line))
}


def test_every_requirement_allows_the_version_that_ci_installs() -> None:
    for need in map(Requirement, [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]):
        pinned = PINNED[canonicalize_name(need.name)]
        (version,) = (one.version for one in pinned.specifier)
        assert version in need.specifier, f"{pinned}: run python tools/dependencies.py"


def test_every_version_has_a_licence() -> None:
    lines = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ") and "==" not in line][1:]
    assert {f"{name}=={version}" for name, version, *_ in rows} == set(map(str, PINNED.values()))
    assert all(licence not in ("", "UNKNOWN", "see its files") for _, _, licence, _ in rows)
