"""The metrics page over HTTP: hands out the page that the loop last made, and never samples because somebody asks."""

from __future__ import annotations

from collections.abc import Callable

from specctl_agent.exposition import CONTENT_TYPE
from specctl_agent.serving import Spoken

REQUEST_BYTES = 8 << 10
END = b"\r\n\r\n"
PATHS = (b"/metrics", b"/")


class MetricsPage:
    """Speaks as much HTTP/1.1 as a scraper needs: GET and HEAD of /metrics, one request a connection."""

    limit_bytes = REQUEST_BYTES

    def __init__(self, page: Callable[[], bytes]) -> None:
        self._page = page

    def answer(self, received: bytes) -> Spoken | None:
        """Answer the request once its head is whole."""
        head, end, _ = received.partition(END)
        if not end:
            return None
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            content = _reply("405 Method Not Allowed", b"only GET and HEAD\n", more="Allow: GET, HEAD\r\n")
        elif path == PATHS[0]:
            content = _reply("200 OK", self._page(), kind=CONTENT_TYPE, bodiless=method == b"HEAD")
        elif path == PATHS[1]:
            content = _reply("200 OK", b"specctl-agent: see /metrics\n", bodiless=method == b"HEAD")
        else:
            content = _reply("404 Not Found", b"see /metrics\n", bodiless=method == b"HEAD")
        return Spoken(content=content, used=len(received), last=True)

    def overlong(self) -> bytes:
        """Refuse a head that has no end."""
        return _reply("431 Request Header Fields Too Large", b"")


def _reply(
    status: str, body: bytes, *, kind: str = "text/plain; charset=utf-8", more: str = "", bodiless: bool = False
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{more}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + (b"" if bodiless else body)
