"""The archives that `dividemix data fetch` downloads: URLs, sizes, checksums, files. No numpy or torch import."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A .tar.gz with one folder of files."""

    url: str
    size: int  # Of the archive, in bytes
    sha256: str  # Of the archive
    folder: str  # The folder inside
    md5: dict[str, str]  # Name -> checksum of the files to unpack; other files in the archive are not unpacked

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.url.rpartition("/")[2]


# The site of CIFAR publishes MD5 (c58f30108f718f92721af3b95e74349a, eb9058c3a382ffc7106e4002c42a8d85). Keras checks the
# same files by these SHA-256.
CIFAR10 = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    size=170_498_071,
    sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    folder="cifar-10-batches-py",
    md5={
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",  # names of the classes, for other programs
    },
)
CIFAR100 = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    size=169_001_437,
    sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    folder="cifar-100-python",
    md5={
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
)
