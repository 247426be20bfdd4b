"""Strong views of a batch, as a share of a training step of the small network on that batch; one thread.

The step is 128 images of 32 x 32 pixels: crop and flip, normalisation, forward, backward, SGD. Both are done in turn.
"""

import torch
from torch.nn import functional as F

from benchmarks.contract import Options, Outcome, Row
from benchmarks.subject import MEAN, STD, draw_images
from benchmarks.timing import medians, readable, timed
from dividemix.data.augment import crop_and_flip, to_input
from dividemix.data.strong_views import strong_views
from dividemix.engine.state import Learner
from dividemix.methods.dividemix import DivideMixSettings
from dividemix.nets.build import build_net

_NUM_IMAGES = 128


def run(options: Options) -> Outcome:
    """The step without strong views, and the strong views."""
    s = DivideMixSettings(net="small_cnn", net_width=32)
    generator = torch.Generator().manual_seed(1)
    pixels, classes = draw_images(_NUM_IMAGES)
    images, labels = torch.from_numpy(pixels), torch.from_numpy(classes)
    mean, std = torch.tensor(MEAN), torch.tensor(STD)
    net = build_net(s, num_classes=10, image_shape=(32, 32, 3), seed=1)
    learner = Learner.start(net.to(memory_format=torch.channels_last), s)  # type: ignore[call-overload]

    def step() -> None:
        views = crop_and_flip(images, padding=s.crop_padding, flip=s.flip, generator=generator)
        learner.descend(F.cross_entropy(learner.net(to_input(views, mean, std)), labels))

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        works = {"step": timed(step), "views": timed(lambda: strong_views(images, generator))}
        seconds = medians(works, repeats=2 if options.quick else 20)
    finally:
        torch.set_num_threads(num_threads)
    share = seconds["views"] / seconds["step"]
    what = f"strong views of {_NUM_IMAGES} images: share of a step of small_cnn, width 32 ({readable(seconds['step'])})"
    row = Row(what, "", readable(seconds["views"]), f"{share:.1%}", "<= 15 %")
    figures = {"views_step_s": seconds["step"], "views_s": seconds["views"], "views_share": share}
    return Outcome([row], figures)
