"""Texts of SGLang that follow from a failure without naming its cause, and texts worth knowing of a start that goes on."""

from __future__ import annotations

import re

from specctl.engines._log_types import KnownText, TextKind


def _consequence(text_id: str, pattern: str, title: str, *, closes: bool = False) -> KnownText:
    return KnownText(
        id=text_id,
        kind=TextKind.CONSEQUENCE,
        pattern=re.compile(pattern),
        title=title,
        remedy="the cause stands above this line in the log: `specctl logs --host H`",
        closes=closes,
    )


def _note(
    text_id: str, pattern: str, title: str, remedy: str, explains: tuple[str, ...] = (), titled: str | None = None
) -> KnownText:
    return KnownText(
        id=text_id,
        kind=TextKind.NOTE,
        pattern=re.compile(pattern),
        title=title,
        remedy=remedy,
        titled=titled,
        explains=explains,
    )


CONSEQUENCES: tuple[KnownText, ...] = (
    _consequence(
        "F101", r"Subprocess \w{1,60} \(pid=\d{1,10}\) crashed with exit code", "a child process crashed", closes=True
    ),
    _consequence("F102", r"scheduler died during initialization \(exit code", "a scheduler died while it loaded"),
    _consequence("F103", r"Scheduler hit an exception", "a scheduler hit an exception"),
    _consequence("F104", r"Initialization failed\.", "the start was given up"),
    _consequence(
        "F105",
        r"Received sigquit from a child process|SIGQUIT received\. signum=",
        "the engine shut itself down because a child failed",
        closes=True,
    ),
    _consequence(
        "F106",
        r"Sleeping \d{1,4} seconds before crash diagnostics",
        "the engine prepares crash diagnostics",
        closes=True,
    ),
    _consequence("F107", r"SIGTERM received\. signum=", "the engine was told to stop", closes=True),
)

NOTES: tuple[KnownText, ...] = (
    _note(
        "N001",
        r"Setup Custom allreduce failed with",
        "custom all-reduce is off",
        "add --disable-custom-all-reduce to say so on purpose, or mend P2P between the GPUs",
    ),
    _note(
        "N002",
        r"Health check failed\. Server couldn't get a response from detokenizer",
        "the engine did not answer its own health check for 20 s",
        "a long prefill or a stalled scheduler: look at the age of /v1/loads' timestamp",
    ),
    _note(
        "N003",
        r"Disable DFLASH draft cuda graph because only",
        "the draft runs without CUDA graphs: too little GPU memory",
        "lower --mem-fraction-static; without graphs every step is slower",
    ),
    _note(
        "N004",
        r"DFLASH block size mismatch",
        "the block size differs from the one the draft was trained with",
        "smaller than trained is fine, larger accepts poorly: compare block_size with the draft's config",
    ),
    _note(
        "N007",
        r"DDTREE plugin not loaded: (?P<reason>.{1,300})",
        "the DDTREE plugin was not loaded",
        "the reason is the plugin's own: another SGLang than it was tested with, or a part of that SGLang that is missing",
        explains=("F004",),
        titled="the DDTREE plugin was not loaded: {reason}",
    ),
    _note(
        "N005",
        r"Failed to (?:load plugin|execute general plugin:) (?P<name>.{1,120})",
        "an engine plug-in failed to load",
        "mend the plug-in's environment (PYTHONPATH, versions); the engine only logs it and then lacks the algorithm",
        explains=("F004",),
    ),
    _note(
        "N006",
        r"DFLASH non-greedy verification is unavailable",
        "sampled requests are verified greedily on this build",
        "expect temperature to have no effect while speculating on this device",
    ),
)
