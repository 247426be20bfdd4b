"""Stages of a training that begin again: with the first weights, and with a learning rate schedule of their own."""

from dividemix.engine.settings import ScheduleSettings
from dividemix.engine.state import State, under

_FIRST = "first_weights"  # State.buffers: first_weights.K.NAME


def keep_first_weights(state: State) -> None:
    """Keep the nets' weights for later, before the first epoch; pretrained ones are loaded by then."""
    if state.epoch == 0:
        for k, net in enumerate(state.nets):
            for name, tensor in net.state_dict().items():
                state.buffers[f"{_FIRST}.{k}.{name}"] = tensor.detach().clone()


def restart(state: State) -> None:
    """Give all nets their first weights, and forget the momentum."""
    for k, learner in enumerate(state.learners):
        learner.net.load_state_dict(under(f"{_FIRST}.{k}.", state.buffers))
        learner.optimizer.state.clear()


def set_rate(state: State, s: ScheduleSettings, num_done: int, length: int) -> None:
    """Set the learning rate of a stage after `num_done` of its `length` epochs: the whole schedule, compressed."""
    for learner in state.learners:
        for group in learner.optimizer.param_groups:
            group["lr"] = s.rate_at(s.epochs * num_done // length)
