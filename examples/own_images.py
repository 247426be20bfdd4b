"""A folder of images with some labels wrong: train, look at the suspects, predict. Takes a minute on two cores.

Usage: python examples/own_images.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import dividemix
from dividemix.data.readers.fashion import read_fashion


def make_folder(folder: Path, num_images: int = 1200, wrong: float = 0.2) -> None:
    """One subfolder per class, filled with images of the embedded set, a fifth of them in a wrong one."""
    source = read_fashion().limit_train(num_images)
    rng = np.random.default_rng(0)
    for i, (image, label) in enumerate(zip(source.train_samples[:], source.train_labels, strict=True)):
        if rng.random() < wrong:
            label = rng.integers(len(source.classes))
        path = folder / source.classes[label].replace("/", " or ") / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[:, :, 0]).save(path)


def main() -> None:
    """Make the folder, unless it is there; train; show what was found."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "example_images")
    if not folder.exists():
        make_folder(folder)
    run = dividemix.train(folder, epochs=8, out=Path(f"{folder}_run"), overwrite=True)
    issues = run.label_issues()
    print(f"{issues.noise_rate:.0%} of the labels look wrong; the worst:")
    for row, _ in zip(issues.rows(), range(5), strict=False):
        print(f"  {row['path']}: given {row['given_label']}, suggested {row['predicted_label']}")
    print(f"review them on {run.directory.path / 'report.html'}")
    first = folder / next(issues.rows())["path"]
    print(f"{first}: {run.predict_proba([first]).round(2).tolist()}")


if __name__ == "__main__":
    main()
