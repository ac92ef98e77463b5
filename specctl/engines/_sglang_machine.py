"""Texts by which SGLang says that the machine failed it: memory, GPUs, NCCL, ports, disks; and causes of the last resort."""

from __future__ import annotations

import re

from specctl.engines._log_types import KnownText, TextKind


def _cause(text_id: str, pattern: str, title: str, remedy: str, titled: str | None = None) -> KnownText:
    return KnownText(
        id=text_id, kind=TextKind.CAUSE, pattern=re.compile(pattern), title=title, remedy=remedy, titled=titled
    )


PORT_TAKEN = "F020"

MACHINE_CAUSES: tuple[KnownText, ...] = (
    _cause(
        PORT_TAKEN,
        r"\[Errno 98\]|address already in use|(?:at )?(?:PORT|port) \d{1,5} is not available in \d",
        "the port is taken",
        "find who holds it (`specctl exec --host H -- ss -ltnp`) and stop it, or give the server another port",
    ),
    _cause(
        "F021",
        r"memory capacity is unbalanced",
        "GPU memory is unbalanced: another process holds some of it",
        "find the process (`specctl exec --host H -- nvidia-smi`), end it, deploy again",
    ),
    _cause(
        "F019",
        r"leave no GPU memory for the KV cache|Not enough memory\. Please try to increase --mem-fraction-static",
        "the weights leave no memory for the KV cache",
        "raise --mem-fraction-static, use more GPUs, or a smaller target or draft",
    ),
    _cause(
        "F022",
        r"Capture [\w ]{1,40} graph failed: ?(?P<what>[^.\n]{1,80})?",
        "capturing CUDA graphs failed",
        "lower --mem-fraction-static or --cuda-graph-max-bs-decode; --disable-cuda-graph tells whether graphs are to blame",
        "capturing CUDA graphs failed: {what}",
    ),
    _cause(
        "F012",
        r"(?:torch\.(?:cuda\.)?OutOfMemoryError: )?CUDA out of memory(?:\..{0,120}?GPU (?P<gpu>\d{1,3}) has)?"
        r"|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|CUDA error: out of memory",
        "CUDA out of memory",
        "look for leftover processes on that GPU; else lower --mem-fraction-static, --max-running-requests or the tree budget",
        "CUDA out of memory on GPU {gpu}",
    ),
    _cause(
        "F034",
        r"CUDA driver version is insufficient|no kernel image is available for execution|driver/library version mismatch",
        "the GPU driver and the engine's CUDA do not fit",
        "install the driver that the engine's CUDA needs (a reboot ends a driver/library mismatch after an upgrade)",
    ),
    _cause(
        "F023",
        r"Found no NVIDIA driver|No CUDA GPUs are available|no CUDA-capable device is detected|invalid device ordinal",
        "the engine finds no GPU",
        "check nvidia-smi on the host, the driver, and CUDA_VISIBLE_DEVICES",
    ),
    _cause(
        "F026",
        r"Weights are not ready after waiting",
        "the weights never arrived",
        "check the storage that the weights come from; raise SGLANG_WAIT_WEIGHTS_READY_TIMEOUT if it is slow",
    ),
    _cause(
        "F035",
        r"No space left on device",
        "a disk of the host is full",
        "free space on the host (caches, /tmp, old releases), then deploy again",
    ),
    _cause(
        "F036",
        r"PermissionError: \[Errno 13\]",
        "the engine may not read or write a file",
        "give the unit's user access to the file that the engine's words name",
    ),
    _cause(
        "F038",
        r"\[Errno 24\] Too many open files",
        "the engine ran out of open files",
        "raise LimitNOFILE of the unit",
    ),
    _cause(
        "F039",
        r"Cannot allocate memory|DefaultCPUAllocator: .{0,40}allocate memory|^MemoryError\b",
        "the host ran out of memory",
        "free host memory, or load with fewer threads; weights need room in the page cache too",
    ),
    _cause(
        "F032",
        r"stub sgl_kernel called|Could not load any common_ops library|undefined symbol: |ImportError: .{0,80}sgl_kernel",
        "a compiled library of the engine does not load or lacks a function",
        "reinstall the engine's environment so that torch, sgl_kernel and CUDA are of one build",
    ),
    _cause(
        "F025",
        r"[Ww]atchdog timeout \(",
        "a step took longer than the engine's watchdog allows",
        "warm the kernel caches or raise --watchdog-timeout; a hang in NCCL looks the same",
    ),
    _cause(
        "F024",
        r"nccl(?:UnhandledCuda|System|Internal|Remote|InvalidUsage)Error|NCCL watchdog"
        r"|Watchdog caught collective operation timeout|NCCL error",
        "NCCL failed",
        "check NCCL_* against the GPUs' topology, IOMMU/ACS and the fabric manager; NCCL_DEBUG=INFO says more",
    ),
    _cause(
        "F033",
        r"CUDA error: (?P<what>[\w ,-]{1,80})|device-side assert triggered|illegal memory access",
        "a CUDA error",
        "try --disable-cuda-graph to narrow it down; with P2P trouble try NCCL_P2P_DISABLE=1; look for Xid in dmesg",
    ),
    _cause(
        "F043",
        r"pool memory leak detected!",
        "places of the cache got lost, and the engine ended itself",
        "with DFLASH and pages of one token it comes when a text reaches the end of the context: give --page-size 16, or keep "
        "requests two blocks short of it",
    ),
    _cause(
        "F041",
        r"Fatal Python error: (?P<what>[\w ]{1,60})|Segmentation fault",
        "the engine's process crashed",
        "look at the native stack in the log and at dmesg; a mixed environment (torch, kernels, CUDA) is the usual reason",
    ),
)

LAST_RESORTS: tuple[KnownText, ...] = (
    _cause(
        "F029",
        r"too many values to unpack \(expected 2\)",
        "the target did not hand its hidden states to the draft as expected",
        "the draft's config asks for a layer that the target cannot capture, or the build has a known fault: try another build",
    ),
    _cause(
        "F040",
        r"scheduler died during initialization \(exit code: -9\)"
        r"|Subprocess (?P<child>\w{1,60}) \(pid=\d{1,10}\) crashed with exit code -9\b",
        "a process of the engine was killed from outside (SIGKILL)",
        "look at `dmesg -T` for the OOM killer; check host memory, MemoryMax of the unit and --mem-fraction-static",
        "{child} was killed from outside (SIGKILL)",
    ),
    _cause(
        "F042",
        r"^KeyboardInterrupt$",
        "the engine was interrupted (SIGINT) while it loaded",
        "see who stopped it (`specctl history`, the host's journal), then deploy again",
    ),
)
