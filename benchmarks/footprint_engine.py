"""An engine that answers its agent from recordings, for agent_footprint.py: busy with four requests, its counters growing.

Usage: python footprint_engine.py LOG. Prints its port, then serves until it is killed; writes one line of a decode step to LOG for
each answer about its load.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "tests" / "data" / "sglang-0.5.23"
LOAD = json.loads((DATA / "loads" / "dflash-busy-4.json").read_bytes())
RECORDED = {
    "/metrics": (DATA / "metrics" / "dflash-busy-4-whole.txt").read_bytes(),
    "/server_info": (DATA / "dialect" / "server_info.json").read_bytes(),
}
LINES = (DATA / "dialect" / "decode_lines.txt").read_text(encoding="utf-8").splitlines()
TOKENS_A_LOOK = 600.0


class Handler(BaseHTTPRequestHandler):
    """Answers the four routes that an agent asks."""

    protocol_version = "HTTP/1.1"
    looks = itertools.count(1)
    lines = itertools.cycle(LINES)
    log = Path("/dev/null")

    def do_GET(self) -> None:
        """Answer."""
        route = self.path.partition("?")[0]
        body = self.load() if route == "/v1/loads" else RECORDED.get(route, b"")
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def load(self) -> bytes:
        """Return the recorded load as of now, with as many more tokens as it was asked for."""
        look, now_s = next(self.looks), time.time()
        with self.log.open("a", encoding="utf-8") as log:
            log.write(next(self.lines) + "\n")
        ranks = [
            {
                **rank,
                "timestamp": now_s,
                "decode_moments": [value + look * TOKENS_A_LOOK for value in rank["decode_moments"]],
            }
            for rank in LOAD["loads"]
        ]
        answered = dt.datetime.fromtimestamp(now_s + 0.05, dt.UTC).isoformat()
        return json.dumps({**LOAD, "timestamp": answered, "loads": ranks}).encode()

    def log_message(self, *_words: object) -> None:
        """Say nothing of each answer."""


def main() -> None:
    """Serve."""
    Handler.log = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
