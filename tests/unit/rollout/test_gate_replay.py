"""Replay the recordings of the real SGLang 0.5.23 through the gate: every start and every failure that was recorded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specctl.rollout.gate_types import Dead, Failed, GateState, How, Loading, Phase, Ready, Stalled
from specctl.rollout.observation import Observation, Port
from tests.unit.rollout.replay import STEP_S, load, names, replay, spec_for

# What each recorded failed start must be called: id of the known text, and words of the line that says why.
FAILED = {
    "failed/architecture-unknown": ("F016", "'NoSuchForCausalLM' is not a registered model"),
    "failed/attention-backend-fa3-on-cpu": ("F027", "FlashAttention v3 Backend requires SM>=80"),
    "failed/attention-backend-flashinfer-on-cpu": ("F027", "BatchPrefillWithRaggedKVCacheWrapper"),
    "failed/attention-backend-invalid": ("F003", "--attention-backend: invalid choice: 'nosuch'"),
    "failed/attention-backend-triton-on-cpu": ("F027", "0 active drivers ([])"),
    "failed/context-length-too-large": ("F018", "context_length (100000)"),
    "failed/corrupt-config-json": ("F013", "config.json' is not a valid JSON file"),
    "failed/corrupt-safetensors": ("F015", "SafetensorError: Error while deserializing header"),
    "failed/device-cuda-without-gpu": ("F023", "Found no NVIDIA driver"),
    "failed/mem-fraction-1.5": ("F040", "scheduler died during initialization (exit code: -9)"),
    "failed/mem-fraction-negative": ("F019", "leave no GPU memory for the KV cache"),
    "failed/mem-fraction-tiny": ("F019", "leave no GPU memory for the KV cache"),
    "failed/model-id-not-cached-offline": ("F011", "couldn't find them in the cached files"),
    "failed/model-path-missing": ("F010", "'/models/tiny-does-not-exist'"),
    "failed/port-in-use": ("F020", "[Errno 98]"),
    "failed/port-in-use-by-another-sglang": ("F020", "[Errno 98]"),
    "failed/spec-DFLASH-on-cpu": ("F005", "DFLASH speculative decoding is not supported by CpuSRTPlatform"),
    "failed/spec-EAGLE3-no-draft-flag": ("F032", "stub sgl_kernel called"),
    "failed/spec-EAGLE3-no-draft-flag-torch-ops": ("F006", "no attribute 'hot_token_id'"),
    "failed/spec-NGRAM-draft-path-missing": ("F010", "'/models/tiny-draft-does-not-exist'"),
    "failed/spec-STANDALONE-draft-path-missing": ("F010", "'/models/tiny-draft-does-not-exist'"),
    "failed/spec-STANDALONE-no-draft-flag": ("F032", "stub sgl_kernel called"),
    "failed/spec-STANDALONE-no-draft-flag-torch-ops": ("F027", "not supported in decode attention backend"),
    "failed/spec-algorithm-unknown-DDTREE": ("F004", "Unknown speculative algorithm name: DDTREE"),
    "failed/tokenizer-absent": ("F017", "Couldn't instantiate the backend tokenizer"),
    "failed/tp-size-3-indivisible": ("F031", "the total number of ranks"),
    "failed/unknown-flag": ("F001", "unrecognized arguments: --frobnicate 1"),
    "failed/weights-file-absent": ("F014", "Cannot find any model weights"),
    "failed-dflash/draft-path-missing": ("F010", "'/models/tiny-dflash_does_not_exist'"),
    "failed-dflash/drafter-is-a-plain-llama": ("F028", "DFlash layer selection requires num_target_layers"),
    "failed-dflash/last-layer-not-capturable": ("F029", "too many values to unpack"),
    "failed-dflash/mask-token-outside-vocab": ("F028", "mask_token_id is outside the target vocab size"),
    "failed-dflash/no-draft-flag": ("F006", "requires setting --speculative-draft-model-path"),
    "failed-dflash/target-layer-out-of-range": ("F028", "out-of-range layer id"),
}
STARTED_ANYWAY = "failed-dflash/block-size-override-4"

PLAIN_PHASES = [Phase.START, Phase.DISTRIBUTED, Phase.TARGET_WEIGHTS, Phase.KV_POOL, Phase.WARMUP, Phase.READY]
DRAFT_PHASES = [*PLAIN_PHASES[:3], Phase.DRAFT_WEIGHTS, *PLAIN_PHASES[3:]]
STARTED = {
    "startup-ok": (PLAIN_PHASES, 28.0),
    "spec-ngram": (PLAIN_PHASES, 35.97),
    "spec-dflash": (DRAFT_PHASES, 31.14),
    "spec-dflash-random-drafter": (DRAFT_PHASES, 33.48),
}


def _ending(states: list[GateState]) -> GateState:
    """Return the first final state."""
    return next(state for state in states if state.is_final)


def test_every_recorded_failure_is_expected_here() -> None:
    """No recorded failed start is left out of the table."""
    recorded = {*names("failed"), *names("failed-dflash")}
    assert recorded == {*FAILED, STARTED_ANYWAY}


@pytest.mark.parametrize("name", sorted(FAILED))
def test_a_failed_start_is_named_by_its_cause(name: str) -> None:
    """The verdict carries the cause's id and line, never a consequence's, and comes at the latest with the death."""
    recording = load(name)
    fatal, words = FAILED[name]
    ending = _ending(replay(recording))
    assert isinstance(ending.verdict, Failed)
    assert ending.verdict.fatal == fatal
    assert any(words in line for line in ending.verdict.cause), ending.verdict.cause
    assert ending.verdict.remedy
    assert recording.exit_at_s is not None
    assert ending.at_s <= recording.exit_at_s + 1.0


@pytest.mark.parametrize("name", sorted(STARTED))
def test_a_good_start_goes_through_its_phases_in_order(name: str) -> None:
    """Phases come in order, with the draft's weights where there is a draft; ready comes with /ready's 200, not before."""
    recording = load(name)
    phases, ready_s = STARTED[name]
    states = replay(recording, spec_for(has_draft="dflash" in name))
    ending = _ending(states)
    assert isinstance(ending.verdict, Ready)
    assert [span.phase for span in ending.phases] == phases
    assert all(span.took_s is not None and span.took_s >= 0.0 for span in ending.phases)
    first_200 = next(at for at, answer in recording.ready if answer == "200")
    assert first_200 <= ending.at_s < first_200 + 2 * STEP_S
    assert ending.at_s == pytest.approx(ready_s, abs=1.0)


@pytest.mark.parametrize("name", sorted(STARTED))
def test_a_good_start_shows_no_known_failure(name: str) -> None:
    """None of the known fatal texts matches anything in the log of a good start."""
    ending = replay(load(name))[-1]
    assert ending.failing_since_s is None
    assert [hit.text.id for hit in ending.notes if hit.text.id not in {"N004", "N006"}] == []


def test_a_block_size_other_than_the_drafts_is_noted() -> None:
    """The start that overrides the block size fails nothing; the gate notes it and waits for /ready, which nobody asked again."""
    state = replay(load(STARTED_ANYWAY), until_s=31.0)[-1]
    assert isinstance(state.verdict, Loading)
    assert [span.phase for span in state.phases] == DRAFT_PHASES[:-1]
    assert "N004" in [hit.text.id for hit in state.notes]


def test_the_answers_of_the_warm_up_window_are_no_readiness() -> None:
    """While HTTP answers and /ready says 503 the gate stays in warm-up, whatever else answers 200."""
    states = replay(load("startup-warmup-window"), until_s=25.2)
    assert states[-1].phase is Phase.WARMUP
    assert isinstance(states[-1].verdict, Loading)


def test_ready_to_roll_is_no_proof() -> None:
    """Another SGLang holds the port and answers 200 for us, our log says "ready to roll": the verdict is the port, never ready."""
    recording = load("failed/port-in-use-by-another-sglang")
    states = replay(recording, edit=lambda seen: replace(seen, ready=200, port=None))
    ending = _ending(states)
    assert ending.at_s > recording.first("ready to roll")
    assert isinstance(ending.verdict, Failed)
    assert ending.verdict.fatal == "F020"
    assert not any(isinstance(state.verdict, Ready) for state in states)


def test_a_foreign_port_fails_before_the_load_is_wasted() -> None:
    """Where the host tells that the port is somebody else's, the start fails at once with a cause of its own words."""
    recording = load("failed/port-in-use-by-another-sglang")
    ending = _ending(replay(recording, edit=lambda seen: replace(seen, ready=200, port=Port.FOREIGN)))
    assert ending.at_s == 0.0
    assert isinstance(ending.verdict, Failed)
    assert (ending.verdict.fatal, ending.verdict.title) == ("F020", "port 30001 is taken")
    assert "does not belong to this server" in ending.verdict.cause[0]


def test_a_fatal_text_is_reported_although_the_process_lives() -> None:
    """A start that cannot bind lingers for two minutes; the gate waits six seconds for a better cause, then says it."""
    recording = load("failed/port-in-use")
    ending = _ending(replay(recording))
    said_s = recording.first("[Errno 98]")
    assert said_s + 6.0 <= ending.at_s <= said_s + 7.0
    assert isinstance(ending.verdict, Failed)
    assert ending.verdict.exit_status is None


@pytest.mark.parametrize("name", ["failed/attention-backend-triton-on-cpu", "failed-dflash/last-layer-not-capturable"])
def test_a_crash_in_the_warm_up_window_is_a_failure(name: str) -> None:
    """A server that already listened and crashes in its warm-up is never ready."""
    states = replay(load(name))
    assert any(state.phase is Phase.WARMUP for state in states)
    assert not any(isinstance(state.verdict, Ready) for state in states)


@pytest.mark.parametrize(("name", "status"), [("shutdown/sigterm-while-loading", 143), ("kill9-main-serving", 137)])
def test_a_death_without_words_is_dead_within_a_second(name: str, status: int) -> None:
    """A process that goes without a word is dead, with its exit status, and 137 is not called an OOM kill."""
    recording = load(name)
    unready = lambda seen: replace(seen, ready=None)  # noqa: E731  # the gate must still be open when it dies
    ending = _ending(replay(recording, edit=unready))
    assert ending.verdict == Dead(how=How.GONE, exit_status=status)
    assert recording.exit_at_s is not None
    assert recording.exit_at_s <= ending.at_s <= recording.exit_at_s + 1.0 + STEP_S


def test_an_interrupt_while_loading_is_named() -> None:
    """SIGINT during the load is told as such, not as an unknown error."""
    ending = _ending(replay(load("shutdown/sigint-while-loading")))
    assert isinstance(ending.verdict, Failed)
    assert (ending.verdict.fatal, ending.verdict.exit_status) == ("F042", 1)


@pytest.mark.parametrize("name", ["kill9-scheduler-idle", "kill9-scheduler-serving"])
def test_a_killed_scheduler_is_named(name: str) -> None:
    """A scheduler that is killed from outside is the cause; the SIGQUIT after it is not."""
    recording = load(name)
    killed_s = recording.first("crashed with exit code -9")

    def opened(seen: Observation) -> Observation:
        return replace(seen, ready=None)

    ending = _ending(replay(recording, edit=opened))
    assert isinstance(ending.verdict, Failed)
    assert ending.verdict.fatal == "F040"
    assert ending.at_s <= killed_s + 7.0


def test_a_killed_detokenizer_is_named_long_before_the_process_goes() -> None:
    """The engine lingers for 65 s after its detokenizer was killed; the verdict names it after the grace."""
    recording = load("kill9-detokenizer-serving")
    ending = _ending(replay(recording, edit=lambda seen: replace(seen, ready=None)))
    assert isinstance(ending.verdict, Failed)
    assert (ending.verdict.fatal, ending.verdict.title) == ("F040", "detokenizer was killed from outside (SIGKILL)")
    assert recording.exit_at_s is not None
    assert ending.at_s < recording.exit_at_s - 50.0


@pytest.mark.parametrize(
    "name",
    [
        "kill9-main-serving",
        "kill9-scheduler-idle",
        "shutdown/sigquit-4-running",
        "shutdown/sigterm-group-idle",
        "shutdown/sigterm-idle",
        "sigstop-scheduler-idle",
    ],
)
def test_a_ready_verdict_stays_whatever_comes_later(name: str) -> None:
    """The gate judges a load: servers that were ready and then were stopped, killed or frozen were ready."""
    recording = load(name)
    states = replay(recording)
    ending = _ending(states)
    assert isinstance(ending.verdict, Ready)
    assert states[-1] == ending


def test_a_stopped_scheduler_stalls_when_figures_are_known() -> None:
    """SIGSTOP in the warm-up: log lines of our own probes go on, yet nothing moves; stalled, with the signals that were watched.

    The recording has no figures; memory and processor time that stand still, but for a dripping parent, stand in for them.
    """
    recording = load("sigstop-scheduler-during-warmup")

    def figured(seen: Observation) -> Observation:
        busy_s = min(seen.at_s, 28.26)
        return replace(seen, rss_bytes=int(busy_s * 5e7), cpu_s=busy_s * 0.9 + max(seen.at_s - 28.26, 0.0) * 0.02)

    ending = _ending(replay(recording, spec_for(stall_s=30.0), edit=figured))
    assert isinstance(ending.verdict, Stalled)
    assert ending.at_s == pytest.approx(28.5 + 30.0, abs=3.0)
    assert [signal.name for signal in ending.verdict.watched] == ["log lines", "CPU time", "memory", "phase"]


def test_a_stopped_scheduler_is_waited_for_when_nothing_is_known() -> None:
    """With the log alone silence means nothing: the same start is ready after the process goes on."""
    ending = _ending(replay(load("sigstop-scheduler-during-warmup"), spec_for(stall_s=30.0)))
    assert isinstance(ending.verdict, Ready)
    assert ending.at_s > 88.0


@pytest.mark.parametrize("name", sorted(FAILED))
def test_without_a_journal_a_failure_is_a_death(name: str) -> None:
    """With the journal lost the gate still knows that the process is gone, and with which status."""
    recording = load(name)
    ending = _ending(replay(recording, edit=lambda seen: replace(seen, lines=(), journal_lost=True)))
    assert ending.verdict == Dead(how=How.GONE, exit_status=recording.exit_status)


def test_without_a_journal_a_start_is_still_ready() -> None:
    """With the journal lost the port and /ready are enough; the warm-up shows because the port is our own."""
    states = replay(load("startup-ok"), edit=lambda seen: replace(seen, lines=(), journal_lost=True))
    ending = _ending(states)
    assert isinstance(ending.verdict, Ready)
    assert [span.phase for span in ending.phases] == [Phase.START, Phase.WARMUP, Phase.READY]
