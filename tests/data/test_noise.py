"""Label noise. Oracles: counts and probabilities from each kind's definition, and for matrices the matrix itself.

Statistical bounds hold at fixed seeds; each is the 99.9 % quantile of chi-square, or about five standard deviations.
"""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dividemix.data.noise import KINDS, NoiseSpec, NoisyLabels, add_noise, parse_noise, save_noise
from dividemix.errors import InputError

SIMILAR = {9: 1, 2: 0, 4: 7, 3: 5, 5: 3}  # the paper's map for CIFAR-10
CHI2_999 = {8: 26.12, 9: 27.88}  # by degrees of freedom
TRUE = np.random.default_rng(0).integers(10, size=20_000)
RATE_KINDS = ("symmetric", "symmetric_other", "asymmetric", "pair_flip")


def noise(
    text: str,
    true_labels: NDArray[Any] = TRUE,
    *,
    num_classes: int = 10,
    seed: int = 1,
    similar: Mapping[int, int] | None = SIMILAR,
) -> NoisyLabels:
    return add_noise(true_labels, parse_noise(text), num_classes=num_classes, seed=seed, similar=similar)


def chi_square(counts: NDArray[np.int64], expected: float | NDArray[np.float64]) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def message(text: str, **arguments: Any) -> str:
    """The line with which this noise is refused; fails where it is not one line."""
    with pytest.raises(InputError) as caught:
        noise(text, **arguments)
    line = str(caught.value)
    assert line
    assert len(line.splitlines()) == 1
    return line


# The kinds


def test_symmetric_draws_over_all_classes() -> None:
    """At rate 1 every label is a fresh uniform draw, whatever the true class, so 1 in C stays right."""
    noisy = noise("symmetric:1")
    assert chi_square(np.bincount(noisy.labels, minlength=10), 2_000) < CHI2_999[9]
    steps = (noisy.labels - TRUE) % 10
    assert chi_square(np.bincount(steps, minlength=10), 2_000) < CHI2_999[9]


@pytest.mark.parametrize("num_classes", [2, 10, 100])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_symmetric_is_wrong_in_all_but_one_of_c_draws(num_classes: int, rate: float) -> None:
    true = np.arange(20_000) % num_classes
    noisy = noise(f"symmetric:{rate}", true, num_classes=num_classes)
    wrong_prob = (num_classes - 1) / num_classes
    deviation = np.sqrt(rate * wrong_prob * (1 - wrong_prob) / 20_000)
    assert abs(noisy.true_rate - rate * wrong_prob) < 5 * deviation
    assert noisy.nominal_rate == rate


@pytest.mark.parametrize("kind", ["symmetric_other", "pair_flip"])
@pytest.mark.parametrize("rate", [0, 0.001, 0.29, 0.4, 0.5, 1])
@pytest.mark.parametrize("num_samples", [1, 7, 100, 1001])
def test_exactly_the_rounded_share_changes(kind: str, rate: float, num_samples: int) -> None:
    true = TRUE[:num_samples]
    assert (noise(f"{kind}:{rate}", true).labels != true).sum() == round(rate * num_samples)


def test_symmetric_other_is_uniform_over_the_other_classes() -> None:
    steps = (noise("symmetric_other:1").labels - TRUE) % 10
    counts = np.bincount(steps, minlength=10)
    assert counts[0] == 0
    assert chi_square(counts[1:], 20_000 / 9) < CHI2_999[8]


def test_pair_flip_goes_to_the_next_class() -> None:
    labels = noise("pair_flip:0.3").labels
    changed = labels != TRUE
    np.testing.assert_array_equal(labels[changed], (TRUE[changed] + 1) % 10)
    assert {9, 0} <= set(TRUE[changed])  # the step around the end is among them


def test_asymmetric_moves_mapped_classes_only() -> None:
    """Of each mapped class about `rate` moves, all to the class it maps to; the others keep every label."""
    noisy = noise("asymmetric:0.4")
    for true_class in range(10):
        row = noisy.transition[true_class]
        if true_class in SIMILAR:
            assert row[true_class] + row[SIMILAR[true_class]] == pytest.approx(1)
            assert row[SIMILAR[true_class]] == pytest.approx(0.4, abs=5 * np.sqrt(0.24 / 1_900))
        else:
            assert row[true_class] == 1
    everywhere = noise("asymmetric:1")
    np.testing.assert_array_equal(everywhere.labels, [SIMILAR.get(label, label) for label in TRUE])


def test_asymmetric_chooses_among_all_samples() -> None:
    """The chosen, mapped or not, are round(rate * N): those pair_flip moves with the same seed."""
    chosen = noise("pair_flip:0.4").labels != TRUE
    moved = noise("asymmetric:0.4").labels != TRUE
    np.testing.assert_array_equal(moved, chosen & np.isin(TRUE, list(SIMILAR)))


def test_none_keeps_a_copy_of_the_labels() -> None:
    noisy = noise("none")
    np.testing.assert_array_equal(noisy.labels, TRUE)
    assert not np.shares_memory(noisy.labels, TRUE)
    assert noisy.true_rate == noisy.nominal_rate == 0
    np.testing.assert_array_equal(noisy.transition, np.eye(10))


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".npy"])
def test_matrix_frequencies_follow_the_matrix(tmp_path: Path, suffix: str) -> None:
    """Oracle: the matrix. Each row passes chi-square, and what has probability 0 never happens."""
    matrix = np.array([[0.7, 0.0, 0.3, 0.0], [0.0, 0.0, 1.0, 0.0], [0.25] * 4, [0.1, 0.0, 0.0, 0.9]])
    path = tmp_path / f"flips{suffix}"
    if suffix == ".npy":
        np.save(path, matrix)
    else:
        np.savetxt(path, matrix, delimiter="," if suffix == ".csv" else "\t")
    true = np.repeat(np.arange(4), [4_000, 3_000, 2_000, 1_000])
    noisy = noise(f"matrix:{path}", true, num_classes=4)
    counts = noisy.transition * np.bincount(true)[:, None]
    expected = matrix * np.bincount(true)[:, None]
    assert (counts[matrix == 0] == 0).all()
    for row in range(4):
        possible = matrix[row] > 0
        assert chi_square(counts[row, possible], expected[row, possible]) < 16.27  # 3 degrees of freedom
    assert noisy.nominal_rate == pytest.approx((0.3 * 4_000 + 1 * 3_000 + 0.75 * 2_000 + 0.1 * 1_000) / 10_000)
    assert noisy.true_rate == pytest.approx(noisy.nominal_rate, abs=0.02)


def test_matrix_text_may_mix_separators_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "swap.TXT"
    path.write_text("\ufeff0, 1,\n\n1\t0\n", encoding="utf-8")
    np.testing.assert_array_equal(noise(f"matrix:{path}", TRUE % 2, num_classes=2).labels, 1 - TRUE % 2)


# A pure function


@pytest.mark.parametrize("kind", RATE_KINDS)
def test_equal_seeds_equal_labels_other_seeds_other_labels(kind: str) -> None:
    first, again, other = (noise(f"{kind}:0.4", seed=seed).labels for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_neither_the_input_nor_the_global_stream_is_touched() -> None:
    true = TRUE.copy()
    np.random.seed(0)
    before = np.random.get_state(legacy=False)["state"]["key"].copy()
    first = noise("symmetric:0.5", true).labels
    np.testing.assert_array_equal(true, TRUE)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], before)
    np.random.seed(5)
    np.testing.assert_array_equal(noise("symmetric:0.5", true).labels, first)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_the_labels_type_does_not_matter(dtype: type[np.integer[Any]]) -> None:
    labels = noise("symmetric_other:0.4", TRUE.astype(dtype)).labels
    assert labels.dtype == np.int64
    np.testing.assert_array_equal(labels, noise("symmetric_other:0.4").labels)


def test_which_samples_are_chosen_does_not_depend_on_their_labels() -> None:
    shuffled = np.random.default_rng(1).permutation(TRUE)
    for kind in ("symmetric_other", "pair_flip"):
        moved, moved_too = noise(f"{kind}:0.4").labels != TRUE, noise(f"{kind}:0.4", shuffled).labels != shuffled
        np.testing.assert_array_equal(moved, moved_too)


@pytest.mark.parametrize("kind", RATE_KINDS)
def test_a_higher_rate_contains_the_lower(kind: str) -> None:
    low, high = noise(f"{kind}:0.2").labels, noise(f"{kind}:0.5").labels
    changed = low != TRUE
    assert changed.any()
    np.testing.assert_array_equal(low[changed], high[changed])


@given(
    kind=st.sampled_from(RATE_KINDS),
    rate=st.floats(0, 1),
    num_classes=st.integers(2, 12),
    raw=st.lists(st.integers(0, 11), min_size=1, max_size=60),
    seed=st.integers(0, 2**64),
)
def test_labels_stay_in_range_and_rates_are_counted(
    kind: str, rate: float, num_classes: int, raw: list[int], seed: int
) -> None:
    true = np.array(raw) % num_classes
    similar = {0: num_classes - 1}
    noisy = add_noise(true, NoiseSpec(kind, rate), num_classes=num_classes, seed=seed, similar=similar)
    assert noisy.labels.shape == true.shape
    assert noisy.labels.min() >= 0
    assert noisy.labels.max() < num_classes
    assert noisy.true_rate == np.mean(noisy.labels != true)
    assert (noisy.labels != true).sum() <= round(rate * len(true))
    assert (noisy.kind, noisy.nominal_rate, noisy.seed) == (kind, rate, seed)
    for i in range(num_classes):
        given_labels = noisy.labels[true == i]
        expected = [(given_labels == j).mean() if given_labels.size else 0 for j in range(num_classes)]
        np.testing.assert_allclose(noisy.transition[i], expected)


def test_noise_imports_no_torch() -> None:
    check = "import sys, dividemix.data.noise; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


# Noise files


@pytest.fixture
def noise_file(tmp_path: Path) -> Path:
    path = tmp_path / "noise.json"
    save_noise(path, noise("symmetric:0.5", TRUE[:100]), TRUE[:100])
    return path


def test_saved_noise_comes_back_equal(noise_file: Path) -> None:
    """Kind, rate and seed are those of the file, whatever seed the loading run has."""
    saved, loaded = noise("symmetric:0.5", TRUE[:100]), noise(f"file:{noise_file}", TRUE[:100], seed=99)
    np.testing.assert_array_equal(loaded.labels, saved.labels)
    np.testing.assert_array_equal(loaded.transition, saved.transition)
    for name in ("kind", "nominal_rate", "true_rate", "seed"):
        assert getattr(loaded, name) == getattr(saved, name)
    assert loaded.labels.dtype == np.int64


def test_noise_file_is_readable_json_with_the_documented_fields(noise_file: Path) -> None:
    text = noise_file.read_text()
    content = json.loads(text)
    fingerprint = hashlib.sha256(b"".join(int(label).to_bytes(8, "little") for label in TRUE[:100])).hexdigest()
    labels = content.pop("labels")
    assert labels == noise("symmetric:0.5", TRUE[:100]).labels.tolist()
    assert content == {
        "format_version": 1,
        "kind": "symmetric",
        "nominal_rate": 0.5,
        "seed": 1,
        "num_classes": 10,
        "true_labels_sha256": fingerprint,
    }
    assert len(text.splitlines()) == 9  # a line for each field, the labels in one


def test_saving_again_gives_the_same_bytes_and_leaves_nothing_else(noise_file: Path) -> None:
    before = noise_file.read_bytes()
    save_noise(noise_file, noise(f"file:{noise_file}", TRUE[:100]), TRUE[:100].astype(np.uint8))
    assert noise_file.read_bytes() == before
    assert list(noise_file.parent.iterdir()) == [noise_file]


def test_a_failed_save_keeps_the_old_file_and_leaves_nothing(noise_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = noise_file.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(InputError, match=r"noise\.json cannot be written: No space left on device"):
        save_noise(noise_file, noise("pair_flip:1", TRUE[:100]), TRUE[:100])
    assert noise_file.read_bytes() == before
    assert list(noise_file.parent.iterdir()) == [noise_file]


@pytest.mark.parametrize("where", ["nowhere/noise.json", ""])
def test_saving_where_no_file_can_be_is_one_line(tmp_path: Path, where: str) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        save_noise(tmp_path / where, noise("none"), TRUE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"true_labels": TRUE[:99]}, "is for 100 samples, the data has 99"),
        ({"true_labels": TRUE[1:101]}, "is for other data"),
        ({"true_labels": np.sort(TRUE[:100])}, "or their order"),
        ({"true_labels": TRUE[:100], "num_classes": 11}, "is for 10 classes, the data has 11"),
    ],
)
def test_noise_of_other_data_is_refused(noise_file: Path, arguments: dict[str, Any], problem: str) -> None:
    line = message(f"file:{noise_file}", **arguments)
    assert problem in line
    assert str(noise_file) in line


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("format_version", 2, "format_version is 2: must be 1"),
        ("format_version", None, "format_version is None"),
        ("kind", 3, "kind"),
        ("nominal_rate", float("nan"), "nominal_rate"),
        ("nominal_rate", "0.5", "nominal_rate"),
        ("seed", -1, "seed"),
        ("seed", True, "seed"),
        ("num_classes", 10.0, "num_classes"),
        ("true_labels_sha256", None, "true_labels_sha256"),
        ("labels", [], "labels"),
        ("labels", [True] * 100, "labels"),
        ("labels", [1.5] * 100, "labels"),
        ("labels", [[1]] * 100, "labels"),
        ("labels", [-1] * 100, "labels must be from 0 to 9"),
        ("labels", [10] * 100, "labels must be from 0 to 9"),
        ("labels", [10**30] * 100, "labels must be from 0 to 9"),
    ],
)
def test_a_damaged_field_is_named(noise_file: Path, field: str, value: object, problem: str) -> None:
    content = json.loads(noise_file.read_text())
    for changed in (content | {field: value}, {name: content[name] for name in content if name != field}):
        noise_file.write_text(json.dumps(changed))
        line = message(f"file:{noise_file}", true_labels=TRUE[:100])
        assert str(noise_file) in line
        assert field in line
        if field in changed:
            assert problem in line


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"[1, 2]", b"null", b"[" * 100_000, b'{"seed": ' + b"9" * 9_999]
)
def test_what_is_no_noise_file_is_refused(noise_file: Path, content: bytes) -> None:
    noise_file.write_bytes(content)
    assert str(noise_file) in message(f"file:{noise_file}", true_labels=TRUE[:100])


def test_a_file_of_a_terabyte_is_refused_before_it_is_read(noise_file: Path) -> None:
    os.truncate(noise_file, 10**12)  # which takes no space on the disk
    assert f"{noise_file}: larger than" in message(f"file:{noise_file}", true_labels=TRUE[:100])


def test_every_truncation_is_noticed(noise_file: Path) -> None:
    whole = noise_file.read_bytes()
    for length in range(0, len(whole) - 2, 7):  # the last two bytes: closing brace, newline
        noise_file.write_bytes(whole[:length])
        assert "damaged" in message(f"file:{noise_file}", true_labels=TRUE[:100])


# What a user can get wrong


@pytest.mark.parametrize("kind", ["file", "matrix"])
def test_unreadable_paths_are_named(tmp_path: Path, kind: str) -> None:
    missing, folder = tmp_path / "missing.csv", tmp_path / "folder.npy"
    folder.mkdir()
    for path in (missing, folder):
        line = message(f"{kind}:{path}")
        assert str(path) in line
        assert "cannot be read" in line


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("0.5 0.5\n0.4 0.5\n", "row 2 sums to 0.9"),
        ("0.5 0.500002\n0 1\n", "row 1 sums to 1.000002"),
        ("1.5 -0.5\n0 1\n", "row 1 has 1.5"),
        ("1 0\n1.2 -0.2\n", "row 2 has 1.2"),
        ("1 0\nnan 1\n", "row 2 has nan"),
        ("1 0\ninf 0\n", "row 2 has inf"),
        ("1 0 0\n0 1 0\n", "shape (2, 3): must be (2, 2)"),
        ("1 0 0\n0 1 0\n0 0 1\n", "shape (3, 3)"),
        ("1 0\n1\n", "row 2 has 1 numbers, the first row 2"),
        ("1 0\n0 one\n", "row 2: could not convert string to float: 'one'"),
        ("", "shape (0,)"),
    ],
)
def test_a_bad_matrix_names_file_and_row(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "flips.csv"
    path.write_text(content)
    line = message(f"matrix:{path}", true_labels=TRUE % 2, num_classes=2)
    assert problem in line
    assert str(path) in line


def test_a_row_within_a_millionth_of_one_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "thirds.csv"
    path.write_text("0.3333333 0.3333333 0.3333333\n" * 3)
    assert set(noise(f"matrix:{path}", TRUE % 3, num_classes=3).labels) == {0, 1, 2}


def test_extreme_draws_meet_no_impossible_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least and the greatest double in [0, 1), on rows that begin or end in 0 and sum to a little less than 1."""

    class Extremes:
        def random(self, size: int) -> NDArray[np.float64]:
            return np.resize([0.0, 1 - 2.0**-53], size)

    monkeypatch.setattr("numpy.random.Generator", lambda bits: Extremes())
    path = tmp_path / "edges.csv"
    path.write_text("0 0.9999995 0\n0 0.5 0.4999995\n0.4999995 0.5 0\n")
    labels = noise(f"matrix:{path}", np.repeat([0, 1, 2], 2), num_classes=3).labels
    np.testing.assert_array_equal(labels, [1, 1, 1, 2, 0, 1])


class Trap:
    """A pickle that would create a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_a_pickle_in_an_npy_matrix_is_refused_and_not_run(tmp_path: Path) -> None:
    path, trace = tmp_path / "flips.npy", tmp_path / "trace"
    np.save(path, np.array([[Trap(trace)]], dtype=object), allow_pickle=True)
    assert str(path) in message(f"matrix:{path}")
    assert not trace.exists()


def test_other_npy_contents_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "flips.npy"
    for array in (np.array(1.0), np.eye(10, dtype=complex), np.eye(10, dtype=bool), np.full((10, 10), "a")):
        np.save(path, array)
        assert str(path) in message(f"matrix:{path}")
    np.save(path, np.eye(10))
    whole = path.read_bytes()
    for length in range(0, len(whole), 9):
        path.write_bytes(whole[:length])
        assert "damaged" in message(f"matrix:{path}")
    for position in range(128):  # every byte of the header
        path.write_bytes(whole[:position] + b"(" + whole[position + 1 :])
        with contextlib.suppress(InputError):  # some bytes do not matter; no other exception may come out
            noise(f"matrix:{path}")


def test_a_matrix_of_another_suffix_is_refused(tmp_path: Path) -> None:
    assert ".csv, .txt, .npy" in message(f"matrix:{tmp_path / 'flips.xlsx'}")


@pytest.mark.parametrize("kind", RATE_KINDS)
@pytest.mark.parametrize("rate", ["-0.1", "1.1", "50", "nan", "inf", "-inf", "half", "0.5:0.5", "50%", " "])
def test_what_is_no_rate_is_refused(kind: str, rate: str) -> None:
    assert f"the rate of {kind} noise is" in message(f"{kind}:{rate}")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_a_missing_rate_or_file_is_refused(kind: str) -> None:
    for text in (kind, f"{kind}:"):
        assert f"use {kind}:" in message(text)


@pytest.mark.parametrize("text", ["", "uniform:0.5", ":0.5", "two\nlines:0.5"])
def test_an_unknown_kind_lists_the_known(text: str) -> None:
    line = message(text)
    for kind in KINDS:
        assert kind in line


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("symetric:0.5", "symmetric:0.5"),
        ("Symmetric", "symmetric:RATE"),
        ("none:0.5", "none"),
        ("0.2", "symmetric:0.2"),
    ],
)
def test_a_kind_that_is_nearly_known_is_suggested(text: str, meant: str) -> None:
    assert message(text) == f"noise {text!r} is unknown: did you mean {meant}?"


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "uniform"},
        {"kind": "symmetric", "rate": float("nan")},
        {"kind": "symmetric", "rate": 0.5, "path": Path("a")},
        {"kind": "matrix"},
        {"kind": "file", "rate": 0.5},
    ],
)
def test_a_specification_checks_itself(arguments: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        NoiseSpec(**arguments)


def test_specifications_are_parsed_into_their_parts() -> None:
    assert parse_noise("none") == NoiseSpec("none", 0.0, None)
    assert parse_noise("symmetric:0.5") == NoiseSpec("symmetric", 0.5, None)
    assert parse_noise("pair_flip:1e-1") == NoiseSpec("pair_flip", 0.1, None)
    assert parse_noise("file:a:b/c.json") == NoiseSpec("file", 0.0, Path("a:b/c.json"))


def test_asymmetric_without_a_map_says_what_else_there_is() -> None:
    line = message("asymmetric:0.4", similar=None)
    assert "does not say which classes are similar: use pair_flip:RATE (each class is mistaken" in line
    assert "maps class 9 to 1: classes are 0 to 4" in message("asymmetric:0.4", true_labels=TRUE % 5, num_classes=5)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"num_classes": 9}, "labels go from 0 to 9"),
        ({"true_labels": TRUE - 1}, "labels go from -1 to 8"),
        ({"num_classes": 1}, "two classes"),
        ({"seed": -1}, "seed"),
        ({"true_labels": TRUE.astype(float)}, "float64"),
        ({"true_labels": TRUE[:, None]}, "(20000, 1)"),
        ({"true_labels": TRUE[:0]}, "N >= 1"),
    ],
)
def test_unfit_labels_classes_and_seeds_are_refused(arguments: dict[str, Any], problem: str) -> None:
    assert problem in message("symmetric:0.5", **arguments)
