"""The command line in SGLang's spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from specctl.lab.serve import options

MODEL = ("--model-path", "/m")


def parse(*arguments: str, allow: bool = False) -> options.Options:
    """Parse a command line after the model's path."""
    return options.parse([*MODEL, *arguments], {"SPECCTL_LAB_ALLOW_FAULTS": "1"} if allow else {})


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, allow: bool = False) -> tuple[object, str]:
    """Return the exit code and the last line of a refused command line."""
    with pytest.raises(SystemExit) as ended:
        parse(*arguments, allow=allow)
    return ended.value.code, capsys.readouterr().err.splitlines()[-1]


def test_every_flag_reaches_its_value() -> None:
    """The flags of a rendered launch arrive under SGLang's own names."""
    found = parse(
        *(
            "--host",
            "0.0.0.0",
            "--port",
            "30001",
            "--tp-size",
            "8",
            "--mem-fraction-static",
            "0.85",
            "--context-length",
            "32768",
        ),
        *("--max-running-requests", "64", "--page-size", "1", "--speculative-algorithm", "dflash"),
        *("--speculative-draft-model-path", "/d", "--speculative-dflash-block-size", "8", "--enable-metrics"),
        *(
            "--api-key",
            "k1",
            "--admin-api-key",
            "k2",
            "--served-model-name",
            "lab",
            "--max-queued-requests",
            "9",
            "--random-seed",
            "5",
        ),
    )
    assert (found.host, found.port, found.tp_size, found.context_length, found.max_running_requests) == (
        "0.0.0.0",
        30001,
        8,
        32768,
        64,
    )
    assert (found.speculative_algorithm, found.speculative_draft_model_path) == ("DFLASH", Path("/d"))
    assert (found.speculative_dflash_block_size, found.enable_metrics, found.served_model_name) == (8, True, "lab")
    assert (found.api_key, found.admin_api_key, found.max_queued_requests, found.random_seed) == ("k1", "k2", 9, 5)


def test_defaults() -> None:
    """Without flags nothing speculates, metrics are off, the name is the path and the port SGLang's."""
    found = parse()
    assert (found.speculative_algorithm, found.enable_metrics, found.served_model_name) == (None, False, "/m")
    assert (found.host, found.port, found.decode_log_interval) == ("127.0.0.1", 30000, 40)


@pytest.mark.parametrize(("text", "number"), [("32768", 32768), ("32k", 32000), ("32Ki", 32768), ("1m", 1_000_000)])
def test_human_integers(text: str, number: int) -> None:
    """A context length takes SGLang's suffixes."""
    assert parse("--context-length", text).context_length == number


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--frobnicate", "1"), "unrecognized arguments: --frobnicate 1"),
        (("--context-len", "100"), "unrecognized arguments: --context-len 100"),
        (("--context-length", "32K"), "invalid human-readable int value: '32K'"),
        (("--port", "x"), "argument --port: invalid int value: 'x'"),
        (("--max-running-requests", "0"), "must be at least 1, got 0"),
        (("--load-seconds", "inf"), "must be a number of seconds, got inf"),
        (("--log-level", "loud"), "argument --log-level: invalid choice: 'loud'"),
    ],
)
def test_refusals(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong command line ends with exit code 2 and the parser's words; prefixes are not names."""
    code, line = refusal(capsys, *arguments)
    assert (code, line.startswith("sglang serve: error:")) == (2, True)
    assert words in line


def test_faults_need_permission(capsys: pytest.CaptureFixture[str]) -> None:
    """A fault is refused where the environment does not allow faults, and taken where it does."""
    code, line = refusal(capsys, "--inject", "never-ready")
    assert (code, "SPECCTL_LAB_ALLOW_FAULTS=1" in line) == (2, True)
    assert parse("--inject", "never-ready", allow=True).faults.has("never-ready")
    both = parse("--inject", "never-ready,slow-steps:0.1", allow=True).faults
    assert (both.has("never-ready"), both.number("slow-steps")) == (True, 0.1)


def test_unknown_fault_lists_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown fault ends with exit code 2 and the list of the known ones."""
    code, line = refusal(capsys, "--inject", "explode", allow=True)
    assert (code, "claims-ddtree-runs-linear" in line) == (2, True)


class TestConfigFile:
    """A --config file lies below the command line."""

    def test_two_tokens_are_merged(self, tmp_path: Path) -> None:
        """Values, switches and underscores of the file count, the command line wins."""
        file = tmp_path / "server.yaml"
        file.write_text("api-key: secret\nenable_metrics: true\nskip-server-warmup: false\nport: 1\n", encoding="utf-8")
        found = parse("--config", str(file), "--port", "2")
        assert (found.api_key, found.enable_metrics, found.skip_server_warmup, found.port) == ("secret", True, False, 2)

    def test_secrets_stay_out_of_the_command(self, tmp_path: Path) -> None:
        """The launch command shows the file, not what is in it."""
        file = tmp_path / "server.yml"
        file.write_text("api-key: secret\n", encoding="utf-8")
        assert parse("--config", str(file)).launch_command == f"--model-path /m --config {file}"

    def test_one_token_is_ignored(self, tmp_path: Path) -> None:
        """The form with an equals sign parses and does nothing, as in SGLang 0.5.23."""
        file = tmp_path / "server.yaml"
        file.write_text("api-key: secret\n", encoding="utf-8")
        assert parse(f"--config={file}").api_key is None

    def test_unknown_key(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A key that is no option ends like the option would."""
        file = tmp_path / "server.yaml"
        file.write_text("frobnicate: 1\n", encoding="utf-8")
        assert refusal(capsys, "--config", str(file)) == (
            2,
            "sglang serve: error: unrecognized arguments: --frobnicate 1",
        )

    @pytest.mark.parametrize(("name", "body"), [("a.json", "{}"), ("a.yaml", "- 1\n"), ("a.yaml", None)])
    def test_not_a_mapping_of_yaml(self, name: str, body: str | None, tmp_path: Path) -> None:
        """A file that is absent, no YAML or no mapping is an error of its own."""
        file = tmp_path / name
        if body is not None:
            file.write_text(body, encoding="utf-8")
        with pytest.raises((ValueError, TypeError), match=r"(?i)config file"):
            parse("--config", str(file))

    def test_two_files(self, tmp_path: Path) -> None:
        """Two files are refused."""
        with pytest.raises(ValueError, match="Only one allowed"):
            parse("--config", str(tmp_path / "a.yaml"), "--config", str(tmp_path / "b.yaml"))
