"""L-BFGS. Oracles: the minimum of a quadratic form by solving its equations, and a slope of zero."""

import torch
from torch import Tensor

from dividemix.methods.lbfgs import minimise


def test_the_minimum_of_a_quadratic_form_solves_its_equations() -> None:
    generator = torch.Generator().manual_seed(0)
    root, b = torch.randn(2, 12, 12, generator=generator, dtype=torch.float64)
    matrix, b = root @ root.T + torch.eye(12), b[0]
    # The value at the minimum is far from zero: the relative decrease that ends the search is one of it.

    def value(x: Tensor) -> float:
        return float(x @ matrix @ x / 2 - b @ x)

    found = minimise(lambda x: (value(x), matrix @ x - b), torch.zeros(12).double(), 200)
    best = torch.linalg.solve(matrix, b)
    assert value(found) - value(best) < 1e-3 * abs(value(best))


def test_a_convex_function_is_flat_at_the_end() -> None:
    """A logistic loss with a small penalty; the oracle of its slope is autograd's."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(200, 5, generator=generator, dtype=torch.float64)

    def loss(place: Tensor) -> tuple[float, Tensor]:
        place = place.detach().requires_grad_()
        value = torch.nn.functional.softplus(rows @ place - rows[:, 0]).mean() + 0.05 * place @ place
        (slope,) = torch.autograd.grad(value, place)
        return value.item(), slope

    assert loss(torch.zeros(5).double())[1].norm() > 0.1
    assert loss(minimise(loss, torch.zeros(5).double(), 100))[1].norm() < 0.005


def test_no_step_makes_the_value_larger_and_none_is_made_from_the_minimum() -> None:
    values: list[float] = []

    def bowl(place: Tensor) -> tuple[float, Tensor]:
        return float(place @ place), 2 * place

    for num_steps in range(4):
        values.append(bowl(minimise(bowl, torch.full((3,), 5.0), num_steps))[0])
    assert values == sorted(values, reverse=True)
    assert values[0] == 75
    torch.testing.assert_close(minimise(bowl, torch.zeros(3), 5), torch.zeros(3))
