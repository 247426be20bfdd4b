"""Figure 2: the losses of clean and noisy samples after warm-up without and with the confidence penalty, and later."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dividemix.algorithm.divide import normalise
from dividemix.algorithm.dividemix import co_divide
from dividemix.algorithm.mixture import Gaussians, fit_gaussians
from dividemix.experiments.figures import load_run, paper_settings
from dividemix.experiments.plans import Plan
from dividemix.judging.scoring import clean_auc

_NUM_BINS = 60
_PANELS = {
    "without penalty": "(a) cross-entropy",
    "with penalty": "(b) with confidence penalty",
    "ten epochs on": "(c) with DivideMix",
}


def draw(plan: Plan, folder: Path) -> Figure:
    """A panel for each run: the normalised losses of theta(1), the mixture fitted to them, and its AUC."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for axes, (panel, title) in zip(figure.subplots(1, 3), _PANELS.items(), strict=True):
        run = load_run(plan, panel, folder)
        assert run.material.true_labels is not None  # the noise was added by us
        true_labels = run.material.true_labels[run.material.train_index]
        losses = normalise(co_divide(run.state, run.material.train, paper_settings(run))[0][0])
        is_clean = run.material.train.labels.cpu().numpy() == true_labels
        mixture = fit_gaussians(losses)
        auc = clean_auc(mixture.low_prob(losses).numpy(), is_clean)
        _draw_panel(axes, losses.numpy(), is_clean, mixture)
        axes.set_title(f"{title}, epoch {run.state.epoch}\nAUC {'-' if auc is None else f'{auc:.3f}'}")
    axes.legend(loc="upper right")
    return figure


def _draw_panel(axes: Axes, losses: NDArray[np.float64], is_clean: NDArray[np.bool_], mixture: Gaussians) -> None:
    """Histograms of clean and noisy samples, and the two components, all as parts of one density."""
    edges = np.linspace(0, 1, _NUM_BINS + 1)
    weight = _NUM_BINS / len(losses)
    for mask, label, colour in ((is_clean, "clean", "tab:blue"), (~is_clean, "noisy", "tab:orange")):
        values = losses[mask]
        axes.hist(
            values, bins=edges.tolist(), weights=np.full(len(values), weight), color=colour, alpha=0.5, label=label
        )
    grid = torch.linspace(0, 1, 400)
    for density, component, style in zip(mixture.densities(grid), ("small", "large"), ("-", "--"), strict=True):
        axes.plot(grid, density, color="black", linestyle=style, linewidth=1, label=f"mixture, {component} loss")
    axes.set(xlabel="normalised loss", ylabel="density", xlim=(0, 1))
