"""A trained model as one file for other programs: raw samples in, probabilities out, checked before it is written.

The file takes any number N of uint8 images (N, H, W, channels), or of float32 vectors (N, D), and gives the ensemble's
probabilities (N, C), float32; the normalisation is inside. The text config.json inside the file has the names of the
classes, and says how images are brought to H x W. The input of ONNX is called `images` or `vectors`.

pt2, a program of torch.export (no dividemix needed to run it):

    extra = {"config.json": ""}
    program = torch.export.load("model.pt2", extra_files=extra)
    probs = program.module()(images)                          # a uint8 tensor
    classes = json.loads(extra["config.json"])["classes"]

onnx (no torch needed to run it):

    session = onnxruntime.InferenceSession("model.onnx")
    (probs,) = session.run(None, {"images": images})          # a uint8 array
    classes = json.loads(session.get_modelmeta().custom_metadata_map["config.json"])["classes"]
"""

import io
import json
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dividemix import atomic
from dividemix.errors import HeadOnlyWarning, InputError
from dividemix.model import EXPORT_FORMATS
from dividemix.model.encoded_input import EncodedInput
from dividemix.model.model import Model

TOLERANCE = 1e-4
_Predict = Callable[[NDArray[Any]], NDArray[np.float32]]


def export(run: Path, out: Path, format: str, *, trust_net: bool = False) -> float:
    """Write the model of a run directory (or a model folder) to the file `out`, in one of EXPORT_FORMATS.

    Returns the largest difference of a probability from the model's, over random and extreme samples. A net that is not
    part of the package is imported only with `trust_net`. Raises InputError if there is no model, its net cannot be
    exported, or the file's probabilities differ; then no file is written.
    """
    if format not in EXPORT_FORMATS:
        raise InputError(f"unknown format {format!r}; the formats are {', '.join(EXPORT_FORMATS)}")
    write, read = FORMATS[format]
    if (extension := out.suffix.lower().removeprefix(".")) in EXPORT_FORMATS and extension != format:
        raise InputError(f"out is {out}: for {format} a .{format} file is written: change the extension")
    model = Model.from_pretrained(run, device="cpu", trust_net=trust_net)
    if not out.parent.is_dir() or out.is_dir():
        raise InputError(f"{out}: cannot be written: name a file in an existing folder")
    if model.kind == "texts":
        raise InputError(f"{run}: the model takes texts, which no exported file can: use dividemix predict or Python")
    # Weights in the order that every reader knows; the convolutions follow the images, which are channels_last.
    model.ensemble.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    content, model = _written(write, model, out)
    difference = _largest_difference(read(content), model)
    if not difference <= TOLERANCE:  # NaN counts as one
        raise InputError(
            f"{out}: not written: its probabilities would differ by {difference:.1e} from those of {run}, "
            f"more than {TOLERANCE:.0e}; try another format"
        )
    atomic.write_bytes(out, content)
    return difference


def _written(write: Callable[[Model], bytes], model: Model, out: Path) -> tuple[bytes, Model]:
    """The content of the file, and the model that it is: without its encoder, if that cannot be exported."""
    try:
        return write(model), model
    except InputError as error:
        if not isinstance(model.takes, EncodedInput):
            raise
        words = f"{error}; the file has the networks alone: it takes the encoder's vectors (N, D), not images"
    head = Model(list(model.ensemble.nets), classes=model.classes, takes=model.takes.vectors, net=model.net)
    content = write(head)
    warnings.warn(f"{out}: {words}", HeadOnlyWarning, stacklevel=3)
    return content, head


def _largest_difference(predict: _Predict, model: Model) -> float:
    """The largest difference of probabilities, for one sample and for five, extreme and random ones."""
    samples = model.takes.examples()
    differences = []
    for batch in (samples, samples[3:4], samples[:1], samples[1:2]):
        probs = predict(batch)
        if probs.shape != (len(batch), len(model.classes)):
            return float("inf")
        differences.append(np.abs(probs - model.predict_proba(batch)).max())
    return float(np.max(differences))


def _traced(model: Model) -> torch.export.ExportedProgram:
    """The ensemble as a program for any number of samples."""
    samples = torch.zeros(2, *model.takes.shape, dtype=model.takes.raw_type)
    try:
        with _quiet():
            return torch.export.export(
                model.ensemble.eval(), (samples,), dynamic_shapes={"samples": {0: torch.export.Dim("N", min=1)}}
            )
    except Exception as error:  # torch may raise anything for a net that cannot be traced
        raise _not_exportable(model, error) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the warnings of torch's exporters, not their errors."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _config_text(model: Model) -> str:
    return json.dumps(model.describe(), indent=2, ensure_ascii=False)


def _not_exportable(model: Model, error: Exception) -> InputError:
    first_line = (str(error).strip().splitlines() or [""])[0]
    what = f"encoder {model.takes.name!r}" if isinstance(model.takes, EncodedInput) else f"net {model.net.net!r}"
    return InputError(f"{what} cannot be exported: {type(error).__name__}: {first_line}")


def _write_pt2(model: Model) -> bytes:
    file = io.BytesIO()
    torch.export.save(_traced(model), file, extra_files={"config.json": _config_text(model)})
    return file.getvalue()


def _read_pt2(content: bytes) -> _Predict:
    module = torch.export.load(io.BytesIO(content)).module()

    @torch.inference_mode()
    def predict(samples: NDArray[Any]) -> NDArray[np.float32]:
        probs: NDArray[np.float32] = module(torch.from_numpy(samples)).numpy()
        return probs

    return predict


def _write_onnx(model: Model) -> bytes:
    try:
        import onnx
        import onnxruntime  # noqa: F401  # fails now, not after the export
        import onnxscript  # noqa: F401
    except Exception as error:  # a broken installation raises anything
        raise InputError(f"format onnx needs more packages ({error}): pip install 'dividemix[onnx]'") from error
    program = _traced(model)
    try:
        with _quiet():
            exported = torch.onnx.export(
                program, (), input_names=[model.kind], output_names=["probs"], dynamo=True, verbose=False
            )
    except Exception as error:
        raise _not_exportable(model, error) from error
    assert exported is not None  # it is None only if a file is named
    proto = exported.model_proto
    onnx.helper.set_model_props(proto, {"config.json": _config_text(model)})
    content: bytes = proto.SerializeToString()
    return content


def _read_onnx(content: bytes) -> _Predict:
    import onnxruntime

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def predict(samples: NDArray[Any]) -> NDArray[np.float32]:
        (probs,) = session.run(None, {session.get_inputs()[0].name: samples})
        return np.asarray(probs)

    return predict


FORMATS: dict[str, tuple[Callable[[Model], bytes], Callable[[bytes], _Predict]]] = {
    "pt2": (_write_pt2, _read_pt2),
    "onnx": (_write_onnx, _read_onnx),
}
assert FORMATS.keys() == EXPORT_FORMATS.keys()
