"""The labels of a run, judged by its method."""

from typing import TYPE_CHECKING, Any

from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.judging.odd_samples import find_odd_samples
from dividemix.methods import find_method
from dividemix.runs.kept import kept_nets

if TYPE_CHECKING:
    from dividemix.runs.run import Run


def judge_labels(run: "Run") -> LabelIssues:
    """The method's opinion of every given label, by the nets of the kept epoch; for files, odd samples, too."""
    material = run.material
    with kept_nets(run):
        judgement = find_method(run.job.method).judge(run.state, material.everything, run.job.settings)
    about: dict[str, Any] = {name: getattr(material, name) for name in ("paths", "rows", "votes", "texts")}
    odd = None if material.space is None or not run.keeps_files else find_odd_samples(material.space)
    about |= {"classes": run.classes, "odd": odd, "unseen": material.unseen}
    return find_issues(judgement, material.labels, **about)
