"""The schedule of methods that correct labels. Oracle: the published numbers of epochs, rates by hand."""

import pytest

from dividemix.errors import InputError
from dividemix.methods.three_stages import StagedSettings, three_phases


def test_320_epochs_are_70_130_and_120() -> None:
    phases = three_phases(StagedSettings(epochs=320))
    assert [phase.num_epochs for phase in phases] == [70, 130, 120]
    assert [phase.selects for phase in phases] == [False, False, True]


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (70 / 320, 200 / 320)])
def test_the_stages_have_all_epochs_however_few(shares: tuple[float, float]) -> None:
    for epochs in range(1, 50):
        s = StagedSettings(epochs=epochs, correct_from=shares[0], final_from=shares[1])
        numbers = [phase.num_epochs for phase in three_phases(s)]
        assert sum(numbers) == epochs
        assert min(numbers) >= 0
        assert all(s.learning_rate(epoch) > 0 for epoch in range(epochs))


def test_the_rate_is_constant_until_the_final_stage_has_its_own() -> None:
    s = StagedSettings(epochs=320, lr=0.06, final_lr=0.2, lr_drop_epoch=10)
    rates = [s.learning_rate(epoch) for epoch in range(320)]
    assert rates == pytest.approx([0.06] * 200 + [0.2] * 40 + [0.02] * 40 + [0.002] * 40)
    assert StagedSettings(epochs=320, lr=0.08).learning_rate(200) == pytest.approx(0.2)


def test_stages_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match=r"^correct_from is 0\.7: it must not exceed final_from \(0\.625\); set both$"):
        StagedSettings(correct_from=0.7)
