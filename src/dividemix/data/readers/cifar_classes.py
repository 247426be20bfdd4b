"""The classes of CIFAR-10 and CIFAR-100 and, for asymmetric noise, the class that each is mistaken for."""

from importlib import resources

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# The paper's asymmetric noise.
_CIFAR10_TAKEN_FOR = {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}
CIFAR10_SIMILAR = {
    CIFAR10_CLASSES.index(name): CIFAR10_CLASSES.index(other) for name, other in _CIFAR10_TAKEN_FOR.items()
}

# CIFAR-100's superclasses, in the order of their (coarse) labels. The fine labels number all hundred names in
# alphabetical order. The names in a line are in alphabetical order too.
_LIST = resources.files("dividemix.data.readers") / "cifar100_superclasses.txt"
_SUPERCLASSES = tuple(tuple(line.split()) for line in _LIST.read_text(encoding="utf-8").splitlines())
CIFAR100_CLASSES = tuple(sorted(name for names in _SUPERCLASSES for name in names))

# The next class in the same superclass; for the last class, the first.
CIFAR100_SIMILAR = {
    CIFAR100_CLASSES.index(name): CIFAR100_CLASSES.index(following)
    for names in _SUPERCLASSES
    for name, following in zip(names, names[1:] + names[:1], strict=True)
}
