"""The grammar of SGLang's start-up log: every known text on a line that the engine writes, and no line that costs much."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specctl.engines._log_types import MAX_LINE, Phase, TextKind
from specctl.engines._sglang_log import GRAMMAR
from tests.examples import HOSTILE

# One line for each known text: from the recordings, or as the engine's source words it, with the title it must get.
SAMPLES = {
    "F001": ("sglang serve: error: unrecognized arguments: --frobnicate 1", "the engine does not know --frobnicate 1"),
    "F002": (
        "sglang serve: error: ambiguous option: --cuda-graph-max-bs could match --cuda-graph-max-bs-decode",
        "--cuda-graph-max-bs is an abbreviation that fits several flags",
    ),
    "F003": (
        "sglang serve: error: argument --attention-backend: invalid choice: 'nosuch' (choose from 'triton')",
        "--attention-backend has a value that the engine does not take",
    ),
    "F004": (
        "ValueError: Unknown speculative algorithm name: DDTREE",
        "this engine does not know the algorithm DDTREE",
    ),
    "F005": (
        "ValueError: DFLASH speculative decoding is not supported by CpuSRTPlatform on device 'cpu'.",
        "DFLASH does not run on this device",
    ),
    "F006": (
        "ValueError: DFLASH speculative decoding requires setting --speculative-draft-model-path.",
        "the algorithm needs a draft and none was given",
    ),
    "F007": (
        "ValueError: DFLASH requires --speculative-dflash-block-size to be positive, got -1.",
        "the block size contradicts another setting",
    ),
    "F008": (
        "ValueError: Currently DFLASH speculative decoding only supports pp_size == 1.",
        "the algorithm does not work with this kind of parallelism",
    ),
    "F009": (
        "ValueError: Speculative algorithm DDTREE does not support overlap scheduling.",
        "DDTREE needs the overlap scheduler off",
    ),
    "F010": (
        "OSError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/absent'.",
        "a model's folder does not exist on the host",
    ),
    "F011": (
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.",
        "the model is not on the host and the hub cannot be reached",
    ),
    "F012": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 94.97 GiB",
        "CUDA out of memory on GPU 3",
    ),
    "F013": (
        "OSError: It looks like the config file at '/models/t/config.json' is not a valid JSON file.",
        "/models/t/config.json is not valid JSON",
    ),
    "F014": ("RuntimeError: Cannot find any model weights with `/models/t`", "no weights in /models/t"),
    "F015": (
        "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata",
        "a weight file is damaged or cut short",
    ),
    "F016": (
        "ValueError: Cannot find model module. 'NoSuchForCausalLM' is not a registered model in the Transformers library",
        "this engine does not know the model's architecture",
    ),
    "F017": (
        "ValueError: Couldn't instantiate the backend tokenizer from one of:",
        "the model's tokenizer cannot be loaded",
    ),
    "F018": (
        "ValueError: Warning: User-specified context_length (100000) is greater than the derived context_length (2048).",
        "context length 100000 is longer than the model's 2048",
    ),
    "F019": (
        "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=1e-05.",
        "the weights leave no memory for the KV cache",
    ),
    "F020": (
        "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 31010): address already in use",
        "the port is taken",
    ),
    "F021": (
        "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.",
        "GPU memory is unbalanced: another process holds some of it",
    ),
    "F022": (
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "capturing CUDA graphs failed: CUDA out of memory",
    ),
    "F023": ("RuntimeError: Found no NVIDIA driver on your system.", "the engine finds no GPU"),
    "F024": (
        "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:77, ncclUnhandledCudaError",
        "NCCL failed",
    ),
    "F025": (
        "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "a step took longer than the engine's watchdog allows",
    ),
    "F026": ("RuntimeError: Weights are not ready after waiting 120 seconds", "the weights never arrived"),
    "F027": (
        "AssertionError: FlashAttention v3 Backend requires SM>=80 and SM<=90. Please use `--attention-backend flashinfer`.",
        "the attention backend does not run on this device",
    ),
    "F028": (
        "ValueError: DFLASH mask_token_id is outside the target vocab size. mask_token_id=9999, vocab_size=512.",
        "the draft does not fit the target",
    ),
    "F029": (
        "ValueError: too many values to unpack (expected 2)",
        "the target did not hand its hidden states to the draft as expected",
    ),
    "F031": (
        "AssertionError: in this case, the total number of ranks (dp_size * tp_size = 3) should be smaller",
        "the model cannot be split over that many ranks",
    ),
    "F032": (
        "RuntimeError: stub sgl_kernel called: sgl_kernel.copy_all_layer_kv_cache_cpu",
        "a compiled library of the engine does not load or lacks a function",
    ),
    "F033": ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "a CUDA error"),
    "F034": (
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "the GPU driver and the engine's CUDA do not fit",
    ),
    "F035": ("OSError: [Errno 28] No space left on device", "a disk of the host is full"),
    "F036": ("PermissionError: [Errno 13] Permission denied: '/models/t'", "the engine may not read or write a file"),
    "F038": ("OSError: [Errno 24] Too many open files", "the engine ran out of open files"),
    "F039": (
        "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
        "the host ran out of memory",
    ),
    "F040": (
        "Subprocess scheduler_0 (pid=7658) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        "scheduler_0 was killed from outside (SIGKILL)",
    ),
    "F041": ("Fatal Python error: Segmentation fault", "the engine's process crashed"),
    "F042": ("KeyboardInterrupt", "the engine was interrupted (SIGINT) while it loaded"),
    "F043": (
        "ValueError: token_to_kv_pool memory leak detected! available_size=32740",
        "places of the cache got lost, and the engine ended itself",
    ),
    "F101": ("Subprocess scheduler_0 (pid=7658) crashed with exit code 1.", "a child process crashed"),
    "F102": (
        "RuntimeError: Rank 0 scheduler died during initialization (exit code: 1).",
        "a scheduler died while it loaded",
    ),
    "F103": ("Scheduler hit an exception: Traceback (most recent call last):", "a scheduler hit an exception"),
    "F104": ("Initialization failed. warmup error: Traceback (most recent call last):", "the start was given up"),
    "F105": (
        "Received sigquit from a child process. It usually means the child failed.",
        "the engine shut itself down because a child failed",
    ),
    "F106": (
        "Sleeping 5 seconds before crash diagnostics to let GPU activity settle.",
        "the engine prepares crash diagnostics",
    ),
    "F107": (
        "SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        "the engine was told to stop",
    ),
    "N001": ("Setup Custom allreduce failed with peer access is not supported", "custom all-reduce is off"),
    "N002": (
        "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 17:21:22.",
        "the engine did not answer its own health check for 20 s",
    ),
    "N003": (
        "Disable DFLASH draft cuda graph because only 0.31 GB GPU memory is available",
        "the draft runs without CUDA graphs: too little GPU memory",
    ),
    "N004": (
        "DFLASH block size mismatch: using speculative_num_draft_tokens=4 but draft config block_size=8.",
        "the block size differs from the one the draft was trained with",
    ),
    "N005": ("Failed to load plugin sglang_ddtree: No module named 'numba'", "an engine plug-in failed to load"),
    "N007": (
        "DDTREE plugin not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24",
        "the DDTREE plugin was not loaded: DDTREE was tested with SGLang 0.5.23, not with 0.5.24",
    ),
    "N006": (
        "DFLASH non-greedy verification is unavailable on this build/device; falling back to greedy argmax verification.",
        "sampled requests are verified greedily on this build",
    ),
}

PROGRESS = [
    ("Multi-thread loading shards:   0% Completed | 0/1 [00:00<?, ?it/s]", Phase.TARGET_WEIGHTS, "0 of 1 shards"),
    (
        "Loading safetensors checkpoint shards:  34% Completed | 21/61 [01:10<02:11,  3.29s/it]",
        Phase.TARGET_WEIGHTS,
        "21 of 61 shards",
    ),
    (
        "Loading pt checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.60it/s]",
        Phase.TARGET_WEIGHTS,
        "2 of 2 shards",
    ),
    (
        "Capturing batches (bs=24 avail_mem=4.08 GB):  50%|█████     | 24/48 [00:10<00:09,  2.50it/s]",
        Phase.GRAPHS,
        "bs 24 of 48",
    ),
    (
        "Capturing batches (bs=8 avail_mem=2.10 GB):  50% Completed | 1/2 [00:00<00:00, 12.00it/s]",
        Phase.GRAPHS,
        "bs 1 of 2",
    ),
    ("  0%|          | 0/48 [00:00<?, ?it/s]", Phase.GRAPHS, "bs 0 of 48"),
]


def test_every_known_text_has_a_sample() -> None:
    """Each text of the grammar is tried on a line, and ids are given once."""
    ids = [known.id for known in GRAMMAR.texts]
    assert sorted(ids) == sorted(SAMPLES)


@pytest.mark.parametrize("text_id", sorted(SAMPLES))
def test_a_known_text_is_recognised_and_titled(text_id: str) -> None:
    """The pattern finds the engine's line, and the title says what the line says."""
    line, title = SAMPLES[text_id]
    known = GRAMMAR.text(text_id)
    assert known is not None
    found = known.pattern.search(line)
    assert found is not None
    assert known.title_of(found) == title


@pytest.mark.parametrize(
    "line",
    [
        # As the engine's source words them: a start goes on after each.
        "--speculative-draft-window-size has no effect with speculative_algorithm=EAGLE3 (honored by DFLASH",
        "Ignoring --speculative-draft-window-size=512: this draft model has a sliding window of 1024",
        # The plugin's own words, which say more than any text here.
        "sglang_ddtree.refusals.RefusedError: DDTREE does not run so: --speculative-draft-window-size: a draft with a window",
    ],
)
def test_a_flag_that_is_only_named_is_no_cause(line: str) -> None:
    """A warning about a flag is no failure, and the plugin's refusal of one is told in its own words."""
    assert [known.id for known in GRAMMAR.texts if known.pattern.search(line)] == []


def test_every_text_is_fit_for_people() -> None:
    """Titles and remedies are sentences without a full stop, ids say the kind, and there are the twenty that operators meet."""
    for known in GRAMMAR.texts:
        assert known.title
        assert known.remedy
        assert not known.title.endswith(".")
        assert not known.remedy.endswith(".")
        assert re.fullmatch(r"[FN]\d{3}", known.id)
        assert (known.id[0] == "N") == (known.kind is TextKind.NOTE)
        assert (known.id[1] == "1") == (known.kind is TextKind.CONSEQUENCE)
    assert sum(known.kind is TextKind.CAUSE for known in GRAMMAR.texts) >= 20


@pytest.mark.parametrize(("line", "phase", "words"), PROGRESS)
def test_a_progress_bar_is_read(line: str, phase: Phase, words: str) -> None:
    """Bars of weights and of graphs give n of m, each where it belongs."""
    mark = next(mark for mark in GRAMMAR.progress if mark.pattern.search(line))
    found = mark.pattern.search(line)
    assert found is not None
    assert phase in mark.phases
    assert mark.wording.format(done=int(found["done"]), total=int(found["total"])) == words


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("[2026-11-29 16:39:06] Init parallel begin.", ""),
        ("[2026-11-29 16:39:06.123 TP0] Load weight begin. avail mem=1 GB", " TP0"),
        ("[2026-11-29 16:39:06 DP0 PP1 TP7 EP3] Load weight begin.", " DP0 PP1 TP7 EP3"),
    ],
)
def test_the_prefix_gives_the_rank(line: str, rank: str) -> None:
    """The time stamp is taken off with or without milliseconds and ranks."""
    found = GRAMMAR.prefix.match(line)
    assert found is not None
    assert found["rank"] == rank


def _patterns() -> list[re.Pattern[str]]:
    return [
        GRAMMAR.prefix,
        GRAMMAR.load_begin,
        GRAMMAR.load_end,
        GRAMMAR.capture,
        *GRAMMAR.noise,
        *GRAMMAR.private,
        *(mark.pattern for mark in GRAMMAR.marks),
        *(mark.pattern for mark in GRAMMAR.progress),
        *(known.pattern for known in GRAMMAR.texts),
    ]


_WORDS = sorted(
    {part for line, _ in SAMPLES.values() for part in line.split()}
    | {part for line, *_ in PROGRESS for part in line.split()}
)


@settings(max_examples=HOSTILE, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(_WORDS), st.text(max_size=8)), max_size=120).map(" ".join), st.integers(1, 400)
)
def test_no_line_is_expensive(seed: str, times: int) -> None:
    """All patterns together read the longest line that is looked at within a tenth of a second."""
    line = (seed * times)[:MAX_LINE]
    began = time.process_time()
    for pattern in _patterns():
        pattern.search(line)
    assert time.process_time() - began < 0.1


@pytest.mark.parametrize(
    "repeated",
    [" ", "a", "Capture ", "CUDA out of memory. GPU ", "Capturing batches (bs=1 ", "0%|", "GET /ready?", "('", "x: '"],
)
def test_a_line_of_one_thing_is_cheap(repeated: str) -> None:
    """Lines made of one repeated piece of a pattern do not make the search explode."""
    line = (repeated * MAX_LINE)[:MAX_LINE]
    began = time.process_time()
    for pattern in _patterns():
        pattern.search(line)
    assert time.process_time() - began < 0.1
