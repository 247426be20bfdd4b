"""Work shared by processes. The oracle is one process that computes everything itself."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from shared_trainings import after_step, batchnorm_net, fine_tune, train_every_method, weight_norm_net
from together import run_together
from torch import Tensor


@pytest.mark.slow
def test_every_method_trains_as_one_process_does(tmp_path: Path) -> None:
    by_one = train_every_method()
    by_each = run_together("shared_trainings:train_every_method", 3, tmp_path)  # so that shares are uneven
    for of_process in by_each:
        assert of_process.keys() == by_one.keys()
        for name, expected in by_one.items():
            assert of_process[name]["draws"] == expected["draws"], name
            assert _numbers(of_process[name]) == pytest.approx(_numbers(expected), rel=1e-6, abs=1e-7), name


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_and_four_processes_compute_the_bits_of_one_in_float32(tmp_path: Path) -> None:
    by_one, *by_several = (
        run_together("shared_trainings:train_every_method", num_processes, tmp_path, "single")
        for num_processes in (1, 2, 4)
    )
    for of_process in itertools.chain(*by_several):
        assert of_process == by_one[0]


@pytest.mark.slow
def test_texts_are_fine_tuned_as_by_one_process(tmp_path: Path) -> None:
    _assert_equal(run_together("shared_trainings:fine_tune", 3, tmp_path), fine_tune())


@pytest.mark.slow
def test_with_dropout_all_processes_have_the_same_weights(tmp_path: Path) -> None:
    first, *others = run_together("shared_trainings:fine_tune", 3, tmp_path, "0.3")
    _assert_equal(others, first)


@pytest.mark.slow
def test_batchnorm_uses_the_rows_of_each_process(tmp_path: Path) -> None:
    """The oracle computes each share of the rows by itself, and takes the mean of the running statistics."""
    net = batchnorm_net()

    def by_shares(rows: Tensor) -> Tensor:
        before = {name: buffer.clone() for name, buffer in net.named_buffers()}
        after, outputs = list[dict[str, Tensor]](), []
        for share in rows.tensor_split(3):
            for name, buffer in net.named_buffers():
                buffer.data.copy_(before[name])
            outputs.append(net(share))
            after.append({name: buffer.clone() for name, buffer in net.named_buffers()})
        for name, buffer in net.named_buffers():
            buffer.data.copy_(torch.stack([one[name].double() for one in after]).mean(dim=0))
        return torch.cat(outputs)

    _assert_equal(run_together("shared_trainings:step_with_own_statistics", 3, tmp_path), after_step(net, by_shares))


@pytest.mark.slow
def test_synchronised_batchnorm_is_that_of_one_process(tmp_path: Path) -> None:
    net = batchnorm_net()
    _assert_equal(run_together("shared_trainings:step_with_common_statistics", 3, tmp_path), after_step(net, net))


@pytest.mark.slow
@pytest.mark.parametrize("num_processes", [2, 3])  # in blocks, and without
def test_weights_that_are_made_of_others_have_the_gradients_of_one_process(num_processes: int, tmp_path: Path) -> None:
    net = weight_norm_net()
    by_each = run_together("shared_trainings:step_with_weights_made_of_others", num_processes, tmp_path)
    _assert_equal(by_each, after_step(net, net))


def _assert_equal(by_each: list[dict[str, list[float]]], expected: dict[str, list[float]]) -> None:
    for of_process in by_each:
        assert of_process.keys() == expected.keys()
        for name, values in expected.items():
            # Adam turns the rounding of a gradient that is zero (of the bias of keys) into steps of 1e-12.
            assert of_process[name] == pytest.approx(values, rel=1e-9, abs=1e-10), name


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in _numbers(value[key])]
    if isinstance(value, list):
        return [number for each in value for number in _numbers(each)]
    return [float(value)]
