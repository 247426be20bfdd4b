"""The classes of CIFAR-10 and CIFAR-100, and for asymmetric noise the class that each is taken for."""

CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

# The paper's asymmetric noise.
_CIFAR10_TAKEN_FOR = {
    "truck": "automobile",
    "bird": "airplane",
    "deer": "horse",
    "cat": "dog",
    "dog": "cat",
}

CIFAR10_SIMILAR = {
    CIFAR10_CLASSES.index(name): CIFAR10_CLASSES.index(other) for name, other in _CIFAR10_TAKEN_FOR.items()
}

# CIFAR-100's superclasses in the order of their (coarse) labels. The fine labels are the alphabetical order of all
# hundred names, and so is the order within a line.
_SUPERCLASSES = tuple(
    tuple(line.split())
    for line in """
    beaver dolphin otter seal whale
    aquarium_fish flatfish ray shark trout
    orchid poppy rose sunflower tulip
    bottle bowl can cup plate
    apple mushroom orange pear sweet_pepper
    clock keyboard lamp telephone television
    bed chair couch table wardrobe
    bee beetle butterfly caterpillar cockroach
    bear leopard lion tiger wolf
    bridge castle house road skyscraper
    cloud forest mountain plain sea
    camel cattle chimpanzee elephant kangaroo
    fox porcupine possum raccoon skunk
    crab lobster snail spider worm
    baby boy girl man woman
    crocodile dinosaur lizard snake turtle
    hamster mouse rabbit shrew squirrel
    maple_tree oak_tree palm_tree pine_tree willow_tree
    bicycle bus motorcycle pickup_truck train
    lawn_mower rocket streetcar tank tractor
    """.strip().splitlines()
)
CIFAR100_CLASSES = tuple(sorted(name for names in _SUPERCLASSES for name in names))

# The next class within the superclass, for the last one the first.
CIFAR100_SIMILAR = {
    CIFAR100_CLASSES.index(name): CIFAR100_CLASSES.index(following)
    for names in _SUPERCLASSES
    for name, following in zip(names, names[1:] + names[:1], strict=True)
}
