"""The decisions of a review on the disk: each change is written at once, whole or not at all."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dividemix import atomic
from dividemix.errors import InputError
from dividemix.relabel.corrections import ACTIONS, Correction, corrections_csv, read_corrections

_MAX_LABEL = 1000  # characters


class Sample(NamedTuple):
    """What a correction needs to know of a sample."""

    path: str
    given_label: str
    suggested_label: str


class StoredReview:
    """Decisions on samples, by their index in the data, in a file of corrections.

    Changes come one by one, from any number of threads. A change replaces the decision on its samples and no other, so
    that two pages do not lose each other's decisions.
    """

    def __init__(self, file: Path, samples: Mapping[int, Sample], classes: Sequence[str], *, can_add_classes: bool):
        """Read the file, if it exists. Raises InputError if it is damaged, or about other samples."""
        self.file, self.revision = file, 0
        self._samples, self._lock = samples, threading.Lock()
        self._classes = None if can_add_classes else frozenset(classes)
        self._decided: dict[int, Correction] = {}
        for one in read_corrections(file) if file.is_file() else []:
            sample = samples.get(one.index)
            if sample is None or (sample.path, sample.given_label) != (one.path, one.given_label):
                raise InputError(
                    f"{one.where}: sample {one.index} has another path or label in the run: the decisions are for"
                    " another run; move the file away"
                )
            self._decided[one.index] = one

    def decisions(self) -> tuple[int, list[tuple[int, str, str]]]:
        """The revision, and all decisions: index, action, new label."""
        with self._lock:
            return self.revision, [(one.index, one.action, one.new_label) for one in self._decided.values()]

    def change(self, changes: Sequence[tuple[int, str | None, str]]) -> int:
        """Decide on samples: index, action (None takes the decision back), new label; returns the revision.

        When it returns, the changes are on the disk. Raises InputError, and changes nothing, if one makes no sense.
        """
        new = {index: self._checked(index, action, label) for index, action, label in changes}
        with self._lock:
            decided = self._decided | {index: one for index, one in new.items() if one is not None}
            decided = {index: one for index, one in decided.items() if new.get(index, one) is not None}
            ordered = [decided[index] for index in sorted(decided)]
            atomic.write_text(self.file, corrections_csv(ordered))
            self._decided, self.revision = decided, self.revision + 1
            return self.revision

    def _checked(self, index: int, action: str | None, label: str) -> Correction | None:
        sample = self._samples.get(index)
        if sample is None:
            raise InputError(f"index is {index}: not a sample of the run")
        if action is None:
            return None
        if action not in ACTIONS:
            raise InputError(f"action is {action[:50]!r}: must be one of {', '.join(ACTIONS)}")
        label = {"keep": sample.given_label, "accept": sample.suggested_label, "choose": label.strip()}.get(action, "")
        if action == "choose":
            self._check_label(label)
        return Correction(
            where=f"{self.file}: sample {index}",
            index=index,
            path=sample.path,
            given_label=sample.given_label,
            new_label=label,
            action=action,
        )

    def _check_label(self, label: str) -> None:
        """Raise InputError unless the label can be one of the data."""
        is_text = 0 < len(label) <= _MAX_LABEL and "\0" not in label
        try:
            label.encode()
        except UnicodeEncodeError:
            is_text = False
        if not is_text or (self._classes is not None and label not in self._classes):
            raise InputError(f"label is {label[:50]!r}: not a class of the data")
