"""Files that somebody planted where the package will write or import: they are left alone.

Oracle: the bytes of a victim file.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from injected import dying
from small_model import save_images, small_images, small_model
from toys import toy_job, trained, tree
from workshop import spawn

from dividemix import atomic
from dividemix.cli import main
from dividemix.engine.compile_cache import use_private_cache
from dividemix.model import export as export_module


def plant(folder: Path, name: str, victim: Path) -> None:
    """Links to the victim under the names that temporary files once had."""
    for planted in (f".{name}.tmp", f"{name}.tmp", f".{name}.partial"):
        (folder / planted).symlink_to(victim)


def predict(folder: Path) -> Path:
    small_model().save_pretrained(folder / "model")
    save_images(folder, small_images(2), ["a.png", "b.png"])
    assert main(["predict", str(folder / "model"), str(folder / "a.png"), "--out", str(folder / "out.csv")]) == 0
    return folder / "out.csv"


def relabel(folder: Path) -> Path:
    save_images(folder, small_images(2), ["a.png", "b.png"])
    (folder / "data.csv").write_text("path,label\na.png,cat\nb.png,dog\n")
    (folder / "corrections.csv").write_text("index,path,given_label,new_label,action\n0,a.png,cat,dog,choose\n")
    words = ["relabel", str(folder / "data.csv"), str(folder / "corrections.csv"), "--out", str(folder / "out.csv")]
    assert main(words) == 0
    return folder / "out.csv"


def export(folder: Path) -> Path:
    small_model().save_pretrained(folder / "model")
    format = (lambda model: b"content", lambda content: small_model().predict_proba)  # made at once
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(export_module.FORMATS, "pt2", format)
        words = ["export", str(folder / "model"), "--format", "pt2", "--out", str(folder / "out.csv")]
        assert main(words) == 0
    assert (folder / "out.csv").read_bytes() == b"content"
    return folder / "out.csv"


@pytest.mark.parametrize("command", [predict, relabel, export])
def test_a_planted_link_is_not_followed(tmp_path: Path, command: Callable[[Path], Path]) -> None:
    """Row 9: a link under the temporary file's name made predict, relabel and export overwrite its target."""
    victim, folder = tmp_path / "victim", tmp_path / "here"
    victim.write_text("precious")
    folder.mkdir()
    plant(folder, "out.csv", victim)
    out = command(folder)
    assert out.is_file()
    assert not out.is_symlink()
    assert victim.read_text() == "precious"
    assert sorted(path.name for path in folder.iterdir() if path.is_symlink()) == [
        ".out.csv.partial",
        ".out.csv.tmp",
        "out.csv.tmp",
    ]


def test_a_planted_link_in_a_run_is_not_followed(tmp_path: Path) -> None:
    """Row 9: the same for the files of a run that is resumed."""
    path = trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy"), num_epochs=1).directory.path
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("metrics.jsonl", "env.json", "label_issues.csv", "summary.json", "report.html"):
        plant(path, name, victim)
    plant(path / "checkpoints" / "last", "checkpoint.json", victim)
    assert main(["train", "--resume", "--out", str(path)]) == 0
    assert victim.read_text() == "precious"
    assert (path / "summary.json").is_file()


@pytest.mark.parametrize("planted", ["nothing", "ours", "a folder for all", "a link", "another's"])
def test_code_is_compiled_where_nobody_else_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    """Row 11: torch's compile cache was used though another user owned it. It is in the folder of temporary files."""
    shared = tmp_path / "shared"
    monkeypatch.setattr("torch._inductor.runtime.cache_dir_utils.default_cache_dir", lambda: str(shared))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if planted != "nothing":
        (tmp_path / "theirs" if planted == "a link" else shared).mkdir(mode=0o755)
    if planted == "a folder for all":
        shared.chmod(0o777)
    elif planted == "a link":
        shared.symlink_to(tmp_path / "theirs")
    elif planted == "another's":
        monkeypatch.setattr(os, "getuid", lambda: shared.stat().st_uid + 1)
    use_private_cache()
    chosen = os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
    if planted in ("nothing", "ours"):
        assert chosen is None
        assert shared.is_dir()
    else:
        assert chosen is not None
        assert stat.S_IMODE(Path(chosen).stat().st_mode) == 0o700


def test_what_torch_chose_itself_is_no_choice_of_the_user(tmp_path: Path) -> None:
    """Row 11: torch names its default in the environment when its compiler is imported, and it was not looked at."""
    code = """
import os, stat, sys, tempfile
os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
tempfile.tempdir = sys.argv[1]
from torch._inductor.runtime.cache_dir_utils import cache_dir
folder = cache_dir()
os.chmod(folder, 0o777)
assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == folder
from dividemix.engine.compile_cache import use_private_cache
use_private_cache()
assert cache_dir() != folder
print(oct(stat.S_IMODE(os.stat(cache_dir()).st_mode)))
"""
    done = spawn(code, str(tmp_path))
    assert done.stdout == "0o700\n", done.stderr


def test_the_users_own_choice_of_a_cache_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 11."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/somewhere")
    use_private_cache()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "/somewhere"


def test_temporary_names_differ_each_time(tmp_path: Path) -> None:
    """Row 9: nobody can foresee the name, and nobody else can open the file before it is whole."""
    names, modes = set(), set()
    for _ in range(20):
        with atomic.replacing(tmp_path / "file") as file:
            (temporary,) = (path for path in tmp_path.iterdir() if path.name.endswith(".tmp"))
            names.add(temporary.name)
            modes.add(stat.S_IMODE(temporary.stat().st_mode))
            file.write(b"x")
    assert len(names) == 20
    umask = os.umask(0)
    os.umask(umask)
    assert modes == {0o666 & ~umask}


def test_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    """Row 9: an exclusive temporary file is private at first; what replaces a file has that file's permissions."""
    (tmp_path / "file").write_text("old")
    for mode in (0o600, 0o644, 0o640):
        (tmp_path / "file").chmod(mode)
        atomic.write_text(tmp_path / "file", "new")
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    """Row 9: names that cannot be foreseen are not reused, so a resumed run removes them."""
    path = trained(tmp_path / "run", toy_job(tmp_path, method="cross_entropy"), num_epochs=1).directory.path
    with dying(path, 1):
        atomic.write_text(path / "metrics.jsonl", "half")
    strays = [name for name in tree(path) if name.endswith(".tmp")]
    assert len(strays) == 1
    (path / ".mine.tmp").write_text("mine")
    assert main(["train", "--resume", "--out", str(path)]) == 0
    assert [name for name in tree(path) if name.endswith(".tmp")] == [".mine.tmp"]
    assert np.load(path / "pred_probs.npy").shape == (40, 4)
