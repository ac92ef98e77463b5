"""Write files so that a reader, or a crash at any moment, finds the old or the new whole; and read small ones."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
from typing import Mapping, Optional, Tuple

from specctl.host.wire import REMOTE_COMMAND, OpError

TEMPORARY = ".tmp-"
SMALL_BYTES = 1 << 20


def sync_dir(folder: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _ids(owner: str) -> Tuple[int, int]:
    try:
        entry = pwd.getpwnam(owner)
    except KeyError as error:
        raise OpError(REMOTE_COMMAND, f"there is no user {owner}", hint=f"useradd --system {owner}") from error
    return entry.pw_uid, entry.pw_gid


def write_new(path: str, content: bytes, mode: int, owner: Optional[str] = None) -> None:
    """Write a file that must not exist yet, durable, never readable by more than its mode allows."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        if owner is not None:
            os.fchown(file.fileno(), *_ids(owner))
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())


def _beside(path: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{TEMPORARY}{name}.{os.getpid()}")


def replace(path: str, content: bytes, mode: int, owner: Optional[str] = None) -> None:
    """Put a file in place of another in one step, durable."""
    temporary = _beside(path)
    remove(temporary)
    try:
        write_new(temporary, content, mode, owner)
        os.rename(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    sync_dir(os.path.dirname(path))


def replace_link(path: str, target: str) -> None:
    """Point a symbolic link elsewhere in one step, durable."""
    temporary = _beside(path)
    remove(temporary)
    try:
        os.symlink(target, temporary)
        os.rename(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    sync_dir(os.path.dirname(path))


def remove(path: str) -> bool:
    """Remove a file or link if it is there; say whether it was."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def read(path: str, limit: int = SMALL_BYTES) -> Optional[bytes]:
    """Return a small file's content, or None when there is no such file; longer ones are cut."""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_text(path: str, limit: int = SMALL_BYTES) -> Optional[str]:
    """Return a small text file, or None; what is no UTF-8 is replaced."""
    found = read(path, limit)
    return None if found is None else found.decode("utf-8", "replace")


def read_object(path: str) -> Optional[Mapping[str, object]]:
    """Return the JSON object in a small file, or None when it is absent or is none."""
    found = read(path)
    if found is None:
        return None
    try:
        value = json.loads(found)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def sha256(content: bytes) -> str:
    """Return the SHA-256 in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def remove_tree(path: str) -> None:
    """Remove a folder with all that is in it, as far as it goes."""
    import shutil  # It loads three kinds of compression, which a look needs none of.

    shutil.rmtree(path, ignore_errors=True)
