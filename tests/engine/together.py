"""Several processes on this machine, each of which calls one function: what torchrun does, without its agent."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any


def run_together(function: str, num_processes: int, folder: Path, *arguments: str, timeout: float = 900) -> list[Any]:
    """What module:function(*arguments) returns in each process, as JSON. Fails with the errors of the processes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    children = []
    for rank in range(num_processes):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(num_processes), "OMP_NUM_THREADS": "1"}
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        paths = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path])
        command = [sys.executable, __file__, function, str(folder / f"{rank}.json"), *arguments]
        environment = os.environ | own | place | {"PYTHONPATH": paths}
        children.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    errors = []
    for child in children:
        try:
            errors.append(child.communicate(timeout=timeout)[1])
        except subprocess.TimeoutExpired:
            for each in children:
                each.kill()
            raise
    assert all(child.returncode == 0 for child in children), "\n".join(errors)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(num_processes)]


if __name__ == "__main__":
    import pkgutil

    from dividemix.engine.processes import joined

    with joined():
        result = pkgutil.resolve_name(sys.argv[1])(*sys.argv[3:])
    Path(sys.argv[2]).write_text(json.dumps(result))
