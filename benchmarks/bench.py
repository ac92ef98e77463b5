"""Hold `specctl bench`'s load against `sglang.bench_serving`, in turns on one lab engine; write docs/bench.md's measured blocks.

    python benchmarks/bench.py           both load tools in turns: their throughputs, the ratio and its interval
    python benchmarks/bench.py --docs    the same, and a real bench by the command line, into docs/bench.md and docs/bench.svg

Needs the real SGLang's environment for the other tool (`make sglang-env`); its engine is not started. Both send the same prompts,
answers of the same length, as many at once. On a quiet machine the ratio's interval holds 1; on a busy one it says how busy it was.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import yaml  # noqa: E402  # after the path is set

from specctl.adapters.inventory_files import BuiltInProfiles  # noqa: E402
from specctl.adapters.local import LocalTransport  # noqa: E402
from specctl.adapters.transport import Transport  # noqa: E402
from specctl.fleet.profiles import Profiles  # noqa: E402
from specctl.measure import prompts  # noqa: E402
from specctl.measure.figures import figures  # noqa: E402
from specctl.measure.intervals import Interval, relative_difference  # noqa: E402
from specctl.measure.load import Closed, Level, Run  # noqa: E402
from specctl.measure.load_plan import Requests  # noqa: E402
from specctl.ops.engine_http import EngineClient  # noqa: E402
from specctl.ops.load import run_level  # noqa: E402
from tests import fakes  # noqa: E402
from tests.labmodels import Folders  # noqa: E402
from tests.labserver import LabServer, free_port  # noqa: E402
from tests.sglang import environment  # noqa: E402

MODELS = ROOT / "specctl/lab/models"
PAGE, PICTURE = ROOT / "docs/bench.md", ROOT / "docs/bench.svg"
SPECCTL = Path(sys.executable).with_name("specctl")
KEY = "sk-lab-0123456789"
MS = 1000.0
WITHIN_S = 1800.0
LAB = Profiles({}, BuiltInProfiles()).get("lab")
assert LAB is not None
ALGOS = LAB.algos


@dataclass(frozen=True, slots=True)
class Side:
    """One tool's figures of one run: tokens a second from the first request to the last answer; medians in milliseconds."""

    tokens_s: float
    ttft_ms: float
    itl_ms: float
    steady_tokens_s: float | None = None


@dataclass(frozen=True, slots=True)
class Here:
    """A way to this machine, as the load generator wants it."""

    transport: Transport


@dataclass(frozen=True, slots=True)
class Pair:
    """What both tools found at one concurrency."""

    concurrency: int
    ours: Sequence[Side]
    theirs: Sequence[Side]

    @property
    def difference(self) -> Interval:
        """Return by which part theirs is more than ours."""
        found = relative_difference([each.tokens_s for each in self.ours], [each.tokens_s for each in self.theirs])
        assert found is not None
        return found

    @property
    def agrees(self) -> bool:
        """Claim that the interval of the difference holds none."""
        found = self.difference
        return found.low is not None and found.high is not None and found.low <= 0 <= found.high


def ours(client: EngineClient, level: Level) -> Side:
    """Send a level with our load generator."""
    run = run_level(client, level, prompts.shipped("code"))
    broken = [each.failure for each in run.timings if each.failure is not None]
    if broken or run.stopped:
        raise SystemExit(f"our load failed: {run.stopped or broken[0]}")
    found = figures(run)
    assert found.ttft is not None
    assert found.itl is not None
    return Side(whole_tokens_s(run), found.ttft.p50 * MS, found.itl.p50 * MS, found.tokens_s)


def whole_tokens_s(run: Run) -> float:
    """Return tokens a second as bench_serving reckons: all tokens over the time from the first request to the last answer."""
    span_s = max(each.ended_s for each in run.timings) - min(each.sent_s for each in run.timings)
    return sum(each.output_tokens or 0 for each in run.timings) / span_s


def theirs(port: int, level: Level, folder: Path) -> Side:
    """Send the same prompts with bench_serving."""
    assert level.concurrency is not None
    dealt = Requests(level, prompts.shipped("code"))
    sends = [dealt.closed(slot, turn) for turn in range(level.rounds) for slot in range(level.concurrency)]
    data, answer = folder / "prompts.jsonl", folder / f"answer-{level.seed}.json"
    rows = [
        json.dumps({"conversations": [{"content": each.text}, {"content": "an answer of its own"}]}) for each in sends
    ]
    data.write_text("\n".join(rows) + "\n")
    argv = [
        str(environment.python()), "-m", "sglang.bench_serving", "--backend", "sglang", "--host", "127.0.0.1",
        "--port", str(port), "--dataset-name", "custom", "--dataset-path", str(data), "--num-prompts", str(len(sends)),
        "--sharegpt-output-len", str(level.tokens), "--max-concurrency", str(level.concurrency), "--model", "lab",
        "--tokenizer", str(MODELS / "target"), "--seed", str(level.seed), "--output-file", str(answer), "--disable-tqdm",
    ]  # fmt: skip
    done = subprocess.run(
        argv, env={**os.environ, "HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    if done.returncode != 0 or not answer.exists():
        raise SystemExit(f"bench_serving failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    found = json.loads(answer.read_text().splitlines()[-1])
    if found["completed"] != len(sends):
        raise SystemExit(f"bench_serving completed {found['completed']} of {len(sends)} requests")
    return Side(found["output_throughput"], found["median_ttft_ms"], found["median_itl_ms"])


def side_by_side(asked: argparse.Namespace) -> list[Pair]:
    """Run both tools in turns (ours, theirs, theirs, ours), at every concurrency."""
    speculation = [word for pair in ALGOS[asked.algo].select.items() for word in map(str, pair)]
    folders = Folders(target=MODELS / "target", draft=MODELS / "dflash")
    pairs = []
    with tempfile.TemporaryDirectory(prefix="specctl-bench-") as made:
        options = ("--enable-metrics", "--max-running-requests", "32", *speculation)
        with LabServer(folders, Path(made), *options, env={"OMP_NUM_THREADS": "1"}) as engine:
            engine.ready()
            server = replace(fakes.SERVER, port=engine.port, profile=replace(fakes.PROFILE, engine="lab"))
            client = EngineClient(Here(LocalTransport(fakes.LOCAL)), server)
            for concurrency in asked.concurrency:
                pairs.append(_pair(client, concurrency, asked, Path(made)))
                print(row(pairs[-1]), flush=True)
    return pairs


def _pair(client: EngineClient, concurrency: int, asked: argparse.Namespace, folder: Path) -> Pair:
    found: dict[str, list[Side]] = {"ours": [], "theirs": []}
    for turn in range(asked.pairs):
        level = Level(
            pace=Closed(concurrency=concurrency), tokens=asked.tokens, warmup=0, rounds=asked.rounds, seed=turn
        )
        for side in ("ours", "theirs") if turn % 2 == 0 else ("theirs", "ours"):
            found[side].append(ours(client, level) if side == "ours" else theirs(client.server.port, level, folder))
    return Pair(concurrency, found["ours"], found["theirs"])


HEAD = """| C | specctl, tok/s | bench_serving, tok/s | bench_serving to specctl | steady, tok/s | TTFT, ms | ITL, ms |
|---|---|---|---|---|---|---|"""


def row(pair: Pair) -> str:
    """Return a row of the table: throughputs reckoned alike, their difference, and what only one has, medians of the runs."""
    found = pair.difference
    assert found.low is not None
    assert found.high is not None
    middle = {
        name: (median(getattr(each, name) for each in pair.ours), median(getattr(each, name) for each in pair.theirs))
        for name in ("tokens_s", "ttft_ms", "itl_ms")
    }
    steady = median(each.steady_tokens_s or 0.0 for each in pair.ours)
    difference = f"{found.centre * 100:+.1f} % ({found.low * 100:+.1f} … {found.high * 100:+.1f})"
    both = " | ".join(f"{one:.1f} / {other:.1f}" for one, other in (middle["ttft_ms"], middle["itl_ms"]))
    one, other = middle["tokens_s"]
    return f"| {pair.concurrency} | {one:,.0f} | {other:,.0f} | {difference} | {steady:,.0f} | {both} |"


def inventory(folder: Path) -> Path:
    """Write an inventory of one lab server on this machine."""
    server = {
        "engine": "lab", "target": "lab-target", "draft": "lab-draft", "port": free_port(), "algo": "none",
        "knobs": {"dflash": {"block_size": 8}, "ddtree": {"block_size": 8, "tree_budget": 16, "topk_cap": 8}},
        "options": {"enable-metrics": True, "max-running-requests": 32}, "secrets": {"api_key": "env:LAB_API_KEY"},
        "env": {"OMP_NUM_THREADS": "1"},
    }  # fmt: skip
    models = {
        "lab-target": {"path": str(MODELS / "target")},
        "lab-draft": {"kind": "draft", "path": str(MODELS / "dflash"), "target": "lab-target"},
    }
    host = {
        "connect": {"via": "local"}, "service_manager": "supervisor", "state_dir": str(folder / "state"),
        "servers": ["lab"], "launch": {"python": sys.executable},
    }  # fmt: skip
    path = folder / "inventory.yaml"
    path.write_text(yaml.safe_dump({"models": models, "servers": {"lab": server}, "hosts": {"local": host}}))
    return path


def by_hand(asked: argparse.Namespace) -> Mapping[str, str]:
    """Bench a deployed lab server as a user would, under none and under dflash; return what the terminal shows."""
    shown = {}
    with tempfile.TemporaryDirectory(prefix="specctl-bench-") as made:
        folder = Path(made)
        own = {"XDG_STATE_HOME": made, "LAB_API_KEY": KEY, "COLUMNS": "80", "SPECCTL_INVENTORY": str(inventory(folder))}
        env = {**os.environ, **own}
        load = (
            "-c",
            ",".join(map(str, asked.docs_concurrency)),
            "--tokens",
            str(asked.tokens),
            "--runs",
            str(asked.runs),
        )
        try:
            for act, algo, plot in (("deploy", "none", ()), ("switch", "dflash", ("--plot", str(PICTURE)))):
                run(env, act, "--host", "local", "--algo", algo, "--yes")
                shown[algo] = run(env, "bench", "--host", "local", *load, "--prompts", "code", "--yes", *plot)
            shown["compare"] = run(env, "bench", "compare")
        finally:
            run(env, "undeploy", "--host", "local", "--yes")
    return shown


def run(env: Mapping[str, str], *words: str) -> str:
    """Run a command of specctl's and return what it prints."""
    done = subprocess.run(
        [str(SPECCTL), *words], env=env, capture_output=True, text=True, timeout=WITHIN_S, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"specctl {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout.rstrip()


def write_block(name: str, text: str) -> None:
    """Put a text between the page's two marks of that name."""
    page = PAGE.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    found = re.sub(rf"{begin}.*?{end}", lambda _: f"{begin}\n{text}\n{end}", page, flags=re.DOTALL)
    if begin not in page:
        raise SystemExit(f"{PAGE} has no {begin}")
    PAGE.write_text(found, encoding="utf-8")


def indented(text: str) -> str:
    """Return a text as a block of a page."""
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def main() -> int:
    """Measure, print, and write where that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(part) for part in text.split(",")]  # noqa: E731  # a type of argparse's
    parser.add_argument("--concurrency", type=numbers, default=[1, 4, 8], help="of the comparison")
    parser.add_argument("--pairs", type=int, default=6, help="runs of each tool at each concurrency")
    parser.add_argument("--rounds", type=int, default=12, help="requests a slot and run")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--algo", choices=tuple(ALGOS), default="dflash")
    parser.add_argument("--docs", action="store_true", help="write docs/bench.md's blocks and docs/bench.svg")
    parser.add_argument("--docs-concurrency", type=numbers, default=[1, 2, 4, 8, 16], help="of the bench for the page")
    parser.add_argument("--runs", type=int, default=6, help="of the bench for the page")
    asked = parser.parse_args()
    if (why := environment.missing()) is not None:
        print(f"error: {why}", file=sys.stderr)
        return 1
    print(HEAD)
    pairs = side_by_side(asked)
    agreed = sum(pair.agrees for pair in pairs)
    print(f"the interval holds no difference at {agreed} of {len(pairs)} concurrencies")
    if asked.docs:
        shown = by_hand(asked)
        write_block("serving", "\n".join((HEAD, *map(row, pairs))))
        for name in ("none", "dflash", "compare"):
            write_block(name, indented(shown[name]))
            print(f"\n{shown[name]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
