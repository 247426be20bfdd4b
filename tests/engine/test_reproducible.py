"""Runs with one arithmetic. Oracle: a run whose C library was told that the processor has no AVX-512, bit for bit.

More cannot be shown on one processor; one without AVX-512 has the same instructions as these variables leave.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from toys import save_toy, settled, toy_job
from workshop import WITHOUT_WARMUP, spawn

from dividemix.engine.reproducible import VARIABLES, limited, require_limited
from dividemix.errors import InputError, OtherArithmeticError
from dividemix.planning.prepare import prepare

HAS_AVX2 = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def test_a_process_that_is_not_limited_says_which_variables_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(OtherArithmeticError, match="ATEN_CPU_CAPABILITY='avx2' ONEDNN_MAX_CPU_ISA='AVX2'"):
        prepare(toy_job(tmp_path, reproducible=True))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    require_limited("AVX2")
    with pytest.raises(InputError, match="torch uses AVX512"):  # loaded before they were set
        require_limited("AVX512")


@pytest.mark.parametrize(("name", "value"), [("compile", "always"), ("kernels", "own")])
def test_code_that_is_compiled_for_the_processor_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InputError, match=f"{name} is {value}: it cannot be used with reproducible"):
        prepare(toy_job(tmp_path, reproducible=True, **{name: value}))


def test_a_reproducible_run_has_one_thread_unless_another_number_is_given() -> None:
    assert limited({})["OMP_NUM_THREADS"] == "1"
    assert limited({"OMP_NUM_THREADS": "2", "MKL_CBWR": "AUTO"}) == {"OMP_NUM_THREADS": "2", **VARIABLES}


def test_variables_are_set_only_before_they_are_read() -> None:
    code = """
import os, sys
for name in sys.argv[1:]:
    __import__(name)
from dividemix.engine.reproducible import limit_arithmetic
limit_arithmetic()
print(os.environ.get("ATEN_CPU_CAPABILITY"))
"""
    assert spawn(code).stdout.split() == ["avx2"]
    assert spawn(code, "numpy").stdout.split() == ["None"]


@pytest.mark.slow
@pytest.mark.skipif(not HAS_AVX2, reason="the processor has no AVX2")
def test_a_reproducible_run_does_not_depend_on_the_processor_and_resumes(tmp_path: Path) -> None:
    """`resume` reads in config.yaml that the run is reproducible, and starts itself again with the variables."""
    save_toy(tmp_path)
    inherited = {name: value for name, value in os.environ.items() if name not in (*VARIABLES, "OMP_NUM_THREADS")}
    train = ["train", *WITHOUT_WARMUP, "--method", "cross_entropy", "--reproducible", "true", "--out"]

    def command(*words: str, **variables: str) -> None:
        line = [sys.executable, "-m", "dividemix", *words]
        done = subprocess.run(
            line, cwd=tmp_path, env=inherited | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    command(*train, "here")
    features = ",".join(f"-AVX512{name}" for name in ("F", "VL", "BW", "DQ", "CD"))
    command(*train, "there", GLIBC_TUNABLES=f"glibc.cpu.hwcaps={features}")
    assert settled(tmp_path / "here") == settled(tmp_path / "there")
    assert '"instruction_set": "AVX2"' in (tmp_path / "here" / "env.json").read_text()
    assert '"num_threads": 1' in (tmp_path / "here" / "env.json").read_text()
    before = settled(tmp_path / "here")
    (tmp_path / "here" / "summary.json").unlink()
    command("resume", "here")
    assert settled(tmp_path / "here") == before
