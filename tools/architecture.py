"""The picture of rooms in docs/architecture.md, made from the imports: python tools/architecture.py writes it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dividemix"
PAGE = ROOT / "docs" / "architecture.md"
# From the top to the bottom: a room may import itself and rooms of lower layers, and no other.
FACES = "faces"
GROUND = "ground"
LAYERS: tuple[tuple[str, ...], ...] = (
    (FACES,),
    ("experiments", "report", "relabel"),
    ("runs",),
    ("judging", "model"),
    ("planning",),
    ("methods",),
    ("algorithm", "encoders"),
    ("data", "nets", "engine"),
    (GROUND,),
)
_GROUND = (
    "atomic",
    "errors",
    "foreign",
    "lazy",
    "lock",
    "meant",
    "optional",
    "settings",
    "stored",
    "version",
)  # modules that any room may use
FILES = {
    ".".join(("dividemix", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


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


def room(module: str) -> str:
    """The room of a module: algorithm for dividemix.algorithm.divide; a top-level module is a face or on the ground."""
    part = f"{module}.".split(".")[1]
    if (PACKAGE / part).is_dir() and part not in ("", "commands"):
        return part
    return GROUND if part in _GROUND else FACES


IMPORTS = {
    name: imports(path.read_text(encoding="utf-8"), name, path.stem == "__init__") for name, path in FILES.items()
}


def arrows() -> dict[str, list[str]]:
    """Each room with the rooms that it imports, from the top to the bottom; the ground is left out."""
    order = [name for layer in LAYERS for name in layer if name != GROUND]
    known = {
        name: {room(other) for module in FILES if room(module) == name for other in IMPORTS[module]} for name in order
    }
    return {name: [other for other in order if other in known[name] - {name}] for name in order}


def picture() -> str:
    """The rooms in their layers, with what each imports, as text."""
    known = arrows()
    lines = []
    for layer in LAYERS[:-1]:
        lines += [f"{name:12} -> {', '.join(known[name]) or '-'}" for name in layer]
        lines.append("-" * 60)
    return "\n".join([*lines, f"{GROUND:12} {', '.join(f'{name}.py' for name in _GROUND)}: any room may use them"])


def page_with_picture(text: str) -> str:
    """The page with the fenced block after "<!-- rooms -->" made anew."""
    return re.sub(
        r"(<!-- rooms -->\n```\n).*?(\n```)", lambda match: match[1] + picture() + match[2], text, flags=re.DOTALL
    )


if __name__ == "__main__":
    PAGE.write_text(page_with_picture(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {PAGE}")  # noqa: T201
