"""A process of its own for one training: it is told what to do on its standard input and answers in lines of JSON.

In: one line, {"task": "train", "job": ..., "path": ..., "num_workers": ...} or {"task": "measure", "job": ...}; then
the input stays open, and its end means that the parent is gone. Out: {"row": ...} for each epoch (its number and test
accuracy), {"said": ...} for what a person should read, {"pace": ...} for a measurement, {"error": ...} if it fails.
"""

import json
import os
import sys
import threading
import warnings
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from dividemix.errors import DivergedError, InputError
from dividemix.planning.job import Job


def main() -> int:
    """Do what the first line asks for; returns the exit code."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed goes to the log, not between the answers
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    warnings.showwarning = lambda message, *_, **__: _tell(answers, f"warning: {message}")
    job = Job.of(request["job"])
    try:
        if request["task"] == "measure":
            from dividemix.planning.pace import measure

            _say(answers, pace=asdict(measure(job)))
            return 0
        return _train(Path(request["path"]), job, answers, num_workers=request["num_workers"])
    except (InputError, DivergedError, OSError, MemoryError) as error:
        _say(answers, error=" ".join(str(error).split()) or type(error).__name__)
        return 1


def _train(path: Path, job: Job, answers: TextIO, *, num_workers: int) -> int:
    """Train the job's run from where it stands; a signal leaves once all is saved."""
    import torch

    from dividemix.engine.interrupts import Interrupted, Interrupts
    from dividemix.engine.memory import is_out_of_memory
    from dividemix.experiments.machine import add_machine, machine_name
    from dividemix.runs.run import Run

    try:
        with Interrupts():
            run = Run.load(path, job) if (path / "config.yaml").is_file() else Run.create(path, job)
            device = run.material.train.labels.device
            name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
            machine = machine_name(name, torch.get_num_threads(), num_workers=num_workers)
            if run.left_out is not None:
                _tell(answers, run.left_out)
            if run.weights is not None:
                _tell(answers, f"weights: {run.weights}")
            with closing(run.train()) as epochs:
                for row in epochs:
                    add_machine(path, machine)
                    _say(answers, row={"epoch": row["epoch"], "test_acc": row["test_acc"]})
    except Interrupted as interrupt:
        return 128 + interrupt.number
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise MemoryError("out of memory: run fewer --jobs at once") from None
    return 0


def _tell(answers: TextIO, line: str) -> None:
    """Tell a person, now and in the log."""
    sys.stderr.write(line + "\n")
    _say(answers, said=line)


def _say(answers: TextIO, **message: Any) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _end_with_parent() -> None:
    """End at once when the parent ends, however that ends: what is on disk is whole at any moment."""
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
