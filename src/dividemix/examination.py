"""What `dividemix doctor` looks at: one function for each part, each a list of names and findings. No torch import."""

import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path

from dividemix.engine.processor import num_cores, processor_name
from dividemix.version import __version__

_NEEDED = ("torch", "numpy", "safetensors", "yaml", "rich", "PIL")
_OPTIONAL = {  # the module: what it is for, and how to get it
    "pyarrow": "data in Parquet files: pip install 'dividemix[parquet]'",
    "sklearn": "rows of tables, TF-IDF of texts, DivideMixClassifier, figures: pip install 'dividemix[sklearn]'",
    "onnxruntime": "dividemix export --format onnx: pip install 'dividemix[onnx]'",
    "matplotlib": "figures of dividemix reproduce: pip install 'dividemix[figures]'",
    "pandas": "label_issues().to_pandas(): pip install pandas",
    "datasets": "data sets of Hugging Face in Python: pip install datasets",
    "timm": "--encoder and --net timm:NAME: pip install timm",
    "torchvision": "--encoder and --net torchvision:NAME: pip install torchvision",
    "open_clip": "--encoder open_clip:MODEL/WEIGHTS: pip install open_clip_torch",
    "transformers": "--encoder transformers:MODEL: pip install transformers",
    "sentence_transformers": "--encoder sentence-transformers:MODEL: pip install sentence-transformers",
    "fsspec": "shards in an object store: pip install 'dividemix[remote]'",
    "submitit": "dividemix sweep and reproduce on a cluster: pip install 'dividemix[slurm]'",
    "tensorboard": "--log tensorboard: pip install tensorboard",
    "mlflow": "--log mlflow: pip install mlflow-skinny",
    "wandb": "--log wandb: pip install wandb",
}
Findings = list[tuple[str, str]]


def _versions() -> Findings:
    """dividemix, Python and the packages that it needs, each imported."""
    found = [("dividemix", __version__), ("python", f"{platform.python_version()}, {sys.executable}")]
    return found + [(name, _imported(name)) for name in _NEEDED]


def _imported(name: str) -> str:
    """The version of a module, or why it cannot be imported."""
    try:
        return str(getattr(importlib.import_module(name), "__version__", "installed"))
    except Exception as error:  # a broken package may raise anything
        return f"broken: {type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _machine() -> Findings:
    """What computes."""
    import torch

    found = [
        ("platform", platform.platform()),
        ("processor", processor_name()),
        ("instruction set", torch.backends.cpu.get_cpu_capability()),
        ("cores for this process", str(num_cores())),
        (
            "threads of torch",
            f"{torch.get_num_threads()} (OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')})",
        ),
    ]
    for number in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(number)
        found.append((f"cuda:{number}", f"{about.name}, {about.total_memory / 1e9:.0f} GB"))
    if not torch.cuda.is_available():
        found.append(("GPU", "none that torch can use: networks train on the CPU"))
    if torch.backends.mps.is_available():
        found.append(("mps", "available: --device mps"))
    return found


def _speed() -> Findings:
    """What makes a training fast here."""
    from dividemix.engine.device import choose_device

    found = [("--device auto", str(choose_device("auto")))]
    words = (os.environ.get("CXX") or "g++").split()
    compiler = shutil.which(words[0])
    if compiler is None:
        missing = f"none: {words[0]} is not found, so networks are not compiled and --kernels own cannot be used"
        return [*found, ("C++ compiler", missing)]
    version = subprocess.run([compiler, "--version"], check=False, capture_output=True, text=True, errors="replace")
    found.append(("C++ compiler", (version.stdout.splitlines() or [compiler])[0]))
    from dividemix.engine.kernels.library import load_library

    try:
        load_library()
        kernels = "can be built; --kernels auto measures in a long training whether they are faster"
    except OSError as error:
        kernels = f"cannot be built: {' '.join(str(error).split())[:200]}"
    return [*found, ("own kernels", kernels)]


def _packages() -> Findings:
    """The optional packages."""
    found = []
    for name, purpose in _OPTIONAL.items():
        if util.find_spec(name) is None:
            found.append((name, f"missing; for {purpose}"))
        else:
            found.append((name, f"{_version_of(name)}; for {purpose.partition(': pip')[0]}"))
    return found


def _version_of(module: str) -> str:
    """The version of a module that is installed, without importing it: that may take seconds."""
    for name in metadata.packages_distributions().get(module, [module]):
        return metadata.version(name)
    return "installed"


def _disk() -> Findings:
    """Where there is room, and where files are kept between runs."""
    here = Path.cwd()
    cache = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR") or Path(tempfile.gettempdir(), f"torchinductor_{_user()}"))
    found = [(f"free in {here}", f"{shutil.disk_usage(here).free / 1e9:.1f} GB")]
    found.append((f"free in {tempfile.gettempdir()}", f"{shutil.disk_usage(tempfile.gettempdir()).free / 1e9:.1f} GB"))
    from dividemix.data.cache_folder import cache_folder

    kept = {"compiled networks": cache, "encodings, indices": cache_folder()}
    return [*found, *((name, f"{folder}, {_size(folder) / 1e6:.0f} MB") for name, folder in kept.items())]


def _size(folder: Path) -> int:
    """The bytes of all files in a folder; other processes may remove some meanwhile."""
    total = 0
    for file in folder.rglob("*") if folder.is_dir() else ():
        with suppress(OSError):
            total += file.stat().st_size
    return total


def _user() -> str:
    import getpass

    return getpass.getuser()


PARTS: Mapping[str, Callable[[], Findings]] = {
    "Versions": _versions,
    "Machine": _machine,
    "Speed": _speed,
    "Optional packages": _packages,
    "Disk": _disk,
}
