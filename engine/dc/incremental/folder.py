"""The folder of a state of denial constraints: arrays of the last checkpoint, and a log of the revisions since.

- `state.json`: the manifest (`base_files.CheckpointManifest`): what is fixed, the number of the checkpoint, its files
- `base-N/*.npy`: the arrays, in files that never change
- `log-N`: the revisions after checkpoint N (`revision_log`)
- `history.jsonl`: what the revisions up to the checkpoint were, a line each, as far as the manifest says
- `writer.lock`: the process that writes

A revision is one write at the end of the log. A checkpoint writes all beside what is there, hands it to the disk and
then renames the manifest: killed at any moment, the state is that before or after it, and what is left over goes when
the next writer opens it. A loss of power may take revisions that weren't handed to the disk (`sync` does so); what a
checkpoint holds is on the disk.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.base_files import (
    HISTORY,
    BaseFile,
    CheckpointManifest,
    array_of,
    mapped,
    write_array,
)
from tuplewise.engine.dc.incremental.revision_log import LogRecord, RevisionLog
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.state_folders import (
    DCS,
    NEW_STATE_FILE,
    NOTHING_BUILT,
    ClosedOnExit,
    WriterLock,
    beside,
    damaged,
    no_file,
    real_folder,
    sync_path,
    write_all,
    write_file,
)

_KEPT = "No revision is lost; make room and open the state again"
_PIECE_BYTES = 1 << 20
_LOOKS = 100


class StateFolder(ClosedOnExit):
    """An open folder of a state. One process writes, any number read meanwhile.

    Parameters
    ----------
    folder : that `create` made
    write : False for a reader, which stays at the revision that was last when it was opened, until `refresh`
    sync : hand each revision to the disk before it is done

    Attributes
    ----------
    folder : its real path
    sync : may be set
    manifest : what the state is at the checkpoint whose arrays these are; `records` go on from there

    Raises
    ------
    InputError
        Where the folder is no state, is damaged, of another version, or written by another process.

    Notes
    -----
    Opening reads the manifest and the log, and maps the arrays into memory without reading them. An append costs one
    call of the system. A checkpoint writes all arrays that aren't kept.
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool, sync: bool = False) -> None:
        self.folder = real_folder(folder)
        self.sync = sync
        self._write = write
        self._lock: WriterLock | None = None
        self._log: RevisionLog | None = None
        self.manifest = CheckpointManifest.read(self.folder)  # before there is a lock: none is left where no state is
        if write:
            self._lock = WriterLock(self.folder, DCS)
        try:
            self._take(CheckpointManifest.read(self.folder))
            if write:
                self._clear()
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        fixed: Mapping[str, Any],
        written_by: str,
        arrays: Mapping[str, NDArray[Any]],
        history: Mapping[str, Any],
    ) -> None:
        """Make the folder of a new state, whole or not at all: beside its place, then renamed.

        Parameters
        ----------
        folder : a new or an empty one
        fixed : what never changes; what JSON can hold
        written_by : version of tuplewise
        arrays : by name; see `Record`
        history : the record of revision 0; what JSON can hold

        Raises
        ------
        InputError
            Where the folder holds something or can't be made, or the disk is full.
        """
        target = real_folder(folder)
        given = json.loads(json.dumps(dict(fixed), allow_nan=False))  # one that isn't a number differs from itself
        line = _line(history)
        try:
            with beside(target, DCS) as place:
                files = _write_base(place, 0, arrays)
                known = BaseFile(HISTORY, *write_file(place / HISTORY, line))
                manifest = CheckpointManifest(given, written_by, 0, 0, files, known)
                write_file(place / manifest.log)
                manifest.write(place)
        except OSError as error:
            raise no_file(target, error, hint=NOTHING_BUILT) from error

    @property
    def revision(self) -> int:
        """The last revision that this process knows."""
        return self._opened().revision

    @property
    def writes(self) -> bool:
        """Whether revisions can be written: it is open, and not to be read only."""
        return self._write and self._log is not None

    @property
    def log_bytes(self) -> int:
        """Bytes of the revisions since the checkpoint."""
        return self._opened().end

    def arrays(self) -> list[str]:
        """Names of the arrays."""
        return list(self.manifest.files)

    def array(self, name: str) -> NDArray[Any]:
        """An array of the checkpoint: a read-only map of its file, which stays valid whatever the writer does."""
        if name not in self._arrays:
            if name not in self._maps:
                raise damaged(self.folder, f"it has no array {name!r}", DCS)
            self._arrays[name] = array_of(self.folder, self.manifest.files[name], self._maps[name])
        return self._arrays[name]

    def verify(self) -> None:
        """Read all base files. Raises InputError where the bytes of one are not those that were written."""
        for name, file in self.manifest.files.items():
            if zlib.crc32(self._maps[name]) != file.crc:
                raise damaged(self.folder, f"{file.path} is not what was written", DCS)

    def records(self) -> Iterator[LogRecord]:
        """The revisions since the checkpoint, oldest first. Raises InputError where one is damaged."""
        return self._opened().records()

    def refresh(self) -> bool:
        """Read what the writer has written since; whether there was anything, revisions or a checkpoint.

        Where `manifest.checkpoint` is another then, so are the arrays. Maps that were handed out stay valid. Raises
        InputError as opening does, and where the state was built anew.
        """
        log = self._opened()
        manifest = CheckpointManifest.read(self.folder)
        if manifest == self.manifest:
            return log.extend()
        if manifest.fixed != self.manifest.fixed or manifest.checkpoint <= self.manifest.checkpoint:
            raise InputError(message("the state was built anew meanwhile", str(self.folder), hint="Open it again"))
        self._take(manifest)
        return True

    def append(self, record: LogRecord) -> None:
        """Write the next revision: all of it or, where something is raised, nothing.

        `record.header` holds "revision", one more than the last, and "history". Raises InputError where the disk is
        full or fails.
        """
        self._opened(write=True).append(record, sync=self.sync)

    def checkpoint(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put the arrays of the last revision in the place of the old ones and the log.

        Raises InputError where the disk is full or fails; then no revision is lost.
        """
        self._opened(write=True)
        try:
            self._write_checkpoint(arrays)
        except OSError as error:
            raise no_file(self.folder, error, hint=_KEPT) from error
        finally:  # Ctrl-C may come when the new manifest is in place
            self._take(CheckpointManifest.read(self.folder))
            self._clear()

    def history(self, since: int = 0) -> Iterator[dict[str, Any]]:
        """The records of revisions, oldest first, from revision `since` on. Raises InputError where it is damaged."""
        manifest, headers = self.manifest, self._opened().headers()
        if since <= manifest.revision:
            for number, line in enumerate(_lines(self.folder, manifest.history)):
                if number >= since:
                    yield json.loads(line)
        for header in headers:
            if header["revision"] >= since:
                yield header["history"]

    def close(self) -> None:
        """Release the folder. May be called again; arrays that were handed out stay valid."""
        self._log = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _opened(self, *, write: bool = False) -> RevisionLog:
        if self._log is None or (write and not self._write):
            fault = "is closed" if self._log is None else "was opened to be read only"
            raise InputError(message(f"the state {fault}", str(self.folder), hint="Open it again"))
        return self._log

    def _take(self, manifest: CheckpointManifest) -> None:
        """Open what a manifest names. The writer may put another in its place meanwhile, and remove the files."""
        for _ in range(_LOOKS):
            try:
                maps, log = self._open(manifest)
                break
            except FileNotFoundError as error:
                now = CheckpointManifest.read(self.folder)
                if now == manifest:
                    name = os.path.relpath(error.filename, self.folder)
                    raise damaged(self.folder, f"{name} is missing", DCS) from error
                manifest = now
        else:
            hint = "Look again later"
            raise InputError(message("the state is written too often to be read", str(self.folder), hint=hint))
        self.manifest, self._maps, self._log = manifest, maps, log
        self._arrays: dict[str, NDArray[Any]] = {}

    def _open(self, manifest: CheckpointManifest) -> tuple[dict[str, mmap.mmap], RevisionLog]:
        try:
            size = os.stat(self.folder / HISTORY).st_size
            if size < manifest.history.bytes:
                raise damaged(self.folder, f"{HISTORY} has {size} bytes, not {manifest.history.bytes}", DCS)
            maps = {name: mapped(self.folder, file) for name, file in manifest.files.items()}
            log = RevisionLog(self.folder, manifest.log, manifest.revision, write=self._write)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise no_file(self.folder, error) from error
        return maps, log

    def _write_checkpoint(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write all of the next checkpoint, its manifest last."""
        before, log = self.manifest, self._opened()
        files = _write_base(self.folder, before.checkpoint + 1, arrays)
        lines = b"".join(_line(header["history"]) for header in log.headers())
        descriptor = os.open(self.folder / HISTORY, os.O_WRONLY)
        try:
            write_all(descriptor, lines, before.history.bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        history = BaseFile(HISTORY, before.history.bytes + len(lines), zlib.crc32(lines, before.history.crc))
        number, revision = before.checkpoint + 1, log.revision
        manifest = CheckpointManifest(before.fixed, before.written_by, number, revision, files, history)
        write_file(self.folder / manifest.log)
        sync_path(self.folder)
        manifest.write(self.folder)

    def _clear(self) -> None:
        """Remove what the manifest doesn't name: of earlier checkpoints, and of one that was killed or failed."""
        with suppress(OSError):
            if os.stat(self.folder / HISTORY).st_size > self.manifest.history.bytes:
                os.truncate(self.folder / HISTORY, self.manifest.history.bytes)
        with suppress(OSError):  # what can't be removed now goes later
            for name in sorted(os.listdir(self.folder)):
                path = self.folder / name
                if name == NEW_STATE_FILE or (name.startswith("log-") and name != self.manifest.log):
                    path.unlink()
                elif name.startswith("base-") and name != f"base-{self.manifest.checkpoint}":
                    for inner in os.listdir(path):
                        (path / inner).unlink()
                    path.rmdir()


def _line(history: Mapping[str, Any]) -> bytes:
    return json.dumps(history, separators=(",", ":")).encode() + b"\n"


def _lines(folder: Path, history: BaseFile) -> Iterator[bytes]:
    """The lines of the history that count. Raises InputError where they are not what was written."""
    fault = damaged(folder, f"{HISTORY} is not what was written", DCS)
    with (folder / HISTORY).open("rb") as stream:
        left, crc = history.bytes, 0
        while left and (piece := stream.read(min(left, _PIECE_BYTES))):
            left, crc = left - len(piece), zlib.crc32(piece, crc)
        if left or crc != history.crc:
            raise fault
        stream.seek(0)
        left = history.bytes
        for line in stream:
            left -= len(line)
            if left < 0:
                return
            yield line


def _write_base(folder: Path, checkpoint: int, arrays: Mapping[str, NDArray[Any]]) -> dict[str, BaseFile]:
    place = folder / f"base-{checkpoint}"
    place.mkdir(exist_ok=True)
    files = {name: write_array(folder, checkpoint, name, array) for name, array in arrays.items()}
    sync_path(place)
    return files
