"""dividemix compare: runs side by side, as tables in the terminal, as a page, or as JSON."""

import argparse
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dividemix.commands.out_file import check_out
from dividemix.errors import counted
from dividemix.runs.unfinished import named_run

if TYPE_CHECKING:
    from rich.table import Table

    from dividemix.runs.comparison import ComparedRun, Comparison

HELP = "compare runs: settings that differ, results, label issues, cost"
EPILOG = """\
Runs may be unfinished; their label issues are then not compared. Samples of different runs are the same if they have
the same path or, without paths, the same index. Flags are compared where the given label is the same in both runs."""

_LEGEND = (
    "kept, final, best: test accuracy of the epoch that is the model, of the last, and of the best one. held-out:"
    " agreement with held-out labels. AUC: how well right and wrong labels are told apart (1: perfectly, 0.5: by"
    " chance). noise: the share of labels that is flagged."
)
_PAIR_LEGEND = (
    "overlap: of the labels that either flags, those that both flag. same order: of all samples, from worst to best"
    " (Spearman's correlation). same label: of the labels that both flag, those for which both suggest the same."
)


def add(compare: argparse.ArgumentParser) -> None:
    """Add the flags of compare."""
    compare.add_argument("runs", metavar="RUN", nargs="+", type=named_run, help="run directories, two or more")
    compare.add_argument("--out", metavar="FILE", type=Path, help="also write a page with curves, such as compare.html")
    compare.add_argument("--json", action="store_true", help="print all of it as JSON instead of tables")
    compare.set_defaults(command=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    out: Path | None = arguments.out
    check_out(out, ".html", ".htm")

    from dividemix.runs.comparison import compare

    comparison = compare(arguments.runs)
    if out is not None:
        from dividemix.report.comparison_page import write_comparison

        write_comparison(comparison, out)
    if arguments.json:
        import json

        print(json.dumps(comparison, indent=2, ensure_ascii=True))
        return 0

    from dividemix.display import console, say

    for run in comparison["runs"]:
        state = "" if run["finished"] else f", not finished: {counted(run['num_epochs'], 'epoch')}"
        say(f"{run['letter']}: {run['path']} ({run['method']}{state})")
    for table in _tables(comparison):
        console.print(table)
    say(_LEGEND + (f" {_PAIR_LEGEND}" if comparison["pairs"] else ""))
    if comparison["pairs"] and not any(pair["agreement"]["num_common"] for pair in comparison["pairs"]):
        say("warning: no two runs have a sample in common, so their label issues cannot be compared")
    elif counts := comparison["flagged_by"]:
        each = ", ".join(f"{number:,} by {k}" for k, number in enumerate(counts) if k)
        say(f"flagged by how many of the {len(counts) - 1} finished runs: {each}; {counts[0]:,} by none")
    if out is not None:
        say(f"{out}: open it for the curves")
    return 0


def _tables(comparison: "Comparison") -> "list[Table]":
    """The tables of a terminal: results, settings that differ, agreement."""
    runs = comparison["runs"]
    measured = [any(dict(run).get(name) is not None for run in runs) for _, name in _RESULTS]
    headings = ["", *compress((heading for heading, _ in _RESULTS), measured)]
    lines = [[run["letter"], *compress(_results(run), measured)] for run in runs]
    tables = [_table("Results: accuracies in percent", headings, lines)]
    lines = [[name, *map(_shown, values)] for name, values in comparison["settings"].items()]
    tables.append(_table("Settings that differ", ["", *(run["letter"] for run in runs)], lines))
    if comparison["pairs"]:
        lines = []
        for pair in comparison["pairs"]:
            one = pair["agreement"]
            counts = [f"{one[name]:,}" for name in ("num_same_label", "num_both", "num_first", "num_second")]
            shares = [_percent(one["overlap"]), _number(one["rank_correlation"]), _percent(one["same_suggestion"])]
            lines.append([f"{pair['first']}, {pair['second']}", *counts, *shares])
        headings = ["", "samples", "both", "first", "second", "overlap", "same order", "same label"]
        tables.append(_table("Label issues: samples flagged by both, by one alone", headings, lines))
    return tables


def _table(title: str, headings: list[str], lines: list[list[str]]) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table


_RESULTS = (
    ("kept", "kept_acc"),
    ("final", "final_acc"),
    ("best", "best_acc"),
    ("held-out", "val_acc"),
    ("AUC", "clean_auc"),
    ("noise", "noise_rate"),
    ("flagged", "num_flagged"),
    ("time", "seconds"),
)


def _results(run: "ComparedRun") -> list[str]:
    """The line of a run, without its letter."""
    from dividemix.display import clock

    values: dict[str, Any] = dict(run)
    shown = []
    for _, name in _RESULTS:
        value = values.get(name)
        if value is None:
            shown.append("-")
        elif name == "noise_rate":
            shown.append(_percent(value))
        elif name == "num_flagged":
            shown.append(f"{value:,}")
        else:
            shown.append(clock(value) if name == "seconds" else _number(value, 3 if name == "clean_auc" else 2))
    return shown


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
