"""An ordinary epoch. Oracles: counts by hand, and the training that `warm_up` gives, to the bit."""

from tiny import TinyData, fit, same, start, tiny_nets, weights_of
from torch.nn import functional as F

from dividemix.engine.state import State
from dividemix.methods.cross_entropy import METHOD
from dividemix.methods.loop import train_one
from dividemix.methods.method import EpochReport, Method, MethodSettings, TrainingSets
from dividemix.methods.ordinary_epoch import ordinary_batches, ordinary_epoch


def test_an_ordinary_epoch_has_full_batches_of_all_samples() -> None:
    s, data = MethodSettings(batch_size=6), TinyData()
    batches = ordinary_batches(State.start(tiny_nets(), s), data, s)
    assert batches.shape == (4, 12)
    assert set(batches.flatten().tolist()) == set(range(40))
    s = MethodSettings(batch_size=6, balanced_batches=2)
    assert ordinary_batches(State.start(tiny_nets(), s), data, s).shape == (2, 12)


class Ordinary(Method):
    """Cross-entropy with a loss that looks the labels up."""

    def epoch(self, state: State, sets: TrainingSets, s: MethodSettings) -> EpochReport:
        """One epoch."""
        net, labels = state.nets[0], sets.train.labels
        return ordinary_epoch(state, sets.train, s, lambda index, x: F.cross_entropy(net(x), labels[index]))


def test_with_cross_entropy_it_is_the_epoch_of_ordinary_training() -> None:
    for balanced_batches in (0, 2):
        s, data = MethodSettings(epochs=1, batch_size=6, lr=0.05, balanced_batches=balanced_batches), TinyData()
        expected, state = start(METHOD, s, data), start(Ordinary(), s, data)
        (report,) = fit(METHOD, expected, data, s)
        assert train_one(Ordinary(), state, TrainingSets(data), s).losses == report.losses
        assert same(weights_of(expected.nets[0]), weights_of(state.nets[0]))
