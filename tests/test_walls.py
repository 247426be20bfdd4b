"""The walls of the house: who imports whom, where true labels may be named, what loads torch, what the README lists.

The oracle is the list of rules below; imports are read from the source with ast, wherever in a file they stand.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dividemix"
FILES = {
    ".".join(("dividemix", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}
LIGHT = tuple(
    f"dividemix.{name}"
    for name in (
        "errors",
        "config",
        "cli",
        "planning.presets",
        "planning.job",
        "planning.choices",
        "planning.pace",
        "judging.selection",
    )
)
LIGHT += tuple(sorted(name for name in FILES if name.startswith("dividemix.commands")))


def imports(source: str, module: str, is_package: bool = False) -> set[str]:
    """The package's modules that a source names in its imports, at the top, in functions, or for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".") if is_package else module.split(".")[:-1]
            parts = parts[: len(parts) - node.level + 1] if node.level else []
            home = ".".join(parts + ([node.module] if node.module else []))
            for alias in node.names:
                inner = f"{home}.{alias.name}"
                found.add(inner if inner in FILES else home)
    return {name for name in found if name.split(".")[0] == "dividemix"}


IMPORTS = {name: imports(path.read_text(), name, path.name == "__init__.py") for name, path in FILES.items()}


def room(module: str) -> str:
    """The part of the house: algorithm for dividemix.algorithm.divide; empty for the package itself."""
    return f"{module}.".split(".")[1]


def reached(module: str) -> set[str]:
    """Every module of the package that importing this one leads to."""
    seen: set[str] = set()
    ahead = [module]
    while ahead:
        for name in IMPORTS.get(ahead.pop(), set()) - seen:
            seen.add(name)
            ahead.append(name)
    return seen


def in_room(*rooms: str) -> list[str]:
    return sorted(name for name in FILES if room(name) in rooms)


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
import torch
import dividemix.cli
from dividemix import atomic
from dividemix.errors import InputError
from . import mixture
from ..data.noise import parse_noise
def f():
    from dividemix.runs import run
if TYPE_CHECKING:
    from dividemix.planning.job import Job
"""
    assert imports(source, "dividemix.algorithm.divide") == {
        "dividemix.cli",
        "dividemix.atomic",
        "dividemix.errors",
        "dividemix.algorithm.mixture",
        "dividemix.data.noise",
        "dividemix.runs.run",
        "dividemix.planning.job",
    }


def test_every_room_is_there() -> None:
    """A rule about a room that was renamed would hold for nothing."""
    rooms = "algorithm data nets engine methods planning judging model runs report relabel experiments commands"
    assert set(rooms.split()) <= {room(name) for name in FILES}
    assert {"api", "cli", "config", "display", "errors", "estimator"} <= {room(name) for name in FILES}
    assert set(LIGHT) <= FILES.keys()


@pytest.mark.parametrize("module", in_room("algorithm"))
def test_the_algorithm_knows_only_itself_and_the_rooms_below(module: str) -> None:
    assert {room(name) for name in IMPORTS[module]} <= {"algorithm", "config", "data", "engine", "errors"}


@pytest.mark.parametrize("module", in_room("data", "nets"))
def test_data_and_nets_know_neither_the_algorithm_nor_who_uses_them(module: str) -> None:
    forbidden = {"algorithm", "methods", "runs", "report", "experiments", "estimator", "cli", "display"}
    assert not {name for name in reached(module) if room(name) in forbidden}


@pytest.mark.parametrize("module", in_room("engine"))
def test_the_engine_does_not_know_the_paper(module: str) -> None:
    forbidden = {"algorithm", "methods", "data", "runs", "report", "experiments", "estimator", "cli", "display"}
    assert not {name for name in reached(module) if room(name) in forbidden}


def test_the_command_line_is_imported_by_main_alone_and_the_display_by_those_who_watch() -> None:
    assert [name for name, known in IMPORTS.items() if "dividemix.cli" in known] == ["dividemix.__main__"]
    assert {room(name) for name, known in IMPORTS.items() if "dividemix.display" in known} == {"commands", "api"}
    assert {room(name) for name, known in IMPORTS.items() if any(room(other) == "commands" for other in known)} <= {
        "cli",
        "commands",
    }


@pytest.mark.parametrize("module", in_room("report"))
def test_the_report_draws_what_it_is_given_and_knows_data_and_scores_alone(module: str) -> None:
    known = reached(module)
    assert {room(name) for name in known} <= {"report", "judging", "data", "errors", "atomic", ""}


@pytest.mark.parametrize("module", in_room("algorithm", "methods", "nets", "engine"))
def test_training_cannot_name_true_labels(module: str) -> None:
    assert "true_labels" not in FILES[module].read_text()


def test_no_module_is_named_for_having_no_purpose() -> None:
    assert not [name for name in FILES if {"utils", "util", "helpers", "common", "base"} & set(name.split("."))]


def test_the_light_modules_load_neither_torch_nor_numpy() -> None:
    script = f"""
import importlib, sys
for name in {LIGHT!r}:
    importlib.import_module(name)
    heavy = [module for module in ("torch", "numpy") if module in sys.modules]
    if heavy:
        sys.exit(f"{{name}} loads {{' and '.join(heavy)}}")
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


# The README's tree of rooms: a fenced block under "## The files", paths and their purpose in each line.


def listed_paths() -> list[str]:
    """Every path that the tree names; those after a comma are in the folder of the first."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"^## The files\n.*?^```\w*\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert block, 'README.md has no fenced block under "## The files"'
    listed = []
    for line in block[1].splitlines():
        entry = re.fullmatch(r"(\S+(?:, \S+)*) {2,}\S.*", line)
        assert entry, f"paths, two spaces or more, and their purpose are needed: {line}"
        first, *others = entry[1].split(", ")
        listed += [first, *(str(Path(first).parent / name) for name in others)]
    return listed


def test_every_path_of_the_readme_exists() -> None:
    assert [path for path in listed_paths() if not (ROOT / path).exists()] == []


def test_every_room_is_in_the_readme() -> None:
    rooms = {path.parent for path in FILES.values()} - {PACKAGE}
    tops = {room.relative_to(PACKAGE).parts[0] for room in rooms}
    assert {f"src/dividemix/{name}" for name in tops} <= {path.rstrip("/") for path in listed_paths()}
