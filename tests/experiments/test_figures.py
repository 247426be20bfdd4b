"""Figures drawn from tiny runs: the files that they leave, what is written on them, and features against a forward."""

import xml.etree.ElementTree
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import TinyData, TinyNet
from toy_plan import toy_run
from toys import SETTINGS, save_toy

from dividemix.algorithm.divide import Division
from dividemix.algorithm.ensemble import predict_probs
from dividemix.experiments import FIGURES
from dividemix.experiments.figures import draw, require_packages
from dividemix.experiments.plans import Plan, PlannedRun, Source, make_plan
from dividemix.planning.job import Job
from dividemix.runs.run import Run

pytest.importorskip("matplotlib")

TEXTS = {
    "figure2": ("AUC 0.", "(a) cross-entropy, epoch 2", "clean", "noisy", "mixture, small loss", "normalised loss"),
    "figure3": ("AUC of clean against noisy", "symmetric noise", "20 %", "90 %", "epoch"),
    "figure4": ("given label in red, co-guessed label in blue", "images identified as noisy", "T-shirt/top"),
    "figure5": ("(a) noisy training labels", "(b) true labels", "Sandal", "Ankle boot"),
}


RUNS = {  # many labels are dropped
    name: toy_run(name, warmup_epochs=warmup_epochs, limit_train=200, clean_threshold=0.9)
    for name, warmup_epochs in (("warmed", 2), ("trained", 1))
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, and one that is only warmed up."""
    folder = tmp_path_factory.mktemp("runs")
    for name, run in RUNS.items():
        Run.create(folder / name, run.job).train()
    return folder


def toy_figure(name: str) -> Plan:
    """The figure's plan, with one of the two runs in the place of each of its own."""
    sources = {
        panel: Source((RUNS["warmed" if "penalty" in str(panel) else "trained"],))
        for panel in make_plan(name, "mini").sources
    }
    return Plan(name, "mini", sources)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dividemix.errors.DegenerateDivisionWarning")
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_written_as_svg_and_png_and_says_what_it_shows(name: str, folder: Path, tmp_path: Path) -> None:
    written = draw(toy_figure(name), folder, tmp_path)
    assert [path.name for path in written] == [f"{name}-mini-fashion.svg", f"{name}-mini-fashion.png"]
    assert sorted(tmp_path.iterdir()) == sorted(written)
    assert written[1].read_bytes().startswith(b"\x89PNG")
    root = xml.etree.ElementTree.parse(written[0]).getroot()
    said = " ".join("".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text"))
    for text in (
        f"{name.replace('figure', 'Figure ')}, mini scale",
        "200 images of the embedded Fashion-MNIST set",
        *TEXTS[name],
    ):
        assert text in said, text
    before = written[0].read_bytes()
    draw(toy_figure(name), folder, tmp_path)
    assert written[0].read_bytes() == before


@pytest.mark.parametrize("noise", ["none", "symmetric:0.5"])
def test_only_guesses_that_are_shown_or_scored_are_made(
    noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 40 samples 30 are divided and 28 dropped; 24 have room, and the scores are counted by hand."""
    from dividemix.experiments.figures import noisy_images

    job = Job.of(SETTINGS | {"data": str(save_toy(tmp_path)), "noise": noise})
    run = Run.create(tmp_path / "run", job)
    clean_prob = torch.zeros(40)
    clean_prob[:10], clean_prob[10:12] = torch.nan, 1.0
    division = Division(torch.arange(10, 12), torch.arange(12, 40), clean_prob)
    monkeypatch.setattr(noisy_images, "co_divide", lambda *_: (None, [division, division]))
    sizes = []

    def counting(nets: Any, data: Any) -> torch.Tensor:
        sizes.append(len(data.labels))
        return predict_probs(nets, data)

    monkeypatch.setattr(noisy_images, "predict_probs", counting)
    figure = noisy_images.draw(Plan("figure4", "mini", {"images": Source((PlannedRun("run", job),))}), tmp_path)
    caption = figure.get_supxlabel()
    assert "; 28 of 30 images identified as noisy" in caption
    guesses = predict_probs(run.state.nets, run.material.train).mean(dim=0).argmax(dim=1).tolist()
    shown = Counter((axes.get_title(), axes.texts[0].get_text()) for axes in figure.axes)
    possible = Counter((str(run.material.labels[i]), str(guesses[i])) for i in range(12, 40))
    assert shown.total() == 24
    assert shown <= possible
    if noise == "none":
        assert sizes == [24]
        assert caption.endswith("noisy")
    else:
        true = np.arange(40) % 4
        wrong = sum(run.material.labels[i] != true[i] for i in range(12, 40)) / 28
        right = sum(guesses[i] == true[i] for i in range(12, 40)) / 28
        assert sizes == [28]
        assert caption.endswith(f": {wrong:.1%} of them are, and {right:.1%} of the guesses are right")


def test_features_are_what_the_last_layer_is_given() -> None:
    from dividemix.experiments.figures.features import penultimate

    net, data = TinyNet(seed=1).eval(), TinyData()
    index = torch.tensor([3, 1, 20])
    features = torch.from_numpy(penultimate(net, data, index))
    with torch.no_grad():
        expected = net(data.images[index])
        assert torch.allclose(net.head(features.double()), expected, atol=1e-5)
    assert features.shape == (3, 8)


def test_only_the_figure_of_features_needs_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    from dividemix.errors import InputError

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "sklearn" else object())
    require_packages("figure2")
    with pytest.raises(InputError, match=r"^figure5 needs scikit-learn"):
        require_packages("figure5")
