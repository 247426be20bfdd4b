"""The preset `default`: settings that fit unknown data, each with its reason."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dividemix.data.common_shape import LARGE
from dividemix.data.source import Source
from dividemix.engine import processes
from dividemix.engine.device import choose_device
from dividemix.engine.processor import computes_in_bfloat16
from dividemix.errors import InputError
from dividemix.methods import find_method
from dividemix.methods.method import MethodSettings
from dividemix.planning.budget import MAX_EPOCHS, Budget
from dividemix.planning.choices import Choice, as_settings
from dividemix.planning.default_method import method_for_vectors
from dividemix.planning.held_out import held_out
from dividemix.planning.job import Job, known_to, refuse_unknown_settings
from dividemix.planning.lengths import lengths_for
from dividemix.planning.material import read
from dividemix.planning.pace import measure
from dividemix.planning.presets import DEFAULT, find_preset

_LARGE = 96  # an image whose shorter side has more pixels is a photograph, not a thumbnail
_CPU_SIZE = 64  # pixels of large images on a CPU
_IMBALANCED = 3  # the largest class may have this many times the samples of the smallest
_MANY = 8_000  # samples from which batches are as large as the paper's, and time matters
_MANY_PIXELS = 5_000_000  # of all images, from which a shorter floating-point type saves minutes
_MIN_PER_CLASS = 30  # samples that the class of median size needs before some are held out
_MANY_TESTS = 0.35  # as a share of the training samples: from there on tests take a tenth of the time or more
_FEW_FEATURES = 128
_NO_HOLDOUT = "every label is judged by a model that was not trained on it"
_RATES = {
    "small_vgg": (0.1, "a small network with BatchNorm and few epochs"),
    "small_cnn": (0.04, "a small network and few epochs: twice the paper's rate"),
}
_KEPT = "the last epoch is kept"
_MIN_EPOCHS = 5
_MEASURED = 0.05  # share of the budget that may be spent on measuring the pace


def choose(
    job: Job, given: Mapping[str, Any], *, budget: Budget | None = None, source: Source | None = None
) -> tuple[Source, list[Choice]]:
    """The job's data, read unless it is `source`, and settings that fit it, apart from those `given`.

    With a `budget`, the number of epochs fits what is left of it. Raises InputError if the data is wrong, or the time
    is too short.
    """
    device = choose_device(job.settings.device)
    on_cpu = device.type == "cpu"
    given = {name: value for name, value in given.items() if value is not None}
    can_resize = source is None and job.image_size is None
    starts_trained = job.weights is not None or job.pretrained
    source = source or read(job, large_size=_CPU_SIZE if on_cpu and not starts_trained else LARGE)
    if source.kind == "vectors" and job.method == find_preset(DEFAULT).method_for_rows:
        return source, _unlimited(_for_trees(), job.method, given, budget)
    if job.finetune:
        _refuse_to_finetune(job, given)
        return source, [choice for choice in _for_finetuning(job) if choice.name not in given]
    if source.kind == "vectors" and (method := method_for_vectors(given)):
        choices = [*for_vectors(method, source.train_samples.shape[1]), Choice("holdout", 0.0, _NO_HOLDOUT)]
        return source, _unlimited(choices, method, given, budget)
    if source.kind == "vectors":
        choices = [*net_for(source.train_samples.shape[1:]), *_by_samples(source, given)]
        if "method" not in given and job.method != (usual := find_preset(DEFAULT).method):
            _refuse_unknown_to_all(given, (find_preset(DEFAULT).method_for_vectors, usual))
            choices.insert(0, Choice("method", usual, "vectors, and settings of a network"))
            job = Job.of(known_to(usual, job.values()) | {"method": usual})
    else:
        if "method" not in given and find_method(job.method).needs_vectors:  # only it has the settings
            refuse_unknown_settings(given, find_preset(DEFAULT).method_for_images or job.method)
        source, choices = _for_images(job, source, given, on_cpu=on_cpu, can_resize=can_resize)
    choices = [choice for choice in choices if choice.name not in given]
    if "epochs" not in given:
        if budget is None:
            choices.append(_epochs(len(source.train_labels), source.kind, on_cpu))
        else:
            fitted = Job.of(job.values() | known_to(job.method, as_settings(choices)))
            choices.append(_epochs_in(budget, fitted, source, given.get("warmup_epochs"), on_cpu))
    epochs = next((choice.value for choice in choices if choice.name == "epochs"), job.settings.epochs)
    lengths = lengths_for(epochs, on_cpu, given.get("warmup_epochs"))
    return source, choices + [choice for choice in lengths if choice.name not in given]


def _refuse_unknown_to_all(given: Mapping[str, Any], methods: tuple[str | None, str]) -> None:
    """Raise InputError unless the last method has all given settings; in the name of the first that lacks one."""
    if known_to(methods[-1], given).keys() != given.keys():
        for method in methods:
            if method is not None:
                refuse_unknown_settings(given, method)


def _for_images(
    job: Job, source: Source, given: Mapping[str, Any], *, on_cpu: bool, can_resize: bool
) -> tuple[Source, list[Choice]]:
    """The images, read again if another size suits the machine, and settings that fit them."""
    is_large = min(source.median_size or source.train_samples.shape[1:3]) > _LARGE
    choices = []
    starts_trained = job.weights is not None or job.pretrained
    if starts_trained and _can_train_head_only(job, source):
        choices += [Choice("head_epochs", 1, "pretrained weights: the new last layer is trained alone first")]
    if is_large and (starts_trained or not on_cpu):
        choices += [
            Choice("net", "resnet50", "large images" + (", and weights to start from" if starts_trained else ""))
        ]
    elif on_cpu:
        if is_large and can_resize:
            if source.train_samples.shape[1] != _CPU_SIZE:  # a built-in set with its own size
                source = read(replace(job, image_size=_CPU_SIZE))
            choices += [Choice("image_size", _CPU_SIZE, "a CPU; with weights, or on a GPU: 224 pixels and ResNet-50")]
        width = (16, "grey images") if source.train_samples.shape[3] == 1 else (32, "colour images")
        net = Choice("net", "small_vgg", "one network: trains in minutes on a CPU")
        if find_method(job.method).num_nets(job.settings) > 1:
            net = Choice("net", "small_cnn", "two networks: train in minutes on a CPU")
        choices += [net, Choice("net_width", *width)]
        if (name := given.get("net", net.value)) in _RATES:
            choices += [Choice("lr", *_RATES[name])]
        num_pixels = math.prod(source.train_samples.shape[:3])
        if num_pixels > _MANY_PIXELS and computes_in_bfloat16() and not job.settings.reproducible:
            reason = f"{num_pixels / 1e6:.0f} million pixels: this CPU computes in it about twice as fast as in float32"
            choices += [Choice("precision", "bfloat16", reason)]
    else:
        choices += [Choice("net", "preact_resnet18", "small images")]
    side = job.settings.crop_size or min(source.train_samples.shape[1:3])
    views = [
        Choice("crop_padding", max(1, round(side / 12)), f"a twelfth of the images' {side} pixels"),
        Choice("crop_border", "reflected", "more like an image than black edges"),
        Choice("cutout", side // 4, f"a quarter of the images' {side} pixels is hidden, so the network memorises less"),
    ]
    return source, [*choices, *views, *_by_samples(source, given)]


def _can_train_head_only(job: Job, source: Source) -> bool:
    """Whether head_epochs can be used."""
    is_alone = processes.num_joined() == 1
    return is_alone and not find_method(job.method).double_backward and _has_linear_head(job.settings, source)


def _has_linear_head(s: MethodSettings, source: Source) -> bool:
    """Whether the net has a last linear layer that can be trained alone."""
    from dividemix.nets.build import NETS, build_net
    from dividemix.nets.weights import has_trainable_head
    from dividemix.planning.prepare import net_shape

    if s.net in NETS:
        return True
    shape = net_shape(source.train_samples.shape[1:], s)
    return has_trainable_head(build_net(s, num_classes=len(source.classes), image_shape=shape, seed=s.seed))


def for_vectors(method: str, num_features: int) -> list[Choice]:
    """The method for vectors of that many numbers, a net for it, and its epochs."""
    net = Choice("net", "linear", "many features: a linear layer is enough")
    if num_features <= _FEW_FEATURES:
        net = Choice("net", "fourier", f"at most {_FEW_FEATURES} features: a linear layer needs random waves of them")
    width = Choice("net_width", 512, "random waves")
    epochs = Choice("epochs", 16, "ten strengths of regularisation, six corrections of the noise matrix")
    return [Choice("method", method, "vectors"), net, *([width] if net.value == "fourier" else []), epochs]


def _for_trees() -> list[Choice]:
    """What trees need: their net, folds, and no sample held out."""
    epochs = Choice(
        "epochs", 5, "five rounds; in each, trees are trained on four fifths of the rows and judge the rest"
    )
    return [Choice("net", "trees", "trees are trained"), epochs, Choice("holdout", 0.0, _NO_HOLDOUT)]


def _refuse_to_finetune(job: Job, given: Mapping[str, Any]) -> None:
    """Raise InputError if another method or net than that of the texts is asked for."""
    method, net = find_preset(DEFAULT).method_for_texts, _for_finetuning(job)[0].value
    if job.method != method:
        raise InputError(
            f"finetune is true: texts are fine-tuned by method {method}, not {job.method}; leave method out"
        )
    if given.get("net", net) != net:
        raise InputError(f"finetune is true: the net is {net}, not {given['net']}; leave net out")


def _for_finetuning(job: Job) -> list[Choice]:
    """What a transformer of texts needs."""
    net = Choice("net", f"transformers:{(job.encoder or '').partition(':')[2]}", "the encoder itself is trained")
    epochs = Choice("epochs", 6, "a pretrained net learns in few; the first two are ordinary fine-tuning")
    steps = Choice("batch_size", 16, "32 texts a step"), Choice("lr", 5e-5, "a small transformer, trained by Adam")
    return [net, epochs, *steps, Choice("compile", "never", "texts differ in length"), Choice("holdout", 0.0, _KEPT)]


def net_for(shape: tuple[int, ...]) -> list[Choice]:
    """A small net for vectors of (D,), or for small images of (H, W, channels), given as arrays."""
    if len(shape) == 1:
        return [Choice("net", "mlp", "vectors"), Choice("net_width", 64, "vectors")]
    return [Choice("net", "small_cnn", "images"), Choice("net_width", 16, "images")]


def _by_samples(source: Source, given: Mapping[str, Any]) -> list[Choice]:
    """Settings that follow from the number of samples and the sizes of the classes."""
    num_samples = len(source.train_labels)
    counts = np.bincount(source.train_labels, minlength=len(source.classes))
    choices = [Choice("batch_size", 64, f"your data has {_MANY:,} {source.kind} or more")]  # as in the paper
    if num_samples < _MANY:  # enough steps in an epoch
        batch_size = max(4, min(32, 1 << int(math.log2(max(num_samples, 2) / 8 + 1))))
        reason = f"your data is small ({num_samples:,} {source.kind}; 64 from {_MANY:,} on)"
        choices[0] = Choice("batch_size", batch_size, reason)
    if counts.max() > _IMBALANCED * max(counts.min(), 1):
        reason = "your classes differ in size, so the network is not pushed to predict all of them equally often"
        choices.append(Choice("lambda_r", 0.0, f"{reason}: {counts.min():,} to {counts.max():,} samples"))
    number = round(0.1 * num_samples)
    share, reason = 0.1, f"about {number:,} {source.kind} are not trained on; they decide which epoch is kept"
    if source.val_samples is not None:
        share, reason = 0.0, "the data has its own validation images"
    elif np.median(counts[counts > 0]) < _MIN_PER_CLASS:
        share, reason = 0.0, f"most classes have fewer than {_MIN_PER_CLASS} samples: none to spare"
    elif "holdout" not in given and not len(held_out(source, source.train_labels, share, seed=1).samples):
        share, reason = 0.0, "too many copies of each sample: none can be held out without its copies"
    return [*choices, Choice("holdout", share, reason), *_tests(source, given.get("holdout", share))]


def _tests(source: Source, holdout: float) -> list[Choice]:
    """Whether every epoch is tested, if held-out samples choose the epoch to keep: not if that takes much time."""
    num_train, num_test = len(source.train_labels), 0 if source.test_labels is None else len(source.test_labels)
    if not holdout or num_train < _MANY or num_test < _MANY_TESTS * num_train:
        return []
    reason = f"{num_test:,} samples to test on: the time trains more epochs, and the model that is kept is tested"
    return [Choice("test_epochs", False, reason)]


def _epochs(num_samples: int, kind: str, on_cpu: bool) -> Choice:
    """Epochs in which the nets see a certain number of images, within bounds."""
    wanted, low, high = (300_000, 15, 40) if on_cpu else (15_000_000, 60, 300)
    epochs = max(low, min(round(wanted / num_samples), high))
    reasons = {
        low: f"your data is large ({num_samples:,} {kind}): few are enough",
        high: f"your data is small ({num_samples:,} {kind}): it needs many",
    }
    return Choice(
        "epochs", epochs, reasons.get(epochs, f"fewer than for smaller data: you have {num_samples:,} {kind}")
    )


def _unlimited(choices: list[Choice], method: str, given: Mapping[str, Any], budget: Budget | None) -> list[Choice]:
    """The choices that are not given, for a method whose epochs are not planned by time; the reason says so."""
    if budget is not None:
        words = f"minutes is no limit for method {method}, which always has this many epochs"
        choices = [replace(one, reason=f"{one.reason}; {words}") if one.name == "epochs" else one for one in choices]
    return [choice for choice in choices if choice.name not in given]


def _epochs_in(budget: Budget, job: Job, source: Source, num_warmup: int | None, on_cpu: bool) -> Choice:
    """The number of epochs that fit what is left of the budget here, from timing a few steps of each phase."""
    pace = measure(replace(job, noise="none"), source, limit=_MEASURED * budget.seconds)

    def seconds(epochs: int) -> float:
        lengths = {choice.name: choice.value for choice in lengths_for(epochs, on_cpu, num_warmup)}
        given = {} if num_warmup is None else {"warmup_epochs": num_warmup}
        return pace.seconds(Job.of(job.values() | known_to(job.method, {"epochs": epochs} | lengths | given)))

    left, minutes = budget.left, budget.minutes
    fewest = max(_MIN_EPOCHS, num_warmup or 0)
    fitting = [epochs for epochs in range(fewest, MAX_EPOCHS + 1) if seconds(epochs) <= left]
    if not fitting:
        needed = math.ceil((budget.seconds - left + seconds(fewest)) / 60)
        raise InputError(
            f"minutes is {minutes:g}: {fewest} epochs take about {needed} minutes here; allow more minutes, or set a"
            " smaller net_width or image_size"
        )
    an_epoch = seconds(fitting[-1]) / fitting[-1]
    if fitting[-1] == MAX_EPOCHS:
        reason = f"more are never planned; the run ends before {minutes:g} min: an epoch takes {an_epoch:.2g} s here"
    else:
        reason = f"fit {minutes:g} minutes: an epoch takes about {an_epoch:.2g} s here; planned again as they are timed"
    return Choice("epochs", fitting[-1], reason)
