"""The completion scripts, at work in the shells that are installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from dividemix.cli import _COMMANDS, main
from dividemix.methods import METHODS
from dividemix.model import EXPORT_FORMATS

OFFER = (
    "source complete.bash\n"
    'offer() { COMP_WORDS=(dividemix "$@"); COMP_CWORD=$#; _dividemix; echo "${COMPREPLY[*]}"; }\n'
)


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_flags_and_values(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "complete.bash").write_text(script(capsys, "bash"))

    def offered(*words: str) -> list[str]:
        command = f"{OFFER}offer {' '.join(repr(word) for word in words)}"
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert set(offered("")) >= {*_COMMANDS, "--version"}
    assert offered("tra") == ["train"]
    assert offered("train", "--lr_sch") == ["--lr_schedule"]
    assert offered("train", "--lr_schedule", "") == ["step", "cosine"]
    assert offered("train", "--method", "") == list(METHODS)
    assert offered("train", "pho") == []  # then the shell offers files
    assert offered("data", "fe") == ["fetch"]
    assert offered("data", "fetch", "--ro") == ["--root"]
    assert offered("export", "x", "--format", "") == list(EXPORT_FORMATS)
    assert "onnx" in offered("export", "x", "--format", "on")


def test_zsh_takes_the_functions_of_bash(capsys: pytest.CaptureFixture[str]) -> None:
    first, *others = script(capsys, "zsh").splitlines()
    assert first == "autoload -U +X bashcompinit && bashcompinit"
    assert others == script(capsys, "bash").splitlines()


def test_fish_gets_a_line_for_each_command_and_flag_with_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    lines = script(capsys, "fish").splitlines()
    assert "complete -c dividemix -n '__fish_use_subcommand' -a train" in lines
    schedule = next(line for line in lines if "_from train' -l lr_schedule " in line)
    assert "-l lr_schedule -r -a 'step cosine' -d 'step: the rate" in schedule
    assert all(line.replace("\\'", "").count("'") % 2 == 0 for line in lines)


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_the_shell_accepts_its_script(capsys: pytest.CaptureFixture[str], tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "script").write_text(script(capsys, shell))
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
