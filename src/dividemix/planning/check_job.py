"""What can be seen to be wrong with a new job before its data is read, which may take minutes.

Most mistakes are found before torch is loaded, which takes seconds.
"""

from pathlib import Path

from dividemix.data.builtin import BUILT_IN
from dividemix.data.human_labels import check_variant
from dividemix.data.noise import parse_noise
from dividemix.data.readers.column_files import ROW_FILES
from dividemix.data.readers.paths import check_exists
from dividemix.data.readers.text_rows import TEXT_FILES
from dividemix.errors import InputError
from dividemix.foreign import TFIDF
from dividemix.planning.job import Job
from dividemix.planning.reading import check_reading


def check_job(job: Job) -> None:
    """Raise InputError if a file is missing, or a setting has a value that no data would suit."""
    check_reading(job)
    _check_test(job)
    _check_noise(job)
    if job.weights is not None and not Path(job.weights).is_file():
        raise InputError(f"weights is {job.weights!r}: no such file")

    from dividemix.encoders.find import check_name
    from dividemix.nets.build import find_factory
    from dividemix.planning.prepare import checked_device

    if job.encoder_name not in (None, TFIDF):
        check_name(str(job.encoder_name))
    if not job.finetune:  # otherwise the net is chosen by the encoder
        find_factory(job.settings.net)
    checked_device(job)


def _check_test(job: Job) -> None:
    """Raise InputError for a file of labels, or a test set, that cannot belong to the data."""
    for name in ("labels", "test_labels"):
        file = getattr(job, name)
        if file is not None and not Path(file).is_file():
            raise InputError(f"{name} is {file!r}: no such file")
    if job.test_labels is not None and (job.test is None or Path(job.test).suffix.lower() != ".npy"):
        raise InputError(f"test_labels {job.test_labels} has no meaning unless test is an .npy file: leave it out")
    for column, files in (("target", ROW_FILES), ("text_column", TEXT_FILES)):
        if getattr(job, column) is not None and job.test is not None and Path(job.test).suffix.lower() not in files:
            raise InputError(f"test is {job.test!r}: {column} is given, so it must be a {', '.join(files)} file")


def _check_noise(job: Job) -> None:
    spec = parse_noise(job.noise)
    if spec.path is not None and not spec.path.is_file():
        raise InputError(f"noise is {job.noise!r}: {spec.path} cannot be read: no such file")
    if spec.kind == "human":
        check_variant(job.data, spec.of)
    if spec.kind == "open_set" and spec.of not in BUILT_IN:
        check_exists(spec.of)
