"""The fixed point to compare with: DivideMix written plainly, working the way the authors' released code works.

That is: data sets made anew from files every epoch, a torch loader whose workers transform one PIL image at a time,
a forward for every view, eager, in the default memory format, a Python loop that copies one loss at a time, and
scikit-learn's mixture. It computes what the package computes; only how differs.

Shapes: N samples, B in a batch, C classes, two views of each sample.
"""

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageOps
from sklearn.mixture import GaussianMixture
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset

from benchmarks.subject import MEAN, STD, Images, Labels
from dividemix.algorithm.divide import Division
from dividemix.methods.dividemix import DivideMixSettings

NUM_WORKERS = 5
warnings.filterwarnings("ignore", message="This DataLoader will create 5 worker processes")  # on fewer cores: meant
Item = tuple[list[Tensor], int, float, int]  # views, label, clean probability, position


def write_files(folder: Path, split: str, images: Images, labels: Labels) -> None:
    """Put a split where `FileImages` reads it."""
    np.save(folder / f"{split}.npy", images)
    (folder / f"{split}.json").write_text(json.dumps(labels.tolist()))


class FileImages(Dataset[Item]):
    """A split, or the samples `index` of it, read from its files; each image augmented into two views, or as it is."""

    def __init__(
        self, folder: Path, split: str, *, augment: bool, index: Sequence[int] | None = None, clean_prob: Any = None
    ):
        images = np.load(folder / f"{split}.npy")
        labels = json.loads((folder / f"{split}.json").read_text())
        kept = range(len(labels)) if index is None else index
        self.images = images[kept]
        self.labels = [labels[i] for i in kept]
        self.clean_prob = [1.0 if clean_prob is None else float(clean_prob[i]) for i in kept]
        self.augment = augment

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: int) -> Item:
        image = Image.fromarray(self.images[position])
        views = [_to_view(image) for _ in range(2)] if self.augment else [_to_input(image)]
        return views, self.labels[position], self.clean_prob[position], position


# The four transforms of the released code, each doing what torchvision's of that name does: a number drawn at a time, a
# copy at every stage, the statistics made and checked anew for every image. Theirs take a third longer (LOG.md).


def _to_view(image: Image.Image) -> Tensor:
    return _normalise(_to_tensor(_random_flip(_random_crop(image))))


def _to_input(image: Image.Image) -> Tensor:
    return _normalise(_to_tensor(image))


def _random_crop(image: Image.Image, padding: int = 4) -> Image.Image:
    width, height = image.size
    padded = ImageOps.expand(image, border=padding, fill=0)
    top = int(torch.randint(0, 2 * padding + 1, size=(1,)).item())
    left = int(torch.randint(0, 2 * padding + 1, size=(1,)).item())
    return padded.crop((left, top, left + width, top + height))


def _random_flip(image: Image.Image) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if torch.rand(1) < 0.5 else image


def _to_tensor(image: Image.Image) -> Tensor:
    """Numbers from 0 to 1 (3, H, W)."""
    pixels = torch.from_numpy(np.array(image, dtype=np.uint8, copy=True))
    return pixels.permute(2, 0, 1).contiguous().to(dtype=torch.get_default_dtype()).div(255)


def _normalise(tensor: Tensor) -> Tensor:
    tensor = tensor.clone()
    mean = torch.as_tensor(MEAN, dtype=tensor.dtype, device=tensor.device)
    std = torch.as_tensor(STD, dtype=tensor.dtype, device=tensor.device)
    if (std == 0).any():
        raise ValueError("a standard deviation is 0")
    return tensor.sub_(mean.view(-1, 1, 1)).div_(std.view(-1, 1, 1))


def train_step(
    net: nn.Module,
    peer: nn.Module,
    optimizer: SGD,
    x_views: list[Tensor],
    labels: Tensor,
    clean_prob: Tensor,
    u_views: list[Tensor],
    *,
    lambda_u: float,
    config: DivideMixSettings,
) -> tuple[float, float]:
    """One step of `net` on a labeled and an unlabeled batch; returns both losses."""
    with torch.no_grad():
        guesses = [torch.softmax(guesser(view), dim=1) for guesser in (net, peer) for view in u_views]
        u_targets = _sharpen(torch.stack(guesses).mean(dim=0), config.temperature)
        own = torch.stack([torch.softmax(net(view), dim=1) for view in x_views]).mean(dim=0)
        one_hot = torch.zeros_like(own).scatter_(1, labels.view(-1, 1), 1)
        w = clean_prob.view(-1, 1).float()
        x_targets = _sharpen(w * one_hot + (1 - w) * own, config.temperature)

    inputs = torch.cat(x_views + u_views)
    targets = torch.cat([x_targets] * len(x_views) + [u_targets] * len(u_views))
    lam = np.random.beta(config.alpha, config.alpha)
    lam = max(lam, 1 - lam)
    partner = torch.randperm(len(inputs))
    mixed_inputs = lam * inputs + (1 - lam) * inputs[partner]
    mixed_targets = lam * targets + (1 - lam) * targets[partner]

    logits = net(mixed_inputs)
    num_x = len(x_views) * len(labels)
    l_x = -(F.log_softmax(logits[:num_x], dim=1) * mixed_targets[:num_x]).sum(dim=1).mean()
    l_u = ((torch.softmax(logits[num_x:], dim=1) - mixed_targets[num_x:]) ** 2).mean()
    prior = torch.full((logits.shape[1],), 1 / logits.shape[1])
    l_reg = (prior * torch.log(prior / torch.softmax(logits, dim=1).mean(dim=0))).sum()

    optimizer.zero_grad()
    (l_x + lambda_u * l_u + config.lambda_r * l_reg).backward()
    optimizer.step()
    return l_x.item(), l_u.item()


def _sharpen(probs: Tensor, temperature: float) -> Tensor:
    powers = probs ** (1 / temperature)
    return powers / powers.sum(dim=1, keepdim=True)


@dataclass
class Plain:
    """A training: two nets, their optimisers, and the folder that holds the splits train and test."""

    nets: list[nn.Module]
    optimizers: list[SGD]
    folder: Path
    config: DivideMixSettings

    @classmethod
    def start(cls, nets: list[nn.Module], folder: Path, config: DivideMixSettings) -> "Plain":
        """Before the first step."""
        optimizers = [
            SGD(net.parameters(), lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)
            for net in nets
        ]
        return cls(nets, optimizers, folder, config)

    def epoch(self, divisions: Sequence[Division], epoch: int) -> float:
        """A whole epoch; returns the test accuracy.

        It divides the data itself, at its full cost, and then trains on the divisions given, so that it makes as many
        steps as whom it is compared with.
        """
        test_loader = self._loader("test", augment=False)
        self.co_divide()
        for k in range(2):
            self._train(k, divisions[k], epoch)
        return self._test(test_loader)

    def co_divide(self) -> list[NDArray[np.float64]]:
        """Every sample's clean probability (N,) by each net's losses."""
        loader = self._loader("train", augment=False)
        return [self._clean_probability(net, loader) for net in self.nets]

    def _clean_probability(self, net: nn.Module, loader: DataLoader[Item]) -> NDArray[np.float64]:
        net.eval()
        losses = torch.zeros(len(loader.dataset))  # type: ignore[arg-type]
        with torch.no_grad():
            for (images,), labels, _, position in loader:
                batch_losses = F.cross_entropy(net(images), labels, reduction="none")
                for b in range(len(images)):
                    losses[position[b]] = batch_losses[b]
        losses = (losses - losses.min()) / (losses.max() - losses.min())
        return mixture_posterior(losses.numpy().reshape(-1, 1))

    def _train(self, k: int, division: Division, epoch: int) -> None:
        net, peer = self.nets[k].train(), self.nets[1 - k].eval()
        labeled, unlabeled = division.labeled.tolist(), division.unlabeled.tolist()
        x_loader = self._loader("train", augment=True, index=labeled, clean_prob=division.clean_prob)
        u_loader = self._loader("train", augment=True, index=unlabeled)
        num_iters = math.ceil(len(labeled) / self.config.batch_size)
        u_batches = _endless(u_loader)
        for step, (x_views, labels, clean_prob, _) in enumerate(x_loader):
            u_views, *_ = next(u_batches)
            progress = (epoch + step / num_iters - self.config.warmup_epochs) / self.config.rampup_epochs
            lambda_u = self.config.lambda_u * float(np.clip(progress, 0, 1))
            train_step(
                net,
                peer,
                self.optimizers[k],
                x_views,
                labels,
                clean_prob,
                u_views,
                lambda_u=lambda_u,
                config=self.config,
            )

    @torch.no_grad()
    def _test(self, loader: DataLoader[Item]) -> float:
        num_right = 0
        for net in self.nets:
            net.eval()
        for (images,), labels, _, _ in loader:
            summed = self.nets[0](images) + self.nets[1](images)
            num_right += int((summed.argmax(dim=1) == labels).sum().item())
        return 100 * num_right / len(loader.dataset)  # type: ignore[arg-type]

    def _loader(self, split: str, **choice: Any) -> DataLoader[Item]:
        """A new data set in a new loader; only what is trained on is augmented and shuffled."""
        return DataLoader(
            FileImages(self.folder, split, **choice),
            batch_size=self.config.batch_size,
            shuffle=choice["augment"],
            num_workers=NUM_WORKERS,
        )


def mixture_posterior(values: NDArray[Any]) -> NDArray[np.float64]:
    """Probability (N,) that each of the values (N, 1) is of the component with the smaller mean."""
    model = GaussianMixture(n_components=2, max_iter=10, tol=1e-2, reg_covar=5e-4)
    model.fit(values)
    posterior: NDArray[np.float64] = model.predict_proba(values)[:, model.means_.argmin()]
    return posterior


def _endless(loader: DataLoader[Item]) -> Iterator[Any]:
    """The loader's batches, starting over when they run out."""
    while True:
        yield from loader
