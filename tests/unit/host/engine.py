"""A program that stands in for an engine under a service manager: a port, a /ready, log lines, children. Standard library only.

`python engine.py PORT [--address A] [--ready-after S] [--die-after S] [--status N] [--child] [--deaf] [--text TEXT]`
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time


def serve(address: str, port: int, ready_at: float) -> None:
    """Answer every request: /ready by time, with one thread."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(16)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            status = "200 OK" if time.monotonic() >= ready_at else "503 Service Unavailable"
            connection.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())


def main() -> None:
    """Run as asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--ready-after", type=float, default=0.0)
    parser.add_argument("--die-after", type=float)
    parser.add_argument("--status", type=int, default=3)
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--text", default="")
    asked = parser.parse_args()
    if asked.deaf:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if asked.child:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    sys.stdout.buffer.write(
        b"Load weight begin.\nshards: 0%\rshards: 50%\rshards: 100%\n" + asked.text.encode() + b"\n"
    )
    sys.stdout.buffer.flush()
    if asked.die_after is not None:
        threading.Timer(asked.die_after, os._exit, [asked.status]).start()
    serve(asked.address, asked.port, time.monotonic() + asked.ready_after)


if __name__ == "__main__":
    main()
