"""Checkpoints against the tensors that were saved, with the process dying at each file operation of a save in turn."""

import contextlib
import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from injected import dying, full_disk

from dividemix.engine.checkpoint import load_checkpoint, save_checkpoint
from dividemix.errors import InputError


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    """Tensors of the kinds that a state has: float, bytes, whole numbers, none at all, not contiguous."""
    generator = torch.Generator().manual_seed(seed)
    return {
        "weight": torch.randn(3, 4, 2, 2, generator=generator).to(memory_format=torch.channels_last),
        "history": torch.rand(2, 0, 5, generator=generator, dtype=torch.float64),
        "generator": generator.get_state(),
        "num_batches": torch.tensor(seed),
        "transposed": torch.randn(2, 3, generator=generator).T,
    }


def save(folder: Path, seed: int, tag: str) -> None:
    save_checkpoint(folder, tensors(seed), tag=tag, facts={"epoch": seed, "name": "é"})


def holds(folder: Path, seed: int) -> bool:
    """Whether the folder's checkpoint is that of a seed, tensors and facts."""
    found, facts = load_checkpoint(folder)
    expected = tensors(seed)
    return (
        facts == {"epoch": seed, "name": "é"}
        and found.keys() == expected.keys()
        and all(found[name].dtype == expected[name].dtype for name in expected)
        and all(torch.equal(found[name], expected[name]) for name in expected)
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_round_trip(tmp_path: Path) -> None:
    save(tmp_path / "deep" / "last", 3, "epoch-0003")
    assert holds(tmp_path / "deep" / "last", 3)


def test_parameters_that_need_gradients_are_saved(tmp_path: Path) -> None:
    net = torch.nn.Linear(2, 3)
    save_checkpoint(tmp_path, dict(net.named_parameters()), tag="a", facts={})
    assert torch.equal(load_checkpoint(tmp_path)[0]["weight"], net.weight)


def test_a_save_replaces_the_one_before(tmp_path: Path) -> None:
    for seed in range(3):
        save(tmp_path, seed, f"epoch-{seed:04d}")
        assert holds(tmp_path, seed)
        assert len(names(tmp_path)) == 2


def test_equal_tensors_give_equal_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        save(tmp_path / folder, 1, "epoch-0001")
    assert names(tmp_path / "a") == names(tmp_path / "b")
    for name in names(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    save(tmp_path / "b", 2, "epoch-0001")
    assert [path.read_bytes() for path in sorted((tmp_path / "a").iterdir())] != [
        path.read_bytes() for path in sorted((tmp_path / "b").iterdir())
    ]


@pytest.mark.parametrize("new_tag", ["epoch-0002", "epoch-0001"], ids=["another tag", "the same tag"])
def test_a_process_that_dies_leaves_the_old_or_the_new_checkpoint_whole(tmp_path: Path, new_tag: str) -> None:
    outcomes = []
    for at in itertools.count():
        folder = tmp_path / str(at)
        save(folder, 1, "epoch-0001")
        with dying(folder, at) as fault:
            save(folder, 2, new_tag)
        assert holds(folder, 1) or holds(folder, 2), f"neither, after dying at operation {at}"
        outcomes.append(1 if holds(folder, 1) else 2)
        save(folder, 3, "epoch-0003")
        assert holds(folder, 3)
        assert len(names(folder)) == 2, "a stray file outlived the next save"
        if not fault.happened:
            break
    assert outcomes == sorted(outcomes)
    assert outcomes[0] == 1
    assert outcomes[-1] == 2
    assert len(outcomes) > 6  # both files are opened, written, renamed


def test_the_first_save_of_a_process_that_dies_leaves_none_or_all(tmp_path: Path) -> None:
    for at in itertools.count():
        folder = tmp_path / str(at)
        with dying(folder, at) as fault:
            save(folder, 1, "epoch-0001")
        with contextlib.ExitStack() as stack:
            if not (folder / "checkpoint.json").exists():
                stack.enter_context(pytest.raises(InputError, match="no checkpoint here"))
            assert holds(folder, 1)
        save(folder, 2, "epoch-0002")
        assert holds(folder, 2)
        assert len(names(folder)) == 2
        if not fault.happened:
            break


def test_a_full_disk_leaves_the_old_checkpoint_and_no_half_file(tmp_path: Path) -> None:
    for at in itertools.count():
        folder = tmp_path / str(at)
        save(folder, 1, "epoch-0001")
        with contextlib.suppress(OSError), full_disk(folder, at) as fault:
            save(folder, 2, "epoch-0002")
        assert holds(folder, 2 if not fault.happened else 1)
        assert not [name for name in names(folder) if name.startswith(".")]
        if not fault.happened:
            break
    assert at > 3


def test_killed_for_real_in_the_middle_of_a_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ends a child at each fsync: what `dying` imitates."""
    save(tmp_path, 1, "epoch-0001")
    for at in range(2):
        child = os.fork()
        if child == 0:
            steps = iter([lambda: None] * at + [lambda: os.kill(os.getpid(), signal.SIGKILL)])
            monkeypatch.setattr(os, "fsync", lambda _, steps=steps: next(steps)())
            save(tmp_path, 2, "epoch-0002")
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert holds(tmp_path, 1)
        assert len(names(tmp_path)) > 2
    save(tmp_path, 3, "epoch-0003")
    assert holds(tmp_path, 3)
    assert len(names(tmp_path)) == 2


def tensor_file(folder: Path) -> Path:
    return next(folder.glob("*.safetensors"))


def rewrite_index(folder: Path, **changes: object) -> None:
    path = folder / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "checkpoint.json").unlink(), "no checkpoint here"),
        (lambda folder: tensor_file(folder).unlink(), r"epoch-0001\S*\.safetensors is missing"),
        (lambda folder: tensor_file(folder).write_bytes(tensor_file(folder).read_bytes()[:-1]), "damaged"),
        (lambda folder: tensor_file(folder).write_bytes(b""), "damaged"),
        (lambda folder: tensor_file(folder).write_bytes(b"\x80\x02}q\x00." * 9), "damaged"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"format": 2, "ten'), "damaged"),
        (lambda folder: (folder / "checkpoint.json").write_bytes(b"\xff\xfe\x00"), "damaged"),
        (lambda folder: (folder / "checkpoint.json").write_text("[1]"), "damaged"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"format": 2}'), "damaged"),
        (lambda folder: rewrite_index(folder, tensors=5), "damaged"),
        (lambda folder: rewrite_index(folder, tensors="."), "damaged"),
        (lambda folder: rewrite_index(folder, format=1), "another version"),
        (lambda folder: rewrite_index(folder, format=3), "another version"),
        (lambda folder: rewrite_index(folder, format=None), "another version"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"format": 3, "shards": []}'), "another version"),
    ],
)
def test_what_is_missing_damaged_or_of_another_format_is_told(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    save(tmp_path, 1, "epoch-0001")
    damage(tmp_path)
    with pytest.raises(InputError, match=message) as caught:
        load_checkpoint(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no checkpoint here"):
        load_checkpoint(tmp_path / "nowhere")
