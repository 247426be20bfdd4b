"""Nets and methods that are the user's own code: imported if the user names them, not because a file does."""

import sys
from pathlib import Path

import pytest
import yaml
from PIL import Image
from workshop import QUICK, WITHOUT_WARMUP, fail, printed, succeed

from dividemix.cli import main
from dividemix.engine.checkpoint import load_checkpoint

pytestmark = pytest.mark.usefixtures("workshop")

NET = """
from pathlib import Path
from torch import nn

Path("imported").touch()

def make(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, num_classes))
"""
METHOD = """
from dataclasses import dataclass
from pathlib import Path

from dividemix.methods import METHODS
from dividemix.methods.method import Method, MethodSettings
from dividemix.settings import setting

Path("imported").touch()

@dataclass(frozen=True, kw_only=True)
class OwnSettings(MethodSettings):
    patience: int = setting(3, "how long to wait", low=0)

class Own(Method):
    settings = OwnSettings

    def epoch(self, state, sets, s):
        assert s.patience == 7
        return METHODS["cross_entropy"].epoch(state, sets, s)

OBJECT = Own()
"""
OWN = ["--method", "their_methods:OBJECT", "--patience", "7"]
REFUSED = "its method 'their_methods:OBJECT' is Python code that is not part of dividemix and would be run"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Code in the working directory; the file whose presence shows that it was imported."""
    (tmp_path / "their_nets.py").write_text(NET)
    (tmp_path / "their_methods.py").write_text(METHOD)
    forget_code(monkeypatch)
    return tmp_path / "imported"


def forget_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: the modules have not been imported yet."""
    for name in ("their_nets", "their_methods"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_net_factory_of_the_user(code: Path, tmp_path: Path) -> None:
    succeed(*QUICK, "--net", "their_nets:make", "--out", "run")
    assert "nets.1.1.weight" in load_checkpoint(tmp_path / "run" / "checkpoints" / "last")[0]


@pytest.mark.parametrize(
    "command",
    [["evaluate", "run"], ["train", "--resume", "--out", "run"], ["predict", "run", "image.png", "--out", "table.csv"]],
)
def test_a_net_that_a_directory_names_is_imported_only_by_who_trusts_it(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    Image.new("L", (8, 8)).save(tmp_path / "image.png")
    succeed(*QUICK, "--net", "their_nets:make", "--out", "run")
    forget_code(monkeypatch)
    code.unlink()
    assert "its net 'their_nets:make' is Python code" in fail(capsys, command)
    assert not code.exists()
    assert main([*command, "--trust_net"]) == 0
    assert code.exists()


def test_a_method_of_the_user_trains_with_its_own_settings(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    succeed(*WITHOUT_WARMUP, *OWN, "--out", "run")
    assert "their_methods:OBJECT on toy.npz: 40 images of 4 classes" in capsys.readouterr().out
    stored = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert (stored["method"], stored["patience"]) == ("their_methods:OBJECT", 7)
    assert "nets.1.head.3.weight" not in load_checkpoint(tmp_path / "run" / "checkpoints" / "last")[0]  # one net


def test_the_settings_of_a_users_method_are_in_the_help(code: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", *OWN[:2], "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "settings of their_methods:OBJECT; in brackets the default" in text
    assert "--patience INT how long to wait [3]" in text
    assert "lambda_u" not in text


def test_a_net_that_a_file_of_settings_names_is_imported_only_by_who_trusts_it(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 7: `train --config FILE` imported the net that the file names."""
    (tmp_path / "settings.yaml").write_text(printed(capsys, *QUICK, "--net", "their_nets:make"))
    forget_code(monkeypatch)
    code.unlink(missing_ok=True)
    by_file = ["train", "--config", "settings.yaml", "--out", "run"]
    assert "settings.yaml: its net 'their_nets:make' is Python code" in fail(capsys, by_file)
    assert not code.exists()
    assert main([*by_file, "--trust_net"]) == 0
    assert code.exists()


@pytest.mark.parametrize("command", [["evaluate", "run"], ["train", "--resume", "--out", "run"]])
def test_a_method_that_a_directory_names_is_imported_only_by_who_trusts_it(
    code: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    succeed(*WITHOUT_WARMUP, *OWN, "--out", "run")
    forget_code(monkeypatch)
    code.unlink()
    assert f"run/config.yaml: {REFUSED}" in fail(capsys, command)
    assert not code.exists()
    assert main([*command, "--trust_net"]) == 0
    assert code.exists()


def test_naming_another_method_is_no_trust_in_that_of_the_directory(
    code: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    succeed(*WITHOUT_WARMUP, *OWN, "--out", "run")
    forget_code(monkeypatch)
    code.unlink()
    resume = ["train", "--resume", "--out", "run"]
    assert f"run/config.yaml: {REFUSED}" in fail(capsys, [*resume, "--method", "cross_entropy"])
    assert not code.exists()
    assert main([*resume, *OWN]) == 0  # the user named the same one


def test_a_method_that_a_file_of_settings_names_is_imported_only_by_who_trusts_it(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = printed(capsys, *WITHOUT_WARMUP, *OWN)
    (tmp_path / "settings.yaml").write_text(settings)
    forget_code(monkeypatch)
    code.unlink()
    by_file = ["--config", "settings.yaml"]
    assert f"settings.yaml: {REFUSED}" in fail(capsys, ["train", *by_file, "--out", "run"])
    assert not code.exists()
    assert yaml.safe_load(printed(capsys, *by_file, "--trust_net")) == yaml.safe_load(settings)
    assert code.exists()
    assert printed(capsys, *by_file, *OWN[:2]) == settings  # the user named the method


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "their_methods:OBJECT", "method 'their_methods:OBJECT' cannot be imported: AttributeError"),
        ("1 / 0", "their_methods:OBJECT", "cannot be imported: ZeroDivisionError: division by zero"),
        (METHOD, "no_methods:OBJECT", "method 'no_methods:OBJECT' cannot be imported: no module 'no_methods'"),
        (METHOD, "their_methods:Own", "method 'their_methods:Own' is a class: name an object of it"),
        ("OBJECT = 3", "their_methods:OBJECT", "method 'their_methods:OBJECT' has no settings: inherit from"),
    ],
)
def test_a_method_that_cannot_be_used_is_one_line(
    code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, name: str, message: str
) -> None:
    (tmp_path / "their_methods.py").write_text(content.replace('Path("imported").touch()', ""))
    assert message in fail(capsys, ["train", "toy.npz", "--method", name, "--out", "run"])
