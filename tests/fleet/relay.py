"""A slow cable: carries every frame between two network interfaces, each way after a delay.

`python relay.py DELAY_MS ONE OTHER`, run in the room by host.py; ends when an interface does. It stands in for `tc netem`, which
small kernels lack. Frames come with their offload header, so that large and unchecked ones pass as they would between two kernels.
"""

from __future__ import annotations

import select
import socket
import sys
import time
from collections import deque

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_VNET_HDR = 15
PACKET_OUTGOING = 4
LARGEST_FRAME = 1 << 17
BUFFER_BYTES = 1 << 23


def main(delay_s: float, names: tuple[str, str]) -> None:
    """Carry frames until an interface goes away."""
    one, other = (_opened(name) for name in names)
    queues: dict[socket.socket, deque[tuple[float, bytes]]] = {one: deque(), other: deque()}
    peer = {one: other, other: one}
    print("ready", flush=True)
    while True:
        dues = [queue[0][0] for queue in queues.values() if queue]
        wait_s = max(0.0, min(dues) - time.monotonic()) if dues else None
        for source in select.select([one, other], [], [], wait_s)[0]:
            frame, origin = source.recvfrom(LARGEST_FRAME)
            if origin[2] != PACKET_OUTGOING:
                queues[peer[source]].append((time.monotonic() + delay_s, frame))
        _send_due(queues)


def _opened(name: str) -> socket.socket:
    opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    opened.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    opened.bind((name, ETH_P_ALL))
    return opened


def _send_due(queues: dict[socket.socket, deque[tuple[float, bytes]]]) -> None:
    now = time.monotonic()
    for target, queue in queues.items():
        while queue and queue[0][0] <= now:
            target.send(queue.popleft()[1])


if __name__ == "__main__":
    try:
        main(float(sys.argv[1]) / 1000, (sys.argv[2], sys.argv[3]))
    except OSError as error:
        sys.exit(f"the cable ended: {error}")
