"""The doctor on a real lab server that no specctl deployed: its own load, its own probe, its log, and what it concludes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import specctl.lab
from specctl.adapters.inventory_files import BuiltInProfiles
from specctl.adapters.local import LocalTransport
from specctl.adapters.session import HostSession
from specctl.control.mode import Mode, mode
from specctl.doctor.evidence import Evidence
from specctl.doctor.judge import judge
from specctl.doctor.lossless_types import Probe
from specctl.doctor.types import Report
from specctl.fleet.profiles import Profiles
from specctl.fleet.types import Server
from specctl.ops import doctor_live, doctor_look, doctor_probe
from specctl.ops.contact import Contact
from specctl.ops.doctor_gather import Subject, log_lines, read_log
from specctl.ops.engine_http import EngineClient
from tests.fakes import LOCAL, SERVER, facts
from tests.labmodels import Folders
from tests.labserver import ALLOW_FAULTS, LabServer

MODELS = Path(specctl.lab.__file__).parent / "models"
SHIPPED = Folders(target=MODELS / "target", draft=MODELS / "dflash")
TREE = mode("ddtree", {"block_size": 8, "tree_budget": 16, "topk_cap": 8})
CHAIN = mode("dflash", {"block_size": 8})
NAMES = {"dflash": "DFLASH", "ddtree": "DDTREE", "none": None}
FLAGS = {
    "block_size": "speculative_dflash_block_size",
    "tree_budget": "speculative_ddtree_budget",
    "topk_cap": "speculative_ddtree_topk_cap",
}


class LogFile:
    """A host's session that knows one thing: what the server has printed."""

    def __init__(self, server: LabServer) -> None:
        self._server = server

    def call(
        self,
        _op: str,
        _args: Mapping[str, object],
        *,
        on_event: Callable[[Mapping[str, object]], None] | None = None,
        **_more: object,
    ) -> Mapping[str, object]:
        """Tell the log's lines, whatever is asked."""
        if on_event is not None:
            on_event({"lines": self._server.log().splitlines()})
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    """A running lab server and the way to it."""

    lab: LabServer
    contact: Contact
    server: Server

    @property
    def client(self) -> EngineClient:
        """Return the way to its engine."""
        return EngineClient.of(self.contact, self.server)

    def switch(self, wanted: Mode) -> None:
        """Change the mode live."""
        knobs = {FLAGS[name]: value for name, value in wanted.knobs}
        answer = self.lab.post(
            "/set_internal_state", {"server_args": {"speculative_algorithm": NAMES[wanted.algo], **knobs}}
        )
        assert answer.json() == [True], self.lab.log()

    def evidence(self, running: Mode) -> Evidence:
        """Return what is known without a load: the engine's own words, its log and the profile's conventions."""
        profile = self.server.profile
        info, _ = doctor_look.info(self.client)
        base = Evidence(
            host=self.contact.host.name,
            server=self.server.name,
            mode=running,
            counts_root=profile.counts_root,
            counts_bonus=profile.counts_bonus,
            has_tree_line=True,
            same_start=True,
            no_gpus=True,
            info=info,
            observations=(doctor_look.look(self.client),),
        )
        return replace(base, log=read_log(self._subject, log_lines(self._subject)))

    def examined(self, running: Mode, *, load: bool = True, probe: bool = True) -> tuple[Evidence, Report]:
        """Put the doctor's load and probe on the server, as one that has served before, and judge."""
        if load:
            self.lab.generate("import os", tokens=220)
        evidence = self.evidence(running)
        if load:
            evidence = doctor_live.loaded(self._subject, evidence)
        if probe:
            evidence = doctor_probe.probed(self.client, evidence)
        return evidence, judge(evidence)

    def probed(self, running: Mode) -> Probe:
        """Put the doctor's probe alone on the server."""
        probe, _ = doctor_probe.Prober(client=self.client, host="lab", mode=running).run()
        return probe

    @property
    def _subject(self) -> Subject:
        return Subject(contact=self.contact, wanted=self.server, server=self.server, facts=facts(), client=self.client)


def lab(
    folder: Path, faults: Iterable[str] = (), *, trace: bool = True, start: Mode = TREE, more: Iterable[str] = ()
) -> LabServer:
    """Return a lab server with the shipped models and these faults, not started."""
    words = ["--enable-metrics", *(word for fault in faults for word in ("--inject", fault)), *more]
    if trace:
        words += ["--verify-trace", str(folder / "verify.jsonl")]
    if NAMES[start.algo] is not None:
        words += ["--speculative-algorithm", str(NAMES[start.algo])]
    for name, value in start.knobs:
        words += [f"--{FLAGS[name].replace('_', '-')}", str(value)]
    return LabServer(SHIPPED, folder, *words, env=ALLOW_FAULTS | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})


def patient(server: LabServer) -> Patient:
    """Return the way to a server that is ready."""
    profile = Profiles({}, BuiltInProfiles()).get("lab")
    assert profile is not None
    chat = replace(SERVER, profile=profile, port=server.port, secrets={})
    host = replace(LOCAL, servers=(chat,))
    session = cast(HostSession, LogFile(server))  # the one op that is asked for here
    return Patient(lab=server, contact=Contact(host=host, transport=LocalTransport(host), session=session), server=chat)


def ids(report: Report) -> set[str]:
    """Return the ids of a report's findings."""
    return {finding.id for finding in report.findings}
