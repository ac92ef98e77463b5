"""The protocol's part of the SSH transport, and the only module that imports Paramiko: links, host keys, our keys, heartbeat.

Nothing here knows of inventories or configuration files; ssh.py puts the parts together.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from pathlib import Path

import paramiko
from paramiko.agent import AgentKey, AgentSSH
from paramiko.auth_strategy import AuthSource, AuthStrategy, InMemoryPrivateKey, NoneAuth, SourceResult
from paramiko.common import MSG_CHANNEL_CLOSE, MSG_CHANNEL_REQUEST, MSG_CHANNEL_WINDOW_ADJUST
from paramiko.pkey import UnknownKeyType

from specctl.adapters import known_hosts, lasting, ssh_keys, ssh_refusals
from specctl.adapters.ssh_refusals import Leg
from specctl.adapters.ssh_stream import TICK_S, SshStream

# All that Paramiko and the socket below it raise when a connection fails.
LINK_ERRORS = (paramiko.SSHException, EOFError, OSError)
CHANNEL_LIMIT_S = 15.0
# Messages of an open channel (RFC 4254): window adjust, data, extended data, end of file, close, request.
CHANNEL_MESSAGES = range(MSG_CHANNEL_WINDOW_ADJUST, MSG_CHANNEL_REQUEST + 1)
# A person may have to touch a token before the agent signs.
AGENT_LIMIT_S = 60.0
FORBIDDEN = 1
# SHA-1 signatures (ssh-rsa) are never accepted, as in OpenSSH since 8.8: an RSA key must sign with SHA-2.
_SIGNATURES_OF_KEY_TYPE = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
_WEAK_SIGNATURE = "ssh-rsa"

# Paramiko reports every failure to its log as well; without a handler Python would print tracebacks over our one line.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Link(paramiko.Transport):
    """A Paramiko connection that keeps the signals that ended programs, and never speaks on a channel that it has closed.

    Paramiko makes a message under its channel's lock and sends it outside, so that an end of input may leave after the close
    that another thread sends; sshd hangs up on whoever names a channel that is gone, and every other program is lost with it.
    """

    def __init__(self, sock: socket.socket, **options: bool | dict[str, list[str]] | None) -> None:
        self.signals: dict[int, str] = {}
        self._sending = threading.Lock()
        self._gone: set[int] = set()
        super().__init__(sock, **options)  # type: ignore[arg-type]  # SSHClient.connect hands its own options through

    def _send_user_message(self, data: paramiko.Message) -> None:
        """Send a message, unless it speaks of a channel whose close has been sent."""
        packet = data.asbytes()
        number = int.from_bytes(packet[1:5], "big")
        if packet[0] not in CHANNEL_MESSAGES:
            super()._send_user_message(data)  # type: ignore[misc]  # the stubs leave out what subclasses may override
            return
        with self._sending:
            if number in self._gone:
                return
            if packet[0] == MSG_CHANNEL_CLOSE:
                self._gone.add(number)
            super()._send_user_message(data)  # type: ignore[misc]  # as above

    def _parse_channel_open_success(self, m: paramiko.Message) -> None:
        """Note that the host uses a number again for a new channel."""
        m.get_int()
        self._gone.discard(m.get_int())
        m.rewind()
        super()._parse_channel_open_success(m)  # type: ignore[misc]  # as above

    def treat_request(self, channel: paramiko.Channel, message: paramiko.Message) -> None:
        """Keep an exit-signal, then let Paramiko treat the request as ever."""
        if message.get_text() == "exit-signal":
            message.get_boolean()
            self.signals[channel.get_id()] = message.get_text()
        message.rewind()
        message.get_int()
        channel._handle_request(message)  # type: ignore[attr-defined]  # noqa: SLF001  # what our table entry stands in for


def _treat_request(channel: paramiko.Channel, message: paramiko.Message) -> None:
    assert isinstance(channel.transport, Link)
    channel.transport.treat_request(channel, message)


# Paramiko has no hook for exit-signal; its table of handlers, a class attribute, is the narrowest place to add one.
Link._channel_handler_table = {  # type: ignore[attr-defined]  # noqa: SLF001
    **paramiko.Transport._channel_handler_table,  # type: ignore[attr-defined]  # noqa: SLF001
    MSG_CHANNEL_REQUEST: _treat_request,
}


class Verifier(paramiko.MissingHostKeyPolicy):
    """Asked by Paramiko for every key, since it is given no known keys itself: our reading of known_hosts decides."""

    def __init__(self, leg: Leg, entries: Sequence[known_hosts.Entry]) -> None:
        self._leg = leg
        self._entries = entries

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """Return where the key is vouched for; raise ConnectError where it is not."""
        names, key_type, blob = self._leg.settings.known_names, key.get_name(), key.asbytes()
        verdict = known_hosts.judge(self._entries, names=names, key_type=key_type, blob=blob)
        refusal = ssh_refusals.host_key_refusal(self._leg, verdict, key_type=key_type, blob=blob)
        if refusal is not None:
            raise refusal


class _KeyOffer(InMemoryPrivateKey):
    """A key to offer, with the words for it."""

    def __init__(self, username: str, pkey: paramiko.PKey, *, label: str) -> None:
        super().__init__(username, pkey)
        self.label = label


class _Agent(AgentSSH):
    """The operator's agent at a given socket (Paramiko's own knows only SSH_AUTH_SOCK); one that is not there holds no keys."""

    def __init__(self, path: str | None) -> None:
        super().__init__()
        if path is None:
            return
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(AGENT_LIMIT_S)
        try:
            sock.connect(path)
            self._connect(sock)  # type: ignore[attr-defined]  # the stubs leave out what subclasses are given
        except (OSError, paramiko.SSHException):
            sock.close()

    def close(self) -> None:
        """Hang up on the agent."""
        self._close()  # type: ignore[attr-defined]  # as above


class Keys(AuthStrategy):
    """Offers what OpenSSH would: nothing first (to learn what the host accepts), then keys of agent and files; never a password."""

    def __init__(self, leg: Leg) -> None:
        super().__init__(ssh_config=paramiko.SSHConfig())
        self._leg = leg
        self._skipped: list[str] = []

    def get_sources(self) -> Generator[AuthSource, None, None]:
        """Yield what to try, in order."""
        settings = self._leg.settings
        yield NoneAuth(settings.user)
        with contextlib.closing(_Agent(settings.identity_agent)) as agent:
            held: dict[bytes, AgentKey] = {key.asbytes(): key for key in agent.get_keys()}
            files = settings.identity_files
            blobs = {file: blob for file in files if (blob := ssh_keys.public_blob(file)) is not None}
            for offer in ssh_keys.order_offers(files, blobs, tuple(held), identities_only=settings.identities_only):
                match offer:
                    case ssh_keys.AgentOffer(blob=blob):
                        label = f"{held[blob].comment or known_hosts.fingerprint(blob)} [agent]"
                        yield _KeyOffer(settings.user, held[blob], label=label)
                    case ssh_keys.FileOffer(path=path):
                        key = self._load(path)
                        if key is not None:
                            yield _KeyOffer(settings.user, key, label=path)

    def authenticate(self, transport: paramiko.Transport) -> list[SourceResult]:
        """Try each until the host is content; raise ConnectError with all that was tried when it is not."""
        tried: list[str] = []
        methods: tuple[str, ...] = ()
        with contextlib.closing(self.get_sources()) as sources:
            for source in sources:
                more: Sequence[str] = ()
                try:
                    more = source.authenticate(transport)
                except paramiko.BadAuthenticationType as error:
                    methods = tuple(error.allowed_types)
                except LINK_ERRORS:
                    # Refused, or the link is gone: the next lines look which.
                    more = ()
                if transport.is_authenticated():
                    return []
                if isinstance(source, _KeyOffer):
                    tried.append(source.label)
                if more:
                    raise ssh_refusals.half_authenticated(self._leg, more)
                if not transport.is_active() or (methods and "publickey" not in methods):
                    break
        hung_up = not transport.is_active()
        raise ssh_refusals.not_authenticated(
            self._leg, tried=tried, skipped=self._skipped, methods=methods, hung_up=hung_up
        )

    def _load(self, path: str) -> paramiko.PKey | None:
        """Return a private key, or None and a note: files that are not there are OpenSSH's defaults and go unmentioned."""
        if not lasting.is_file(Path(path)):
            return None
        try:
            return paramiko.PKey.from_path(path)
        except (TypeError, paramiko.PasswordRequiredException):
            self._skipped.append(f"{path} (locked by a passphrase)")
        except UnknownKeyType:
            self._skipped.append(f"{path} (a kind of key that only an agent can use)")
        except (ValueError, paramiko.SSHException):
            self._skipped.append(f"{path} (not a private key)")
        except OSError as error:
            self._skipped.append(f"{path} ({error.strerror})")
        return None


class Heartbeat(threading.Thread):
    """Asks the far end for an answer every `interval_s` and hangs up when none comes: TCP alone would wait a quarter of an hour."""

    def __init__(self, link: paramiko.Transport, *, interval_s: float, limit_s: float) -> None:
        super().__init__(daemon=True, name="specctl-heartbeat")
        self._link = link
        self._interval_s = interval_s
        self._limit_s = limit_s
        self._stopped = threading.Event()

    def run(self) -> None:
        """Ask, until told to stop or the link has gone."""
        while not self._stopped.wait(self._interval_s) and self._link.is_active():
            alarm = threading.Timer(self._limit_s, self._link.close)
            alarm.daemon = True
            alarm.start()
            try:
                self._link.global_request("keepalive@openssh.com", wait=True)
            except LINK_ERRORS:
                return
            finally:
                alarm.cancel()

    def close(self) -> None:
        """Stop asking."""
        self._stopped.set()


def link_factory(entries: Sequence[known_hosts.Entry], names: Sequence[str]) -> Callable[..., Link]:
    """Return what builds a link that asks the host first for the types of key that known_hosts holds for it, as OpenSSH does."""
    known = known_hosts.known_key_types(entries, names=names)
    wanted = [signature for kind in known for signature in _SIGNATURES_OF_KEY_TYPE.get(kind, (kind,))]

    def build(sock: socket.socket, **options: bool | dict[str, list[str]] | None) -> Link:
        link = Link(sock, **options)
        security = link.get_security_options()
        able = [kind for kind in security.key_types if kind != _WEAK_SIGNATURE]
        first = [kind for kind in wanted if kind in able]
        security.key_types = tuple(dict.fromkeys((*first, *able)))
        return link

    return build


def open_program(link: Link, line: bytes, *, host: str, pty: bool) -> SshStream:
    """Start a command line on the far end; raise ConnectError where it starts none."""
    try:
        channel = link.open_session(timeout=CHANNEL_LIMIT_S)
        if pty:
            channel.get_pty()
        channel.exec_command(line)
    except paramiko.ChannelException as error:
        raise ssh_refusals.no_more_sessions(host) from error
    except LINK_ERRORS as error:
        raise ssh_refusals.lost(host) from error
    channel.settimeout(TICK_S)
    number = channel.get_id()
    return SshStream(channel, host=host, signal_name=lambda: link.signals.get(number), faults=LINK_ERRORS)


def open_forwarding(link: Link, address: str, port: int, *, host: str, limit_s: float) -> paramiko.Channel:
    """Open a direct-tcpip channel; raise ConnectionRefusedError, TimeoutError, PermissionError (forbidden) or ConnectError."""
    try:
        return link.open_channel("direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=limit_s)
    except paramiko.ChannelException as error:
        text = f"{address}:{port} as {host} sees it: {error.text}"
        if error.code == FORBIDDEN:
            raise PermissionError(errno.EPERM, text) from error
        raise ConnectionRefusedError(errno.ECONNREFUSED, text) from error
    except LINK_ERRORS as error:
        if link.is_active():
            raise TimeoutError(f"{address}:{port} as {host} sees it did not answer in {limit_s:g} s") from error
        raise ssh_refusals.lost(host) from error
