"""The field's deployment is rendered exactly as it was (issue: golden unit)."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from specctl.adapters.templates import Templates
from specctl.fleet.select import Selection
from specctl.ops.inventory import load_selected
from specctl.ops.render import unit_text
from specctl.rollout import launch as launches

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
VENV = "/root/venv_sglang211"
CUDA = "/usr/local/cuda-13.0"
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
    "PATH": f"{CUDA}/bin:{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LD_LIBRARY_PATH": f"{VENV}/lib/python3.12/site-packages/nvidia/cu13/lib:"
    f"{VENV}/lib/python3.12/site-packages/nvidia/cuda_runtime/lib:{CUDA}/lib64",
    "NCCL_IB_DISABLE": "1",
    "NCCL_P2P_LEVEL": "5",
    "NCCL_ALGO": "Ring",
    "OMP_NUM_THREADS": "8",
    "CUDA_HOME": CUDA,
}
COMMON = (
    f"{VENV}/bin/python -m sglang.launch_server --model-path /root/models/Kimi-K2.6 --port 30001 --host 0.0.0.0 --tp-size 8 "
    "--mem-fraction-static 0.85 --context-length 32768 --max-running-requests 64 --page-size 1 --num-continuous-decode-steps 8 "
    "--attention-backend triton --trust-remote-code --grammar-backend none"
)
DFLASH = (
    f"{COMMON} --speculative-algorithm DFLASH --speculative-draft-model-path /root/models/Kimi-K2.6-DFlash-tmp-long "
    "--speculative-dflash-block-size 8"
)


def rendered(algo: str) -> str:
    """Return the unit of the field's host, as `specctl render` prints it."""
    ((host, server),) = load_selected((str(ROOT / "inventory" / "field.yaml"),), Selection(hosts=("ct200",)))
    return unit_text(Templates(working_dir=ROOT), host, server, launches.build(host, server, algo), "N")


def values(text: str, key: str) -> list[str]:
    """Return the values of a key of a unit."""
    return [line.removeprefix(f"{key}=") for line in text.splitlines() if line.startswith(f"{key}=")]


def test_dflash_has_the_fields_environment_and_command() -> None:
    """Environment and ExecStart are the field's, to the letter."""
    text = rendered("dflash")
    assert dict(value.split("=", 1) for value in values(text, "Environment")) == ENVIRONMENT
    assert values(text, "ExecStart") == [DFLASH]


def test_ddtree_differs_in_the_speculative_flags_alone() -> None:
    """Another algo changes `--speculative-…` and nothing else of argv or environment."""
    text = rendered("ddtree")
    assert dict(value.split("=", 1) for value in values(text, "Environment")) == ENVIRONMENT
    (command,) = values(text, "ExecStart")
    assert command.startswith(COMMON + " --speculative-")
    words = shlex.split(command.removeprefix(COMMON))
    assert all(word.startswith("--speculative-") for word in words[::2])
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given["--speculative-algorithm"] == "DDTREE"
    assert given["--speculative-ddtree-budget"] == "7"
    assert given["--speculative-ddtree-topk-cap"] == "1"


@pytest.mark.parametrize("algo", ["dflash", "ddtree"])
def test_whole_unit_is_the_golden_file(algo: str) -> None:
    """The rest of the unit changes only on purpose: renew the file with `specctl render`."""
    assert rendered(algo) == (GOLDEN / f"field-ct200-{algo}.service").read_text()


def test_nothing_measured_enters_a_unit() -> None:
    """Rendering twice gives the same bytes, so that "nothing to do" can be true."""
    assert rendered("dflash") == rendered("dflash")
