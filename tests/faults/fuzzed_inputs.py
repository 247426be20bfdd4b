"""Fuzzed files for every reader of data, and fuzzed requests to the server of a review."""

import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from formats import FORMATS
from hypothesis import strategies as st
from refused import Drawn, refused_or_fine, shown

from dividemix.cli import main
from dividemix.data.column_types import RowColumns
from dividemix.data.readers import read_source
from dividemix.report.review_server import ReviewServer

READ = (
    *("toy.npz", "data.csv", "data.parquet", "images/2.png", "table_corrections.csv", "rows.csv", "texts.jsonl"),
    *("vectors.npy", "shards/shard-000.tar", "tables/train-00000-of-00002.parquet", "votes.csv"),
)
_WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"text_column": "text"},
    {"labels": "labels.npy"},
    {"annotators": "anna,ben,carl"},
    {"row_columns": RowColumns.of("label", key=None, numeric=None, categorical=None, drop=None)},
)


@st.composite
def reader_calls(draw: st.DrawFn) -> Drawn:
    """A reader on a file of any bytes, or a mutated one, under an extension that need not be its own."""
    name = draw(st.sampled_from(READ))
    own = [Path(name).suffix] * 4
    suffix = draw(st.sampled_from([*own, ".npz", ".csv", ".tsv", ".parquet", ".npy", ".jsonl", ".tar"]))
    way = draw(st.sampled_from(_WAYS))
    rng, steps = random.Random(draw(st.integers(0, 10**9))), draw(st.integers(0, 6))
    raw = draw(st.none() | st.binary(max_size=200))
    size = draw(st.sampled_from([None, 8, 16]))

    def read() -> None:
        content = raw
        if content is None:
            mutated = FORMATS[Path(name).suffix](Path(name).read_bytes(), rng)
            for _ in range(steps + 1):
                content = next(mutated)
        path = Path(f"fuzzed{suffix}")
        path.write_bytes(content or b"")
        read_source(str(path), image_size=size, **way)

    return refused_or_fine((name, suffix, steps, raw, size, way), read)


@st.composite
def requests(draw: st.DrawFn) -> Drawn:
    """Requests to the server of a review, some with its token: paths, queries and bodies of any kind."""
    place = draw(st.sampled_from(["", "decisions", "small/0", "original/1", "large/", "?first=1", "../x"]) | st.text())
    has_token, is_post = draw(st.booleans()), draw(st.booleans())
    values: st.SearchStrategy[Any] = st.sampled_from(
        [0, 1, -1, 10**30, True, None, "keep", "choose", "1", "x" * 2000, "\ud800", "\0", [], {}]
    )
    change = st.lists(values, max_size=4)
    body = draw(
        st.binary(max_size=60)
        | st.lists(change, max_size=3).map(lambda changes: json.dumps({"changes": changes}).encode())
        | st.dictionaries(st.sampled_from(["changes", "\ud800", "x"]), values).map(lambda one: json.dumps(one).encode())
    )

    def ask() -> int:
        def serve(server: ReviewServer, *_: object) -> None:
            home = urlsplit(server.url).path if has_token else "/x/"
            answer = server.post(home + place, body) if is_post else server.get(home + place)
            assert answer.status in (200, 204, 400, 404), answer.status

        ReviewServer.serve_forever = serve  # type: ignore[assignment, method-assign]
        return main(["review", "run"])

    return shown((place, has_token, is_post, body)), ask
