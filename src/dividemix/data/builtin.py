"""The registry of built-in data sets: each is one entry of `BUILT_IN`. No numpy or torch import.

Functions are named by references, "module:function", which `pkgutil.resolve_name` imports where they are called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dividemix.data.archives import CIFAR10, CIFAR100, Archive


@dataclass(frozen=True, kw_only=True)
class BuiltIn:
    """What is known of a data set before it is read."""

    title: str  # The name in titles of tables
    reader: str
    """Reference to a function that returns the Source at a root (or None); with a `lister`, also of an image size."""
    lister: str | None = None
    """For sets of image files: reference to a function root -> named tuple of a Listing for each split. It reads the
    official lists, and opens no image."""
    lists: tuple[str, ...] = ()  # The lists that `lister` needs, relative to the root
    checker: str | None = None
    """Reference to a function (name, root, decode, progress) -> findings (see `check`); None: nothing to check."""
    layout: str = ""  # The folder that `checker` expects, in words; DIR is the root
    num_images: Mapping[str, int] = field(default_factory=dict)
    """Number of images in the splits of the official data set; splits of unknown size are absent."""
    needs_root: bool = True  # Whether its files are outside of the package
    archive: Archive | None = None  # The archive that `dividemix data fetch` downloads; None: it cannot be fetched
    presets: Mapping[str, str] = field(default_factory=dict)
    """Noise specification -> the preset with the paper's settings for it."""
    default_preset: str  # The preset for all other noise
    weights: str | None = None  # The weights that the paper's runs start from; None: random ones


_CIFAR_CHECKER = "dividemix.data.check_cifar:check_cifar"
_LISTED_CHECKER = "dividemix.data.check_listed:check_listed"
_CIFAR_NUM_IMAGES = {"train": 50_000, "test": 10_000}
_TABLE_7 = {f"symmetric:{rate / 100:g}": f"sym-{rate}" for rate in (20, 50, 80, 90)}  # noise -> row of each CIFAR

BUILT_IN: dict[str, BuiltIn] = {
    "fashion": BuiltIn(
        title="the embedded Fashion-MNIST set",
        reader="dividemix.data.readers.fashion:read_fashion",
        needs_root=False,
        default_preset="fashion",
    ),
    "cifar10": BuiltIn(
        title="CIFAR-10",
        reader="dividemix.data.readers.cifar:read_cifar10",
        checker=_CIFAR_CHECKER,
        layout="""\
DIR/cifar-10-batches-py/ with data_batch_1, data_batch_2, data_batch_3, data_batch_4, data_batch_5, test_batch
or DIR/cifar-10-batches-bin/ with data_batch_1.bin, data_batch_2.bin, data_batch_3.bin, data_batch_4.bin,
   data_batch_5.bin, test_batch.bin
or DIR/cifar-10-python.tar.gz
or DIR/cifar-10-binary.tar.gz""",
        num_images=_CIFAR_NUM_IMAGES,
        archive=CIFAR10,
        presets={noise: f"cifar10-{row}" for noise, row in _TABLE_7.items()} | {"asymmetric:0.4": "cifar10-asym-40"},
        default_preset="cifar10-sym-50",
    ),
    "cifar100": BuiltIn(
        title="CIFAR-100",
        reader="dividemix.data.readers.cifar:read_cifar100",
        checker=_CIFAR_CHECKER,
        layout="""\
DIR/cifar-100-python/ with train, test
or DIR/cifar-100-binary/ with train.bin, test.bin
or DIR/cifar-100-python.tar.gz
or DIR/cifar-100-binary.tar.gz""",
        num_images=_CIFAR_NUM_IMAGES,
        archive=CIFAR100,
        presets={noise: f"cifar100-{row}" for noise, row in _TABLE_7.items()},
        default_preset="cifar100-sym-50",
    ),
    "clothing1m": BuiltIn(
        title="Clothing1M",
        reader="dividemix.data.readers.clothing1m:read_clothing1m",
        lister="dividemix.data.readers.clothing1m:list_clothing1m",
        lists=(
            *("noisy_train_key_list.txt", "clean_val_key_list.txt", "clean_test_key_list.txt"),
            *("noisy_label_kv.txt", "clean_label_kv.txt"),
        ),
        checker=_LISTED_CHECKER,
        layout="""\
DIR/noisy_train_key_list.txt, clean_val_key_list.txt, clean_test_key_list.txt: names of images
DIR/noisy_label_kv.txt, clean_label_kv.txt: names and numbers of their classes
DIR/images/0/00/NAME.jpg and so on, as in the lists; or without the folder images""",
        num_images={"train": 1_000_000, "val": 14_313, "test": 10_526},
        default_preset="clothing1m",
        weights="ImageNet's weights of ResNet-50",
    ),
    "webvision": BuiltIn(
        title="WebVision, first 50 classes",
        reader="dividemix.data.readers.webvision:read_webvision",
        lister="dividemix.data.readers.webvision:list_webvision",
        lists=("info/synsets.txt", "info/train_filelist_google.txt", "info/val_filelist.txt"),
        checker=_LISTED_CHECKER,
        layout="""\
DIR/info/synsets.txt, train_filelist_google.txt, val_filelist.txt
DIR/google/q0001/NAME.jpg and so on, as in the list: training images of the first 50 classes
DIR/val_images_256/NAME.jpg, or val/: test images
DIR/imagenet/val/WNID/NAME.JPEG, or a number from 0 to 49 for WNID: ILSVRC12's validation images, a second test set""",
        num_images={"test": 2_500, "ilsvrc12": 2_500},  # of the first 50 classes
        default_preset="webvision",
    ),
}
