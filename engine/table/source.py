"""The source behind a path: its files, their order, format and compression."""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal
from urllib.parse import unquote, urlsplit

from tuplewise.engine.errors import InputError, message, near_names, number_of
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.table.csv_front import front_text, named_separator
from tuplewise.gpu_kernels.exits import at_exit

Format = Literal["csv", "parquet", "orc", "json", "table"]

_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".orc": "orc",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_PACKED_ENDINGS = (".gz", ".bz2", ".zst", ".lz4", ".xz", ".snappy", ".deflate", ".zip")
_SEPARATORS = {".tsv": "\t", ".tab": "\t", ".psv": "|"}
STANDARD_INPUT = "-"
_PIPE = re.compile(r"/dev/fd/\d+|/proc/(?:self|\d+)/fd/\d+")  # what shells make of <(...)
_WILD = re.compile(r"[ _.-]*(?:[*?]+|\[[^]]+\])[ _.-]*")  # a wildcard with the separators around it
_FIRST_LINE = 64  # characters, enough for one that names a separator
_NO_PERMISSION = "Ask its owner, or run as a user who may read it"
_BEGIN_BYTES = 262  # enough to recognise a tar archive
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
NO_PARTITION_VALUE = "__HIVE_DEFAULT_PARTITION__"  # the folder name that Hive and Spark give to null

Packing = Literal["gzip", "bz2", "zstd", "lz4", "xz"]
_PACKINGS: tuple[tuple[bytes, Packing, str], ...] = (
    (b"\x1f\x8b", "gzip", ".gz"),
    (b"BZh", "bz2", ".bz2"),
    (b"\x28\xb5\x2f\xfd", "zstd", ".zst"),
    (b"\x04\x22\x4d\x18", "lz4", ".lz4"),
    (b"\xfd7zXZ\x00", "xz", ".xz"),
)
ENDING_OF_PACKING = {packing: ending for _, packing, ending in _PACKINGS}


@dataclass(frozen=True)
class Source:
    """A table outside this process.

    Attributes
    ----------
    given : the source as the user wrote it
    name : its name in results
    format : its file format
    files : local files in the order of their names; empty for URLs and catalog tables
    paths : the paths that Spark reads
    sep : for CSV, the separator implied by the file's ending
    folder_columns : columns encoded in folder names (year=2024), in order
    folder_values : for each of them the text for each file, None for null
    notes : on skipped files
    """

    given: str
    name: str
    format: Format
    files: tuple[str, ...]
    paths: tuple[str, ...]
    sep: str = ","
    folder_columns: tuple[str, ...] = ()
    folder_values: tuple[tuple[str | None, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def local(self) -> bool:
        return bool(self.files)


def find_source(given: str) -> Source:
    """The files behind a path, glob, folder, URL, `-` (standard input) or `spark:db.table`.

    Raises InputError if there are none, if they can't be read, or if they have several formats.
    """
    if given.startswith("spark:"):
        table = given.removeprefix("spark:")
        if not table:
            raise InputError(message("no table is named", given, "spark:table or spark:db.table"))
        return Source(given, table.split(".")[-1].strip("`"), "table", (), (table,))
    path = given
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", given):
        if not given.lower().startswith("file:/"):
            ending = _ending(given.rstrip("/"))[1]
            format_, sep = _FORMATS.get(ending, "parquet"), _SEPARATORS.get(ending, ",")
            return Source(given, _name_of(given), format_, (), (given,), sep)
        path = unquote(urlsplit(given).path)
    files, skipped = _local_files(path)
    formats = {f: _format_of(f) for f in files}
    if len(set(formats.values())) > 1:
        listed = ", ".join(sorted(set(formats.values())))
        raise InputError(
            message(f"{given} holds files of several formats", listed, "one format", "Name the files with a glob")
        )
    stem = "stdin" if given == STANDARD_INPUT else _name_of(path)
    sep = _SEPARATORS.get(_ending(files[0])[1], ",")
    columns, values = _folder_columns(path, files)
    # A folder is handed over as it is, so that Spark finds the columns that its folder names hold (a=1/b=2).
    whole = columns and os.path.isdir(os.path.expanduser(path))
    paths = (os.path.abspath(os.path.expanduser(path)),) if whole else files
    return Source(
        given, stem, formats[files[0]], files, tuple(_plain_uri(p) for p in paths), sep, columns, values, skipped
    )


def _name_of(path: str) -> str:
    """The name of a table: its file's name without endings, or the literal parts of a pattern."""
    folder, _, last = path.rstrip("/").rpartition("/")
    stem = _ending(last)[0]
    if _PIPE.fullmatch(path):
        return f"pipe{stem}"
    if not glob.has_magic(stem) or os.path.exists(os.path.expanduser(path)):
        return stem or "/"
    name = _WILD.sub("_", stem).strip("_")
    return name or _name_of(folder or ("/" if path.startswith("/") else os.getcwd()))


def _plain_uri(path: str) -> str:
    """The path with [, {, * and ? escaped, which Spark would read as patterns."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _hidden(name: str) -> bool:
    """Whether files of this name are skipped in folders: markers and leftovers of jobs."""
    return name.startswith(("_", "."))


def _local_files(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The absolute paths of the files, and a note on skipped hidden files."""
    if path == STANDARD_INPUT:
        return (_spooled(path),), ()
    expanded = os.path.expanduser(path)
    if os.path.isfile(expanded):
        return (_allowed(os.path.abspath(expanded)),), ()
    if os.path.isdir(expanded):
        root = Path(_allowed(os.path.abspath(expanded)))
        entries = sorted(root.rglob("*"))
        for entry in entries:
            _refuse_dead_link(str(entry))
            if entry.is_dir():
                _allowed(str(entry))
        found = [f for f in entries if f.is_file()]
        kept = [str(f) for f in found if not any(_hidden(part) for part in f.relative_to(root).parts)]
        hidden = [f.name for f in found if str(f) not in set(kept)]
        if not kept:
            raise InputError(message("this folder holds no data files", path, hint=_only_hidden(hidden)))
        return tuple(_allowed(f) for f in kept), _passed_over(hidden)
    if os.path.exists(expanded) and stat.S_ISFIFO(os.stat(expanded).st_mode):
        return (_spooled(expanded),), ()
    matched = sorted(f for f in glob.glob(expanded, recursive=True) if os.path.isfile(f))
    kept = [f for f in matched if not _hidden(os.path.basename(f)) or _hidden(os.path.basename(expanded))]
    if kept:
        hidden = [os.path.basename(f) for f in matched if f not in set(kept)]
        return tuple(_allowed(os.path.abspath(f)) for f in kept), _passed_over(hidden)
    _refuse_dead_link(expanded)
    if os.path.exists(expanded):
        raise InputError(message("this is neither a file nor a folder", path))
    if glob.has_magic(expanded):
        raise InputError(message("no file matches", path, hint=_only_hidden([os.path.basename(f) for f in matched])))
    for folder in reversed(Path(os.path.abspath(expanded)).parents):
        if os.path.isdir(folder) and not os.access(folder, os.X_OK):
            raise InputError(message("no permission to look into the folder", str(folder), hint=_NO_PERMISSION))
    parent = Path(expanded).parent
    siblings = [p.name for p in parent.iterdir()] if parent.is_dir() and os.access(parent, os.R_OK) else []
    hint = near_names(Path(expanded).name, siblings[:1000]) if siblings else None
    raise InputError(message("no such file", path, hint=hint))


def _refuse_dead_link(path: str) -> None:
    if os.path.islink(path) and not os.path.exists(path):
        raise InputError(message("this link leads to no file", path, hint="Mend it, or name the files with a glob"))


def _only_hidden(hidden: list[str]) -> str | None:
    return f"Names that begin with _ or . are passed over; name the file itself: {hidden[0]}" if hidden else None


def _passed_over(hidden: list[str]) -> tuple[str, ...]:
    """A note on skipped data files. Markers such as _SUCCESS hold no data and need no note."""
    data = [name for name in hidden if _ending(name)[1] in _FORMATS]
    if not data:
        return ()
    many = f"{number_of(len(data), 'hidden file')} passed over"
    return (f"{many} (names that begin with _ or .): {', '.join(data[:3])}{', ...' if len(data) > 3 else ''}",)


def _allowed(path: str) -> str:
    """The path. Raises InputError if this user may not read it."""
    needed = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
    if not os.access(path, needed):
        raise InputError(message("no permission to read", path, hint=_NO_PERMISSION))
    return path


def _begin_of(path: str, size: int) -> bytes:
    """The first bytes of a file. Raises InputError if they can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except PermissionError:
        raise InputError(message("no permission to read", path, hint=_NO_PERMISSION)) from None


def read_twice(path: str) -> str:
    """A path that can be read more than once: the path itself, or that of a copy if it is a pipe or `-`."""
    if path == STANDARD_INPUT or (os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode)):
        return _spooled(path)
    return path


@cache
def _spooled(path: str) -> str:
    """Copy the content of a pipe, which can be read only once, to a file that is deleted with this process."""
    folder = tempfile.mkdtemp(prefix="tuplewise-")
    at_exit(shutil.rmtree, folder, ignore_errors=True)
    target = os.path.join(folder, "pipe")
    with open(target, "wb") as kept:
        if path == STANDARD_INPUT:
            shutil.copyfileobj(sys.stdin.buffer, kept)
        else:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, kept)
    return target


def _folder_columns(path: str, files: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """The columns encoded in folder names below `path`, as in year=2024/part.parquet, with their values by file."""
    root = os.path.abspath(os.path.expanduser(path))
    while glob.has_magic(root) and not os.path.isdir(root):
        root = os.path.dirname(root)
    if not os.path.isdir(root):
        return (), ()
    found = []
    for file in files:
        parts = Path(file).relative_to(root).parent.parts
        found.append([part.partition("=")[::2] for part in parts if "=" in part])
    names = [unquote(name) for name, _ in found[0]]
    if any([unquote(name) for name, _ in own] != names for own in found):
        raise InputError(message("folder names hold other columns in places", path, hint="Load its parts one by one"))
    values = [[None if text == NO_PARTITION_VALUE else unquote(text) for _, text in own] for own in found]
    return tuple(names), tuple(tuple(own[c] for own in values) for c in range(len(names)))


def _ending(path: str) -> tuple[str, str]:
    """The name without endings, and the ending that shows the format."""
    name = path.rsplit("/", 1)[-1]
    stem, ending = os.path.splitext(name)
    if ending.lower() in _PACKED_ENDINGS:
        stem, ending = os.path.splitext(stem)
    return (stem or name), ending.lower()


def _format_of(path: str) -> Format:
    """The format by the file's ending, else by its first bytes, else CSV."""
    begin = unpacked_begin = _begin_of(path, _BEGIN_BYTES)
    if packing_of(path) is not None:
        with opened(path) as unpacked:
            unpacked_begin = unpacked.read(_BEGIN_BYTES)
    _refuse_archives(path, begin, unpacked_begin)
    if begin[:4] == b"PAR1":
        return "parquet"
    if begin[:3] == b"ORC":
        return "orc"
    known = _FORMATS.get(_ending(path)[1])
    if known in ("parquet", "orc") and begin:
        raise InputError(message(f"this file is not {known.capitalize() if known == 'parquet' else 'ORC'}", path))
    if known is not None:
        return known
    return "json" if unpacked_begin[:1] == b"{" else "csv"


def _refuse_archives(path: str, begin: bytes, unpacked: bytes) -> None:
    zipped = begin[:4] == b"PK\x03\x04"
    if begin[:8] == _OLD_OFFICE or (zipped and path.lower().endswith((".xlsx", ".xlsm", ".xlsb"))):
        what, hint = "an Excel workbook", "Save the sheet as CSV"
    elif zipped or unpacked[257:262] == b"ustar":
        what, hint = f"a {'zip' if zipped else 'tar'} archive", "Unpack it first"
    else:
        return
    raise InputError(message(f"{what} can't be read", path, "CSV, Parquet, ORC or JSON lines", hint))


def packing_of(path: str) -> Packing | None:
    """The compression of a file, by its first bytes; None if it isn't compressed."""
    begin = _begin_of(path, 8)
    return next((packing for magic, packing, _ in _PACKINGS if begin.startswith(magic)), None)


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The unpacked bytes of a local file. Raises InputError if they are damaged, also during reading."""
    import bz2
    import gzip
    import lzma
    import zlib

    packing = packing_of(path)
    broken: tuple[type[Exception], ...] = (EOFError, OSError, zlib.error, lzma.LZMAError)
    try:
        if packing is None:
            with open(path, "rb") as plain:
                yield plain
        elif packing in ("zstd", "lz4"):
            import pyarrow as pa

            with pa.input_stream(path, compression=packing) as stream:
                yield stream
        else:
            unpack: Any = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}[packing]
            with unpack(path, "rb") as unpacked:
                yield unpacked
    except broken as problem:
        if isinstance(problem, OSError) and problem.errno is not None:
            raise InputError(message(problem.strerror or "this file can't be read", path)) from problem
        raise InputError(message(f"this file is damaged: packed with {packing}", path)) from problem


def why_not_spark(source: Source, options: LoadOptions) -> str | None:
    """The reason why Spark can't read these files as they are; None if it can."""
    if source.format == "csv" and options.for_arrow:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options.for_arrow)
        return f"only Arrow's reader knows {names}"
    for path in source.files:
        name = os.path.basename(path)
        if not source.folder_columns and _hidden(name):
            return f"Spark passes over names that begin with _ or . ({name})"
        if ":" in path:
            return f"Spark reads no path with a colon ({path})"
        if source.format in ("csv", "json"):
            packing = packing_of(path)
            ending = os.path.splitext(name)[1]
            expected = None if packing is None else ENDING_OF_PACKING[packing]
            if packing in ("xz", "lz4"):
                return f"Spark unpacks no {packing} files ({name})"
            if (ending if ending in _PACKED_ENDINGS else None) != expected:
                how = "not packed" if packing is None else f"packed with {packing}"
                return f"Spark tells packing by the ending of a name ({name} is {how})"
    if source.folder_columns and (source.format == "csv" or len(source.paths) > 1):
        return "folder names hold columns, which Spark finds below one folder of Parquet, ORC or JSON only"
    odd = next((text for own in source.folder_values for text in own if text is not None and not text.isascii()), None)
    if odd is not None:
        return f"Spark takes the bytes of folder names for Latin-1 ({odd})"
    if source.format == "csv" and options.sep is None and any(_names_separator(f, options) for f in source.files):
        return "Spark can't pass over a first line that names the separator"
    return None


def _names_separator(path: str, options: LoadOptions) -> bool:
    try:
        with opened(path) as stream:
            text, _ = front_text(stream, options.encoding, 0, _FIRST_LINE)
    except LookupError:  # reading will report the unknown encoding
        return False
    return named_separator(text, options.quote) is not None
