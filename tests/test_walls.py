"""The walls of the house: who imports whom, where true labels and methods may be named, what loads torch.

The oracle is the list of layers in tools/architecture.py, top to bottom; imports are read from the source with ast.
"""

import ast
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

from architecture import FILES, IMPORTS, LAYERS, PACKAGE, PAGE, imports, page_with_picture, room  # noqa: E402

from dividemix.methods import METHODS  # noqa: E402

DEPTH = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}
LIGHT = tuple(
    f"dividemix.{name}"
    for name in (
        "errors",
        "settings",
        "foreign",
        "lazy",
        "cli",
        "data.builtin",
        "planning.presets",
        "planning.job",
        "planning.plan",
        "planning.choices",
        "planning.pace",
        "judging.selection",
        "judging.records",
    )
)
LIGHT += tuple(sorted(name for name in FILES if name.startswith("dividemix.commands")))
LIGHT += tuple(f"dividemix.methods.{name}" for name in ("method", *METHODS))


def in_room(*rooms: str) -> list[str]:
    return sorted(name for name in FILES if room(name) in rooms)


def test_imports_are_found_wherever_they_are() -> None:
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


def test_every_room_has_a_layer_and_every_layer_has_files() -> None:
    """A rule about a room that was renamed would hold for nothing."""
    assert {room(name) for name in FILES} == DEPTH.keys()
    assert set(LIGHT) <= FILES.keys()


@pytest.mark.parametrize("module", sorted(FILES))
def test_arrows_point_down(module: str) -> None:
    own = room(module)
    wrong = {other for other in IMPORTS[module] if room(other) != own and DEPTH[room(other)] <= DEPTH[own]}
    assert not wrong, f"{module} imports {wrong}"


def test_the_architecture_page_shows_the_rooms_as_they_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "<!-- rooms -->" in text
    assert page_with_picture(text) == text, "run: python tools/architecture.py"


def test_the_command_line_is_imported_by_main_alone() -> None:
    assert [name for name, known in IMPORTS.items() if "dividemix.cli" in known] == ["dividemix.__main__"]


@pytest.mark.parametrize("module", in_room("algorithm", "methods", "nets", "engine"))
def test_training_cannot_name_true_labels(module: str) -> None:
    assert "true_labels" not in FILES[module].read_text(encoding="utf-8"), f"{module} has the word, if only as a text"


def names_a_method(source: str) -> set[str]:
    """The methods that a source names in a text of its own; the package has the name of one, which is no sign."""
    texts = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    compared = re.search(r"method\S* (==|!=|in) .?[\"']dividemix[\"']", source)
    return (texts & METHODS.keys() - {"dividemix"}) | ({"dividemix"} if compared else set())


def test_a_method_that_is_named_is_found() -> None:
    assert names_a_method('if job.method == "dividemix":\n    pass') == {"dividemix"}
    assert names_a_method('print({"method": "robust"})') == {"robust"}
    assert names_a_method('metadata.version("dividemix")') == set()


@pytest.mark.parametrize("module", sorted(FILES))
def test_no_method_is_named_outside_methods_presets_and_experiments(module: str) -> None:
    if room(module) in ("methods", "experiments") or module == "dividemix.planning.presets":
        return
    named = names_a_method(FILES[module].read_text(encoding="utf-8"))
    assert not named, f"{module} has the text {named}: name no method there, or give a new method another name"


def test_no_module_is_named_for_having_no_purpose() -> None:
    assert not [name for name in FILES if {"utils", "util", "helpers", "common", "base"} & set(name.split("."))]


def test_files_are_short() -> None:
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in FILES.items()}
    assert {name: length for name, length in lengths.items() if length > 320} == {}
    assert statistics.median(lengths.values()) <= 90
    assert lengths["dividemix.algorithm.dividemix"] <= 160  # the file that is Algorithm 1


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
        assert entry, f"a line must have paths, two spaces or more, and their purpose: {line}"
        first, *others = entry[1].split(", ")
        listed += [first, *(str(Path(first).parent / name) for name in others)]
    return listed


def test_every_path_of_the_readme_exists() -> None:
    assert [path for path in listed_paths() if not (ROOT / path).exists()] == []


def test_every_room_is_in_the_readme() -> None:
    rooms = {path.parent for path in FILES.values()} - {PACKAGE}
    tops = {path.relative_to(PACKAGE).parts[0] for path in rooms}
    assert {f"src/dividemix/{name}" for name in tops} <= {path.rstrip("/") for path in listed_paths()}
