"""What a run directory has before its first epoch, apart from the checkpoint."""

from collections.abc import Sequence
from dataclasses import asdict

from dividemix.data.noise import save_noise
from dividemix.data.source import Source
from dividemix.nets.weights import WeightsReport
from dividemix.planning.choices import Choice
from dividemix.planning.job import Job
from dividemix.planning.material import Material
from dividemix.runs.directory import RunDirectory, environment


def write_start(
    directory: RunDirectory,
    job: Job,
    material: Material,
    choices: Sequence[Choice],
    weights: WeightsReport | None,
    kept: Source | None,
) -> None:
    """Write what is trained, with which settings, on which data, where; `kept` is data to copy."""
    directory.write_job(job)
    if choices:
        directory.write_json("choices.json", [asdict(choice) for choice in choices])
    if material.skipped:
        directory.write_skipped(material.skipped)
    if material.notes:
        directory.write_json("notes.json", material.notes)
    if kept is not None:
        directory.write_data(kept)
    about_weights = {"weights": str(weights)} if weights else {}
    directory.write_json("env.json", environment(material.train.labels.device) | about_weights)
    if material.noise is not None and material.true_labels is not None:
        save_noise(directory.noise, material.noise, material.true_labels)
