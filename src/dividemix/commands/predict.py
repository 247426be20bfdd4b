"""dividemix predict: the classes of images by a trained run, as CSV."""

import argparse
import csv
import io
import os
import sys
from pathlib import Path

from dividemix.errors import InputError

HELP = "predict the classes of images by a trained run"
EPILOG = """\
Each row has path, predicted_label, predicted_prob, and prob_CLASS for each class. An image that cannot be read has no
row and is reported on standard error."""


def add(predict: argparse.ArgumentParser) -> None:
    """Add the flags of predict."""
    predict.add_argument("run", metavar="RUN", type=Path, help="a run directory, or the model/ in it")
    images = "image files, folders of them, and .csv or .tsv tables with a column path, relative to the table"
    predict.add_argument("images", metavar="IMAGES", type=Path, nargs="+", help=images)
    predict.add_argument("--out", metavar="FILE", type=Path, help="the CSV file to write [standard output]")
    predict.add_argument("--batch_size", metavar="N", type=int, default=256, help="images at a time [256]")
    predict.add_argument("--device", metavar="NAME", default="auto", help="where to compute [auto]")
    predict.add_argument("--trust_net", action="store_true", help="run the code of the run's own net, if you trust it")
    predict.set_defaults(command=_predict)


def _predict(arguments: argparse.Namespace) -> int:
    import numpy as np

    from dividemix import atomic
    from dividemix.data.spreadsheet import as_field
    from dividemix.model.image_list import list_images
    from dividemix.model.model import Model

    out: Path | None = arguments.out
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise InputError(f"out is {out}: it must be a file in an existing folder")
    images = list_images(arguments.images)
    model = Model.from_pretrained(arguments.run, arguments.device, trust_net=arguments.trust_net)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(["path", "predicted_label", "predicted_prob", *(f"prob_{name}" for name in model.classes)])
    num_predicted = 0
    predictions = model.predict_files([file for _, file in images], batch_size=arguments.batch_size)
    for (name, _), probs in zip(images, predictions, strict=True):
        name = os.fsencode(name).decode("utf-8", "backslashreplace")  # a file name may have any bytes
        if isinstance(probs, np.ndarray):
            num_predicted += 1
            best = int(probs.argmax())
            texts = (as_field(name), as_field(model.classes[best]))
            writer.writerow([*texts, *(f"{prob:.6g}" for prob in (probs[best], *probs))])
        else:
            print(" ".join(f"dividemix: {name}: {probs}".split()), file=sys.stderr)
    if not num_predicted:
        raise InputError(f"none of the {len(images)} images can be read")
    content = table.getvalue()
    if out is None:
        sys.stdout.buffer.write(content.encode())  # always UTF-8, as in a file
    else:
        atomic.write_text(out, content)
    print(f"dividemix: {num_predicted} images predicted, {len(images) - num_predicted} skipped", file=sys.stderr)
    return 0
