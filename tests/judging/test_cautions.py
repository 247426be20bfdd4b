"""When a user is warned about the flags. Oracle: the definitions, by hand."""

import numpy as np
import pytest
import torch

from dividemix.judging.cautions import cautions
from dividemix.judging.label_issues import LabelIssues, find_issues
from dividemix.methods.method import Judgement


def judged(given: list[int], predicted: list[int], classes: tuple[str, ...] = ("ant", "bee", "cat")) -> LabelIssues:
    """Issues of samples with these labels, all predicted with 90 %; a label that is not predicted counts as wrong."""
    labels, num_classes = np.array(given), len(classes)
    probs = torch.full((len(given), num_classes), 0.1 / (num_classes - 1))
    probs[range(len(given)), predicted] = 0.9
    clean = torch.tensor([[float(a == b) for a, b in zip(given, predicted, strict=True)]])
    return find_issues(Judgement(probs, 1 - clean, clean), labels, classes=classes)


def test_a_class_that_is_given_often_and_never_predicted_was_not_learned() -> None:
    given = [0] * 40 + [1] * 20 + [2] * 40
    learned = judged(given, given)
    assert learned.unlearned_classes == ()
    assert cautions(learned, None) == []
    lost = judged(given, [0] * 59 + [1] + [2] * 40)  # bee: 1 of 20
    assert lost.unlearned_classes == ("bee",)
    [line] = cautions(lost, None)
    assert line.startswith("The networks almost never predict 1 class: bee. So these labels are not flagged.")


@pytest.mark.parametrize(("num_given", "num_predicted", "is_lost"), [(9, 0, False), (10, 0, True), (20, 2, False)])
def test_a_rare_class_is_not_called_lost(num_given: int, num_predicted: int, is_lost: bool) -> None:
    given = [0] * 50 + [1] * num_given
    found = judged(given, [0] * (len(given) - num_predicted) + [1] * num_predicted, ("ant", "bee"))
    assert found.unlearned_classes == (("bee",) if is_lost else ())


def test_classes_that_are_too_rare_to_be_judged_are_named_and_not_called_lost() -> None:
    given = [0] * 40 + [1] * 15 + [2] * 3
    labels, probs = np.array(given), torch.tensor([[0.9, 0.05, 0.05]]).repeat(58, 1)
    clean = probs[range(58), labels][None].double()
    judgement = Judgement(probs, 1 - clean, clean, is_judged=torch.tensor(given) == 0)
    [line] = cautions(find_issues(judgement, labels, classes=("ant", "bee", "cat")), None)
    assert line.startswith(
        "The networks have seen too few samples of 2 classes: bee, cat. Such labels cannot be judged"
    )


def test_many_lost_classes_are_counted_not_all_named() -> None:
    classes = tuple("abcdefgh")
    given = [k for k in range(8) for _ in range(10)]
    [line] = cautions(judged(given, [0] * 80, classes), None)
    assert "never predict 7 classes: b, c, d, e, f and 2 more." in line


def test_networks_that_only_guess_are_said_once() -> None:
    labels = np.arange(120) % 3
    probs = torch.tensor([0.2, 0.3, 0.5]).repeat(120, 1)
    clean = probs.gather(1, torch.from_numpy(labels)[:, None]).T.double()
    judgement = Judgement(probs, 1 - clean, clean, probs)
    found = find_issues(judgement, labels, classes=("ant", "bee", "cat"), unseen=np.arange(12))
    [line] = cautions(found, 33.3)
    assert line.startswith("The networks predict held-out labels no better than one class for all samples would.")


def test_agreement_far_below_what_the_flags_allow_is_said() -> None:
    given = [0] * 500 + [1] * 500
    found = judged(given, [0] * 450 + [1] * 550, ("ant", "bee"))  # 5 % flagged: a perfect model agrees with 95 %
    assert found.noise_rate == pytest.approx(0.05)
    assert cautions(found, 85.5) == []
    [line] = cautions(found, 84.4)
    assert "agree with 84 % of the held-out labels" in line
    assert "would agree with about 95 %" in line


@pytest.mark.parametrize("is_calibrated", [True, False])  # of fewer than 1,000 images, less than 100 are held out
@pytest.mark.parametrize(("num_samples", "num_wrong", "is_said"), [(999, 50, True), (1000, 50, False), (999, 0, False)])
def test_flags_of_few_samples_promise_too_much(
    num_samples: int, num_wrong: int, is_said: bool, is_calibrated: bool
) -> None:
    labels = np.arange(num_samples) % 3
    probs = torch.full((num_samples, 3), 0.005)
    probs[range(num_samples), labels] = 0.99
    labels[:num_wrong] = (labels[:num_wrong] + 1) % 3
    clean = probs.gather(1, torch.from_numpy(labels)[:, None]).T.double()
    judgement = Judgement(probs, 1 - clean, clean, probs, is_out_of_sample=is_calibrated)
    found = find_issues(judgement, labels, classes=("ant", "bee", "cat"))
    assert found.expected["is_calibrated"] is is_calibrated
    assert found.is_label_issue.sum() == num_wrong
    assert [line.startswith("There are only 999 samples.") for line in cautions(found, None)] == [True] * is_said
