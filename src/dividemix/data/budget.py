"""Memory that threads share: each takes its part before it works, and waits while there is too little."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Budget:
    """A number of bytes."""

    def __init__(self, num_bytes: int):
        self.num_bytes = num_bytes
        self._free, self._changed = num_bytes, threading.Condition()

    @contextmanager
    def taken(self, num_bytes: int) -> Iterator[None]:
        """While inside, so many bytes, at most all, are not free for other threads."""
        assert num_bytes <= self.num_bytes
        with self._changed:
            self._changed.wait_for(lambda: self._free >= num_bytes)
            self._free -= num_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free += num_bytes
                self._changed.notify_all()
