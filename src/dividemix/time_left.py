"""How long a run still takes: from its own epochs, and before the first one from a short measurement."""

import time

from dividemix.foreign import is_foreign
from dividemix.methods import find_method
from dividemix.planning.foreseen import foreseen
from dividemix.runs.run import Run

_LONG = 3600  # seconds after which a user should know before it begins
_LIMIT = 2.0  # seconds after which no other phase is measured
_QUICK, _MORE_STEPS = 0.5, 4  # if a step of each phase takes less, so many of each are measured


def seconds_left(run: Run, in_epoch: float = 0.0) -> float | None:
    """Seconds that the remaining epochs take, `in_epoch` seconds after the last one ended; None if unknown."""
    return None if (times := _times(run, in_epoch)) is None else max(sum(times[len(run.rows) :]) - in_epoch, 0.0)


def share_done(run: Run, in_epoch: float = 0.0) -> float | None:
    """The share of the whole run's time that has passed; None if unknown."""
    if (times := _times(run, in_epoch)) is None or not sum(times):
        return None
    return min((sum(times[: len(run.rows)]) + in_epoch) / sum(times), 1.0)


def _times(run: Run, in_epoch: float) -> list[float] | None:
    """The seconds of each epoch; an epoch under way that takes longer than foreseen is a sign for those like it."""
    phases = find_method(run.job.method).phases(run.job.settings)
    times = foreseen(phases, [row["seconds"] for row in run.rows], run.estimate)
    number = len(run.rows)
    if times is None or number >= len(times) or in_epoch <= times[number]:
        return times
    expected = times[number]
    return times[:number] + [in_epoch if one == expected else one for one in times[number:]]


class Stopwatch:
    """The time since a run began to be trained here, and since its last epoch ended."""

    def __init__(self, run: Run):
        self._run = run
        self._started = self._epoch_started = time.monotonic()
        self._num_rows = len(run.rows)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    @property
    def in_epoch(self) -> float:
        """Seconds since the last epoch ended."""
        if len(self._run.rows) != self._num_rows:
            self._num_rows, self._epoch_started = len(self._run.rows), time.monotonic()
        return time.monotonic() - self._epoch_started


def estimate(run: Run) -> float | None:
    """Seconds that a run will take before its first epoch, measured on a few steps; None if that cannot be measured.

    One step of each phase is the least. If that is quick, more are measured: in one step, what an epoch does only once
    counts too much.

    The measurement trains networks of its own on a few samples, so the run itself has the same bits. A method that is
    the user's own code is not called for it, nor one whose steps do not tell its time.
    """
    if is_foreign(run.job.method) or not find_method(run.job.method).steps_tell_time:
        return None
    from dividemix.planning.pace import measure_on

    began = time.perf_counter()
    try:
        pace = measure_on(run.job, run.material, num_steps=1, limit=_LIMIT)
        if time.perf_counter() - began < _QUICK:
            pace = measure_on(run.job, run.material, num_steps=_MORE_STEPS, limit=_LIMIT)
        return pace.seconds(run.job)
    except Exception:  # whatever stops the measurement: the training says it, or does not meet it
        return None


def time_words(run: Run, seconds: float) -> str:
    """How long the run takes, in a sentence; with what helps if it is hours."""
    words = f"this takes about {span(seconds)} here"
    if seconds < _LONG:
        return words
    device = run.material.train.labels.device
    faster = (
        "a GPU, " if device.type == "cpu" else ""
    ) + "a smaller --net or --net_width, --limit_train, fewer --epochs"
    return f"warning: {words}, on {device}; faster: {faster}; Ctrl-C stops it, and dividemix resume continues it"


def span(seconds: float) -> str:
    """A time in words, roughly: 40 s, 12 min, 5 h, 31 days."""
    for length, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length or (seconds >= length and unit != "days"):
            return f"{seconds / length:.{1 if seconds < 10 * length and unit != 'min' else 0}f} {unit}"
    return f"{max(seconds, 1):.0f} s"
