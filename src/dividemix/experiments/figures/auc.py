"""Figure 3: how well one mixture separates clean samples from noisy ones in each epoch, for each noise rate."""

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from dividemix.experiments.finished import read_epochs
from dividemix.experiments.plans import Plan

_NUM_EPOCHS = 100  # the first ones, as the paper shows


def draw(plan: Plan, folder: Path) -> Figure:
    """The AUC of the division that theta(1) is trained on, one curve for each noise rate."""
    figure = Figure(figsize=(5.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for column, source in plan.sources.items():
        rows = read_epochs(source.runs[0], folder)[:_NUM_EPOCHS]
        points = [(row["epoch"], aucs[0]) for row in rows if (aucs := row.get("clean_auc"))]
        label = str(column).removeprefix("CIFAR-10 sym. ")
        axes.plot(*zip(*points, strict=True), label=label, marker="." if len(points) < 30 else None)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="epoch", ylabel="AUC of clean against noisy")
    axes.legend(title="symmetric noise", loc="lower right")
    axes.grid(alpha=0.3)
    return figure
