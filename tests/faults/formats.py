"""The mutations of each format, by the extension of a file."""

import random
from collections.abc import Callable

from mutations import Mutations, of_bytes, of_csv, of_json, of_lines, of_npz, of_png, of_safetensors, of_yaml
from mutations_of_data import of_npy, of_parquet, of_tar

FORMATS: dict[str, Callable[[bytes, random.Random], Mutations]] = {
    ".json": of_json,
    ".jsonl": of_lines,
    ".yaml": of_yaml,
    ".csv": of_csv,
    ".safetensors": of_safetensors,
    ".npz": of_npz,
    ".npy": of_npy,
    ".png": of_png,
    ".parquet": of_parquet,
    ".tar": of_tar,
    ".index": of_bytes,  # of shards: an array of bytes with a digest before it
    ".images": of_bytes,  # the images of shards, one after the other
}
