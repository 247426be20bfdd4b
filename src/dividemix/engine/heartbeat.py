"""Signs of life between the processes of one training: if one is lost, all end instead of waiting for days.

The first process has a connection to each of the others. Both sides send a byte every few seconds. A machine that is
switched off, or a cut cable, closes no connection: only the silence tells. A short cut is survived.
"""

import hmac
import os
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress

from dividemix.errors import InputError

_PAUSE = 2.0  # seconds between two looks
_SILENT_ROUNDS = 30  # looks without an answer after which a process counts as lost: a minute
_CLOSED_ROUNDS = 5  # after its connection was closed: the main thread has time to end by itself
_TOKEN_BYTES = 16
_JOINING = 60.0  # seconds in which all processes must connect
_SPEAKING = 10.0  # seconds in which a process must say who it is once it is connected


class Listener:
    """The place where the first process waits for the connections of the others."""

    def __init__(self) -> None:
        both = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if both else socket.AF_INET
        self._socket = socket.create_server(("", 0), family=family, dualstack_ipv6=both, backlog=1024)
        self._token = secrets.token_bytes(_TOKEN_BYTES)
        self.ticket = f"{self._socket.getsockname()[1]}:{self._token.hex()}"  # what the others need to connect

    def accept(self, num_others: int) -> dict[int, socket.socket]:
        """The connection of each other process by its number. Raises InputError if one does not come."""
        found: dict[int, socket.socket] = {}
        self._socket.settimeout(_JOINING)
        with self._socket:
            while len(found) < num_others:
                try:
                    peer = self._socket.accept()[0]
                except OSError as error:
                    raise InputError(f"only {len(found)} of {num_others} processes connected to the first") from error
                peer.settimeout(_SPEAKING)
                said = _read(peer, _TOKEN_BYTES + 4)
                if hmac.compare_digest(said[:_TOKEN_BYTES], self._token):
                    found[int.from_bytes(said[_TOKEN_BYTES:], "big")] = peer
                else:
                    peer.close()
        return found


def connect(address: str, ticket: str, number: int) -> dict[int, socket.socket]:
    """The connection of process `number` to the first one. Raises InputError if that cannot be reached."""
    port, _, token = ticket.partition(":")
    try:
        peer = socket.create_connection((address, int(port)), timeout=_JOINING)
        peer.sendall(bytes.fromhex(token) + number.to_bytes(4, "big"))
    except OSError as error:
        raise InputError(f"cannot connect to the first process at {address}: {error}") from error
    return {0: peer}


def _read(peer: socket.socket, num_bytes: int) -> bytes:
    """So many bytes, or fewer if the other side closes the connection or falls silent, as a stranger may."""
    said = b""
    with suppress(OSError):
        while len(said) < num_bytes and (more := peer.recv(num_bytes - len(said))):
            said += more
    return said


class Heartbeat:
    """While it is not stopped, ends this process if one of the peers is lost."""

    def __init__(self, peers: Mapping[int, socket.socket], num_processes: int):
        self._peers = peers
        self._num_processes = num_processes
        self._stopped = threading.Event()
        for peer in peers.values():
            peer.setblocking(False)
        self._thread = threading.Thread(target=self._look, name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it: the other processes may leave now."""
        self._stopped.set()
        self._thread.join()
        for peer in self._peers.values():
            peer.close()

    def _look(self) -> None:
        # Rounds are counted, not seconds: a program that was stopped and continued has missed nothing.
        silent = dict.fromkeys(self._peers, 0)
        closed = dict.fromkeys(self._peers, 0)
        while not self._stopped.wait(_PAUSE):
            for number, peer in self._peers.items():
                heard = _exchange(peer)
                silent[number] = 0 if heard else silent[number] + 1
                closed[number] += heard == b""
                if closed[number] > _CLOSED_ROUNDS:
                    self._end(f"process {number} of {self._num_processes} has ended")
                if silent[number] > _SILENT_ROUNDS:
                    seconds = round(_PAUSE * _SILENT_ROUNDS)
                    self._end(f"process {number} of {self._num_processes} has not answered for {seconds} seconds")

    def _end(self, problem: str) -> None:
        """End this process. The main thread may be waiting inside torch, where no exception reaches it."""
        if self._stopped.is_set():
            return
        # The first process speaks for all; if it cannot be reached, one speaks on each machine.
        if 0 not in self._peers or os.environ.get("LOCAL_RANK", "0") == "0":
            if sys.stdout.isatty():
                sys.stdout.write("\x1b[?25h")  # a progress display hides the cursor
            sys.stderr.write(f"dividemix: error: {problem}: dividemix resume continues the run\n")
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(2)


def _exchange(peer: socket.socket) -> bytes | None:
    """Send a byte and return what has come: nothing (b"") if the connection is closed, None if it is silent."""
    try:
        peer.send(b".")
    except BlockingIOError:
        pass
    except OSError:
        return b""
    try:
        return peer.recv(4096)
    except BlockingIOError:
        return None
    except OSError:
        return b""
