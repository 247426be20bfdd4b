"""The share of wrong labels, estimated from the losses."""

from dividemix.data.training_data import TrainingData
from dividemix.engine.state import State
from dividemix.methods.evaluation import judge_by_loss


def estimated_noise_rate(state: State, data: TrainingData) -> float:
    """The mean of 1 - w_i over the samples, taken as 0 where the nets predict the given label; at most 0.95."""
    judgement = judge_by_loss(state, data)
    disagrees = judgement.pred_probs.argmax(dim=1) != data.labels.cpu()
    return min(float(((1 - judgement.clean_prob.mean(dim=0)) * disagrees).mean()), 0.95)
