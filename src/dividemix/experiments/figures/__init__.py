"""The paper's figures, drawn in one style from finished runs: SVG and PNG."""

import importlib.util
import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dividemix import atomic
from dividemix.algorithm.settings import PaperSettings
from dividemix.errors import InputError
from dividemix.experiments.plans import Plan
from dividemix.experiments.setups import describe
from dividemix.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LETTERS_AN_INCH = 12  # of the title
_PACKAGES = {"matplotlib": "matplotlib", "sklearn": "scikit-learn"}
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "savefig.dpi": 200,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "dividemix",  # the same drawing is the same file
}


def require_packages(name: str) -> None:
    """Raise InputError unless the packages that the figure needs are installed."""
    needed = ("matplotlib", "sklearn") if name == "figure5" else ("matplotlib",)
    for module in needed:
        if importlib.util.find_spec(module) is None:
            raise InputError(f"{name} needs {_PACKAGES[module]}: install it with pip install 'dividemix[figures]'")


def draw(plan: Plan, folder: Path, out: Path) -> list[Path]:
    """Draw the plan's figure from its runs in the folder; returns the files written to out."""
    import matplotlib

    from dividemix.experiments.figures import auc, features, losses, noisy_images

    drawings = {"figure2": losses.draw, "figure3": auc.draw, "figure4": noisy_images.draw, "figure5": features.draw}
    with matplotlib.rc_context(_STYLE):
        figure = drawings[plan.name](plan, folder)
        last = list(plan.sources.values())[-1].runs[0].job
        about = textwrap.fill(describe(last), width=int(_LETTERS_AN_INCH * figure.get_figwidth()))
        title = f"{plan.name.replace('figure', 'Figure ')}, {plan.scale} scale\n{about}"
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
        return [_save(figure, out / f"{plan.stem}.{extension}") for extension in ("svg", "png")]


def load_run(plan: Plan, panel: str, folder: Path) -> Run:
    """The finished run that a panel shows."""
    planned = plan.sources[panel].runs[0]
    return Run.load(folder / planned.name, planned.job, to_train=False)


def paper_settings(run: Run) -> PaperSettings:
    """The settings of a run that Algorithm 1 trained."""
    assert isinstance(run.job.settings, PaperSettings)
    return run.job.settings


def _save(figure: "Figure", path: Path) -> Path:
    content = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(content, format=path.suffix[1:], metadata=metadata)
    atomic.write_bytes(path, content.getvalue())
    return path
