"""What a path names: which files, in which order, of which format."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from tuplewise.engine.errors import InputError, message, near_names

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
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_SEPARATORS = {".tsv": "\t", ".tab": "\t", ".psv": "|"}


@dataclass(frozen=True)
class Source:
    """A table outside of this process.

    Attributes
    ----------
    given : as the user wrote it
    name : what results call it
    format : how to read it
    files : local files in the order of their names; empty for URLs and catalog tables
    paths : what Spark is told to read
    sep : the separator that the file's ending means, for CSV
    """

    given: str
    name: str
    format: Format
    files: tuple[str, ...]
    paths: tuple[str, ...]
    sep: str = ","

    @property
    def local(self) -> bool:
        return bool(self.files)


def find_source(given: str) -> Source:
    """The files behind a path, glob, folder, URL or `spark:db.table`. Raises InputError where there are none."""
    if given.startswith("spark:"):
        table = given.removeprefix("spark:")
        if not table:
            raise InputError(message("no table is named", given, "spark:table or spark:db.table"))
        return Source(given, table.split(".")[-1].strip("`"), "table", (), (table,))
    path = given
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", given):
        if not given.lower().startswith("file:/"):
            stem, ending = _ending(given.rstrip("/"))
            return Source(given, stem, _FORMATS.get(ending, "parquet"), (), (given,), _SEPARATORS.get(ending, ","))
        path = unquote(urlsplit(given).path)
    files = _local_files(path)
    formats = {f: _format_of(f) for f in files}
    if len(set(formats.values())) > 1:
        listed = ", ".join(sorted(set(formats.values())))
        raise InputError(
            message(f"{given} holds files of several formats", listed, "one format", "Name the files with a glob")
        )
    stem, _ = _ending(path.rstrip("/") or "/")
    sep = _SEPARATORS.get(_ending(files[0])[1], ",")
    # A folder is handed over as it is, so that Spark finds the columns that its folder names hold (a=1/b=2).
    root = os.path.abspath(os.path.expanduser(path))
    whole = os.path.isdir(root) and any("=" in part for f in files for part in Path(f).relative_to(root).parent.parts)
    paths = (os.path.abspath(path),) if whole else files
    return Source(given, stem, formats[files[0]], tuple(files), tuple(_plain_uri(p) for p in paths), sep)


def _plain_uri(path: str) -> str:
    """A path that Spark takes literally: it reads [, {, * and ? as patterns."""
    return "file://" + re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def _local_files(path: str) -> tuple[str, ...]:
    expanded = os.path.expanduser(path)
    if os.path.isfile(expanded):
        return (os.path.abspath(expanded),)
    if os.path.isdir(expanded):
        found = [
            str(f)
            for f in Path(os.path.abspath(expanded)).rglob("*")
            if f.is_file() and not any(p.startswith(("_", ".")) for p in f.relative_to(os.path.abspath(expanded)).parts)
        ]
        if not found:
            raise InputError(message("this folder holds no data files", path))
        return tuple(sorted(found))
    matched = sorted(f for f in glob.glob(expanded, recursive=True) if os.path.isfile(f))
    if matched:
        return tuple(os.path.abspath(f) for f in matched)
    if glob.has_magic(expanded):
        raise InputError(message("no file matches", path))
    parent = Path(expanded).parent
    siblings = [p.name for p in parent.iterdir()] if parent.is_dir() else []
    hint = near_names(Path(expanded).name, siblings[:1000]) if siblings else None
    raise InputError(message("no such file", path, hint=hint))


def _ending(path: str) -> tuple[str, str]:
    """The name without its endings, and the ending that tells the format."""
    name = path.rsplit("/", 1)[-1]
    stem, ending = os.path.splitext(name)
    if ending.lower() in _COMPRESSED:
        stem, ending = os.path.splitext(stem)
    return (stem or name), ending.lower()


def _format_of(path: str) -> Format:
    """By the file's ending, else by its first bytes; CSV where neither says another."""
    known = _FORMATS.get(_ending(path)[1])
    if known is not None:
        return known
    with open(path, "rb") as file:
        begin = file.read(4)
    if begin == b"PAR1":
        return "parquet"
    if begin[:3] == b"ORC":
        return "orc"
    return "json" if begin[:1] == b"{" else "csv"
