"""Figure 5: t-SNE of the training images' features, coloured by their noisy labels and by their true ones."""

from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn

from dividemix.data.training_data import TrainingData
from dividemix.experiments.figures import load_run
from dividemix.experiments.plans import Plan

_NUM_SAMPLES = 3000  # at most: more take minutes, and their dots overlap


def draw(plan: Plan, folder: Path) -> Figure:
    """Two panels with the same points."""
    from sklearn.manifold import TSNE

    run = load_run(plan, "features", folder)
    data, classes = run.material.train, run.material.classes
    assert run.material.true_labels is not None  # the noise was added by us
    true_labels = run.material.true_labels[run.material.train_index]
    order = torch.randperm(len(data.labels), generator=torch.Generator().manual_seed(0))
    index = order[:_NUM_SAMPLES]
    features = penultimate(run.state.nets[0], data, index)
    perplexity = min(30.0, (len(index) - 1) / 3)
    points = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(features)
    figure = Figure(figsize=(10, 5), layout="constrained")
    panels = figure.subplots(1, 2)
    noisy = data.labels.cpu().numpy()
    for axes, labels, title in zip(
        panels, (noisy, true_labels), ("(a) noisy training labels", "(b) true labels"), strict=True
    ):
        dots = axes.scatter(*points.T, c=labels[index.numpy()], cmap="tab10", s=4, linewidths=0, rasterized=True)
        axes.set_axis_off()  # distances on a t-SNE have no unit
        axes.set_title(title)
    handles, _ = dots.legend_elements(num=None)
    figure.legend(handles, classes, loc="outside lower center", ncols=5, fontsize=8)
    return figure


@torch.inference_mode()
def penultimate(net: nn.Module, data: TrainingData, index: Tensor) -> NDArray[np.float32]:
    """The input of the net's last linear layer, (len(index), D), for the samples without augmentation."""
    last = [module for module in net.modules() if isinstance(module, nn.Linear)][-1]
    seen: list[Tensor] = []
    hook = last.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].float().cpu()))
    try:
        net.eval()
        for images in data.plain(index.split(data.at_once)):
            net(images)
    finally:
        hook.remove()
    features: NDArray[np.float32] = torch.cat(seen).numpy()
    return features
