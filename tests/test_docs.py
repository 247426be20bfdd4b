"""README.md and docs/*.md against the code: links, commands, Python examples, and the page of settings.

Oracles: the files on disk, the parser and the planner of the command line, the interpreter, tools/settings_page.py.

A ```python block runs, in an empty folder, after the other blocks of its page. One that begins with "# NAME.py" is
written to that file instead. One that is only to be read is marked ```python illustrative.
"""

import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

from settings_page import PAGE, page  # noqa: E402

from dividemix.cli import _COMMANDS, _parser  # noqa: E402
from dividemix.foreign import is_foreign  # noqa: E402
from dividemix.methods import METHODS, find_method  # noqa: E402
from dividemix.methods.method import MethodSettings  # noqa: E402
from dividemix.planning.job import JOB_FIELDS, PLACES, own_fields  # noqa: E402
from dividemix.planning.plan import make_draft  # noqa: E402
from dividemix.planning.presets import DEMO, find_preset, preset_for  # noqa: E402
from dividemix.relabel.tools import TOOLS  # noqa: E402
from dividemix.settings import fields_of  # noqa: E402

PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if path.parent.name != "results"  # tables that commands wrote
}
MOST_SKIPPED = 4  # commands with placeholders that no parser could know
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
each_page = pytest.mark.parametrize("name", PAGES)


def text_of(name: str) -> str:
    return PAGES[name].read_text(encoding="utf-8")


def prose_of(name: str) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", text_of(name))


def anchors_of(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def blocks_of(name: str, language: str) -> list[str]:
    """The fenced blocks of a language; those with a second word are not among them."""
    return [content for info, content in FENCE.findall(text_of(name)) if info == language]


# Links


@each_page
def test_every_relative_link_resolves(name: str) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(name)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = PAGES[name].parent / file if file else PAGES[name]
        if not path.exists() or (anchor and anchor not in anchors_of(path)):
            broken.append(target)
    assert broken == []


def test_an_anchor_is_made_of_its_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## Settings of `dividemix`\n\n```sh\n# no heading\n```\n### Tables 3, 4\n")
    assert anchors_of(page) == {"settings-of-dividemix", "tables-3-4"}


def test_the_contents_of_the_site_have_every_page() -> None:
    """sphinx-build warns of a page that no toctree names, and tests/test_site.py fails then."""
    trees = [content for info, content in FENCE.findall(text_of("docs/index.md")) if info == "{toctree}"]
    listed = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    names = [re.sub(r".* <(.*)>", r"\1", line) for line in listed if "*" not in line]
    pages = {f"docs/{name}.md" for name in names}
    assert pages == PAGES.keys() - {"README.md", "docs/index.md"}


def test_the_readme_is_short() -> None:
    assert len(text_of("README.md").splitlines()) <= 170


# Files and names


@each_page
def test_every_file_that_is_named_exists(name: str) -> None:
    """A path with a folder in it; NAME and KIND are for what a recipe adds."""
    named = re.findall(r"`([\w./]+/[\w.]+\.(?:py|js|html|cpp|md|png))`", prose_of(name))
    places = (ROOT, ROOT / "src" / "dividemix", PAGES[name].parent)
    paths = [path for path in named if not re.search(r"NAME|KIND|OUT", path)]
    assert [path for path in paths if not any((place / path).exists() for place in places)] == []


def test_every_name_of_the_map_from_the_paper_is_in_its_file() -> None:
    """The map says "`name`, `other` in `file`"; of Class.name the file has both."""
    found = re.findall(r"((?:`[\w.]+`(?:, )?)+) in `([\w/]+\.py)`", prose_of("docs/paper_to_code.md"))
    assert len(found) > 15
    for names, file in found:
        source = (ROOT / "src" / "dividemix" / file).read_text(encoding="utf-8")
        for word in re.findall(r"\w+", names):
            assert re.search(rf"\b{word}\b", source), f"{file} has no {word}"


def test_every_name_that_a_recipe_looks_for_is_in_its_file() -> None:
    """The recipes say "`name` in `file`" or "`name` of `file`"."""
    prose = " ".join(prose_of("docs/architecture.md").split())
    found = re.findall(r"`(\w+)` (?:in|of) `([\w/]+\.(?:py|js))`", prose)
    assert len(found) > 25
    for word, file in found:
        path = next(place / file for place in (ROOT, ROOT / "src" / "dividemix") if (place / file).exists())
        assert re.search(rf"\b{word}\b", path.read_text(encoding="utf-8")), f"{file} has no {word}"


# Settings


def test_the_page_of_a_run_names_every_setting_that_may_change_on_resume() -> None:
    (sentence,) = re.findall(
        r"You may change these settings when you resume: (.*?)\. ", text_of("docs/run_directory.md"), re.DOTALL
    )
    assert re.findall(r"`(\w+)`", sentence) == list(PLACES)


def test_pages_that_name_the_file_of_probabilities_say_that_it_is_in_sample() -> None:
    """Tools such as cleanlab expect predictions for samples that the networks have not seen."""
    pages = {name: text for name, path in PAGES.items() if "pred_probs.npy" in (text := path.read_text())}
    assert {"docs/run_directory.md", "docs/how_to/other_tools.md"} <= pages.keys()
    assert [name for name, text in pages.items() if "in-sample" not in text] == []


def test_the_page_of_settings_is_what_the_tool_makes() -> None:
    assert text_of("docs/settings.md") == page(), f"run: python tools/settings_page.py, which writes {PAGE}"


def test_the_page_of_settings_has_every_setting_and_flag() -> None:
    rows = set(re.findall(r"^\| `(?:--)?(\w+)", text_of("docs/settings.md"), re.MULTILINE))
    settings = {*JOB_FIELDS, *fields_of(MethodSettings), *(name for method in METHODS for name in own_fields(method))}
    assert settings <= rows
    flags = {action.dest for action in parsed("train")[0].used._actions} - {"help"}
    assert flags <= rows


# Methods


def test_the_page_of_methods_has_a_paragraph_for_each_and_counts_them() -> None:
    text = text_of("docs/methods.md")
    paragraphs = re.findall(r"^\*\*`(\w+)`\*\*(.*?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert sorted(name for name, _ in paragraphs) == sorted(METHODS)
    assert f"There are {len(METHODS)}: " in text
    words = ("*Cost*: ", "*Needs*: ", "*Differences*: ")
    assert [name for name, about in paragraphs if any(word not in " ".join(about.split()) for word in words)] == []


# Tools


def test_the_page_of_tools_has_a_row_for_each_and_a_section() -> None:
    text = text_of("docs/how_to/other_tools.md")
    rows = dict(re.findall(r"^\| `([\w-]+)` \|.*\| (flagged|all) \|", text, re.MULTILINE))
    assert rows == {name: "flagged" if tool.flagged_only else "all" for name, tool in TOOLS.items()}
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections == [tool.title for tool in TOOLS.values()]
    assert {f"--to {name}" for name in TOOLS} <= set(re.findall(r"--to [\w-]+", text)), "show the command"


# Commands


def parsed(*words: str) -> tuple[Any, list[str]]:
    """What the command line makes of the words, and those it does not know."""
    return _parser(words).parse_known_args(words)


def commands_of(name: str) -> list[list[str]]:
    """The words after `dividemix` of every line of a shell block, and of every piece of code in the text."""
    lines = [line for block in blocks_of(name, "sh") for line in block.splitlines() if line.startswith("dividemix ")]
    inline = [" ".join(code.split()) for code in re.findall(r"`(dividemix [^`]+)`", prose_of(name))]
    return [shlex.split(line, comments=True)[1:] for line in (*lines, *inline)]


def is_bare(words: list[str]) -> bool:
    """Whether the words only name a command."""
    return words[0] in _COMMANDS and all(re.fullmatch(r"[a-z]+", word) for word in words) and len(words) <= 2


def has_placeholder(words: list[str]) -> bool:
    """Whether a parser would need to know what a placeholder stands for: code of yours, or one of a few names."""
    names_code = any(is_foreign(word) for flag, word in pairwise(words) if flag in ("--method", "--net"))
    return names_code or words[:3] == ["data", "check", "NAME"]


COMMANDS = [(name, words) for name in PAGES for words in commands_of(name)]


@pytest.mark.parametrize(
    ("name", "words"), COMMANDS, ids=[f"{Path(name).stem}: {' '.join(words)[:60]}" for name, words in COMMANDS]
)
def test_every_command_parses(name: str, words: list[str]) -> None:
    if is_bare(words):
        return
    if has_placeholder(words):
        pytest.skip(f"placeholder: dividemix {' '.join(words)}")
    if {"--help", "--version"} & set(words):
        with pytest.raises(SystemExit):
            parsed(*words)
        return
    arguments, unknown = parsed(*words)
    assert unknown == []
    if words[0] == "train":
        check_settings(vars(arguments))


def check_settings(arguments: dict[str, Any]) -> None:
    """Let the planner check the values of the settings, without reading data; it raises if one is wrong."""
    data = arguments["data"] or DEMO["data"]
    preset = arguments["preset"] or preset_for(data, arguments["noise"] or "none")
    method = arguments["method"] or find_preset(preset).method
    fields = {name: field for one in METHODS for name, field in own_fields(one).items()}
    fields |= {**JOB_FIELDS, **fields_of(find_method(method).settings)}  # those of other methods must be refused
    flags = {name: value for name, value in arguments.items() if value is not None and name in fields}
    given = {"data": data} | {name: fields[name].from_text(value) for name, value in flags.items()}
    make_draft(given, preset=arguments["preset"], minutes=arguments["minutes"])


def test_few_commands_are_skipped() -> None:
    skipped = [" ".join(words) for _, words in COMMANDS if has_placeholder(words)]
    print("skipped:", *skipped, sep="\n  ")
    assert len(skipped) <= MOST_SKIPPED, skipped
    assert len(COMMANDS) > 40


def test_the_commands_to_try_and_to_test_stay_where_scripts_look_for_them() -> None:
    """.ci/run takes the second one from the README."""
    lines = [line for line in text_of("README.md").splitlines() if line.startswith("python3 -m venv ")]
    assert len(lines) == 2
    assert lines[0].endswith("&& .venv/bin/dividemix train")
    assert "pytest" in lines[1]
    assert "pytest" not in lines[0]


# Python


@pytest.mark.parametrize("name", [name for name in PAGES if blocks_of(name, "python")])
def test_the_python_blocks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, block in enumerate(blocks_of(name, "python"), start=1):
        if file := re.match(r"# (\w+)\.py\b", block):
            (tmp_path / f"{file[1]}.py").write_text(block, encoding="utf-8")
            monkeypatch.delitem(sys.modules, file[1], raising=False)  # another page's
        else:
            exec(compile(block, f"{name}, python block {number}", "exec"), namespace)


def test_hardly_any_python_block_is_only_to_be_read() -> None:
    """A block whose second word is a package runs in tests/relabel/test_real_tools.py, where it is installed."""
    marked = [info for name in PAGES for info, _ in FENCE.findall(text_of(name)) if info.startswith("python ")]
    packages = {f"python {name}" for name in ("fiftyone", "datasets", "cleanlab")}
    assert set(marked) <= {"python illustrative"} | packages
    assert marked.count("python illustrative") <= 3
