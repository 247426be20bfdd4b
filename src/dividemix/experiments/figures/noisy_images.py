"""Figure 4: images that the networks identify as noisy, with the given label in red and the co-guessed one in blue."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dividemix.algorithm.dividemix import co_divide
from dividemix.algorithm.ensemble import predict_probs
from dividemix.experiments.figures import load_run, paper_settings
from dividemix.experiments.plans import Plan
from dividemix.runs.run import Run

_NUM_ROWS, _NUM_COLUMNS = 3, 8


def draw(plan: Plan, folder: Path) -> Figure:
    """Random training images whose label no division keeps."""
    run = load_run(plan, "images", folder)
    data, classes, s = run.material.train, run.material.classes, paper_settings(run)
    _, divisions = co_divide(run.state, data, s)
    dropped = torch.stack([division.clean_prob < s.clean_threshold for division in divisions]).all(dim=0)
    index = dropped.nonzero().squeeze(1)
    index = index[torch.randperm(len(index), generator=torch.Generator().manual_seed(0))]
    shown = index[: _NUM_ROWS * _NUM_COLUMNS]
    # The caption scores the guesses on all of them if the true labels are known.
    guessed = _guess(run, shown if run.material.true_labels is None else index)
    figure = Figure(figsize=(10, 5), layout="constrained")
    panels = figure.subplots(_NUM_ROWS, _NUM_COLUMNS).ravel()
    for axes in panels:
        axes.set_axis_off()
    images = next(iter(data.plain([shown]))) if len(shown) else ()
    for axes, sample, image, guess in zip(panels, shown, images, guessed, strict=False):
        axes.imshow(_visible(image), cmap="gray")
        axes.set_title(classes[int(data.labels[sample])], color="tab:red", fontsize=8, pad=2)
        axes.text(0.5, -0.03, classes[int(guess)], color="tab:blue", fontsize=8, ha="center", va="top",
                  transform=axes.transAxes)  # fmt: skip
    figure.supxlabel(_caption(run, index, guessed, int(divisions[0].divided.sum())), fontsize=9)
    return figure


def _guess(run: Run, index: torch.Tensor) -> torch.Tensor:
    """The label (n,) that the nets together predict for the training images at index (n,)."""
    if len(index) == 0:
        return index
    return predict_probs(run.state.nets, run.material.train.subset(index.numpy())).mean(dim=0).argmax(dim=1).cpu()


def _visible(image: torch.Tensor) -> NDArray[np.float32]:
    """An image (channels, H, W) as the nets see it, stretched to [0, 1] for display: (H, W) or (H, W, 3)."""
    pixels = image.float().cpu().permute(1, 2, 0).numpy()
    span = pixels.max() - pixels.min()
    stretched: NDArray[np.float32] = (pixels - pixels.min()) / (span or 1)
    return stretched.squeeze(-1) if stretched.shape[-1] == 1 else stretched


def _caption(run: Run, index: torch.Tensor, guessed: torch.Tensor, num_divided: int) -> str:
    """How many images are identified as noisy and, if true labels are known, how many of them correctly."""
    labels, true_labels = run.material.train.labels.cpu(), run.material.true_labels
    words = f"given label in red, co-guessed label in blue; {len(index)} of {num_divided} images identified as noisy"
    if true_labels is None or len(index) == 0:
        return words
    true = torch.from_numpy(true_labels[run.material.train_index])[index]
    wrong, right = (labels[index] != true).double().mean(), (guessed == true).double().mean()
    return f"{words}: {wrong:.1%} of them are, and {right:.1%} of the guesses are right"
