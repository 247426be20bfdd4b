"""Read label_issues.csv of a run back: the method's opinion of every given label, worst first. No torch import."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dividemix.data.spreadsheet import from_field
from dividemix.data.text_table import read_text_table
from dividemix.errors import InputError
from dividemix.judging.results_digest import check_results
from dividemix.meant import or_meant_path

_COLUMNS = (
    *("index", "path", "is_label_issue", "label_score", "given_label"),
    *("predicted_label", "predicted_prob"),
)
_BY_NET = ("clean_prob_", "loss_")  # columns with one number for each network
_FLAGS = {"True": True, "False": False}


@dataclass(frozen=True, kw_only=True, slots=True)
class Issue:
    """A line: a sample, its given label, and what the networks think of it."""

    index: int  # the sample's position in the data as given
    path: str
    is_label_issue: bool
    label_score: float
    given_label: str
    predicted_label: str
    predicted_prob: float
    clean_prob: tuple[float, ...]  # by each network
    losses: tuple[float, ...]  # by each network


def read_issue_table(run: Path) -> list[Issue]:
    """The lines of label_issues.csv in a run directory, in their order; other columns are ignored.

    Raises:
        InputError: if the run has no such file, or it is damaged.
    """
    file = run / "label_issues.csv"
    if not file.is_file():
        if (run / "config.yaml").is_file():
            raise InputError(f"{run}: the run is not finished: train it to its end first")
        wanted = "give the directory that dividemix train wrote"
        raise InputError(f"{run}: not a run directory: {or_meant_path(run, wanted)}")
    check_results(run)
    table = read_text_table(file, set(_COLUMNS))
    remedy = "it is not the file that dividemix train wrote"
    places = {name: table.column(name, remedy) for name in _COLUMNS}
    by_net = [[place for place, name in enumerate(table.columns) if name.startswith(kind)] for kind in _BY_NET]
    issues: dict[int, Issue] = {}
    for record in table.rows():
        where = f"{file}: line {record.line}"
        if len(record.fields) != len(table.columns):
            raise InputError(f"{where}: damaged ({len(record.fields)} fields, the header has {len(table.columns)})")
        values = {name: from_field(record.value(place)) for name, place in places.items()}
        try:
            numbers = [tuple(_number(record.value(place)) for place in columns) for columns in by_net]
            issue = _issue(values, *numbers)
        except (ValueError, KeyError) as error:
            raise InputError(f"{where}: damaged ({error})") from error
        if issue.index in issues:
            raise InputError(f"{where}: damaged (sample {issue.index} occurs twice)")
        issues[issue.index] = issue
    return list(issues.values())


def _issue(values: Mapping[str, str], clean_prob: tuple[float, ...], losses: tuple[float, ...]) -> Issue:
    """A line from its fields. Raises ValueError or KeyError if one has another form."""
    index = values["index"]
    if not (index.isascii() and index.isdigit() and len(index) < 19):
        raise ValueError(f"index is {index[:50]!r}")
    score, prob = _number(values["label_score"]), _number(values["predicted_prob"])
    if not (0 <= score <= 1 and 0 <= prob <= 1):
        raise ValueError("a probability is not in [0, 1]")
    return Issue(
        index=int(index),
        path=values["path"],
        is_label_issue=_FLAGS[values["is_label_issue"]],
        label_score=score,
        given_label=values["given_label"],
        predicted_label=values["predicted_label"],
        predicted_prob=prob,
        clean_prob=clean_prob,
        losses=losses,
    )


def _number(text: str) -> float:
    return float(text[:50])
