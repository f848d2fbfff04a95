"""A guess at the encoding of a file that is invalid in the encoding that it was read with."""

from __future__ import annotations

import codecs
import re

from tuplewise.engine.errors import Wording

_FRONT_BYTES = 200
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_NULS = {"utf-32-le": (1, 2, 3), "utf-32-be": (0, 1, 2), "utf-16-le": (1, 3), "utf-16-be": (0, 2)}
"""Which bytes of four are NUL where the text is mostly ASCII."""
WINDOWS_ONLY = re.compile(rb"[\x80-\x9f]")
"""Control characters in Latin-1, quotes and dashes in Windows' own encoding."""
_BEYOND_ASCII = re.compile(r"[^\0-\x7f]+")


def encoding_hint(block: bytes, first: bool) -> str:
    """A hint on invalid bytes. `first`: the block is the start of the file."""
    found = _wide(block[:_FRONT_BYTES]) if first else None
    if found is None and block.count(0) > len(block) // 100:
        return "This is not a text file; CSV, Parquet, ORC and JSON lines are read"
    found = found or _of_bytes(block)
    if found is None:
        text = "Its script is not Latin: name its encoding, such as {encoding}, gb18030, big5, euc_jp or euc_kr"
        return Wording(text, encoding="cp1251")
    return Wording("Name the encoding: {encoding}", encoding=found)


def _wide(front: bytes) -> str | None:
    """UTF-16 or UTF-32 if the byte order mark or the NUL bytes at the start of a file show it, else None."""
    marked = next((name for mark, name in _MARKS.items() if front.startswith(mark)), None)
    if marked is not None or front.count(0) <= len(front) // 4:
        return marked

    def mostly_nul(place: int) -> bool:
        own = front[place::4]
        return 4 * own.count(0) > 3 * len(own)

    return next((name for name, places in _NULS.items() if all(map(mostly_nul, places))), None)


def _of_bytes(block: bytes) -> str | None:
    """An encoding with one byte for each ASCII letter; None if the other bytes seem to be of an unknown script."""
    japanese = _decoded(block, "cp932")
    odd = re.findall("[\udc80-\udcff]+", block.decode("utf-8", "surrogateescape"))  # no UTF-8: some of it may be
    stray = "".join(odd).encode("utf-8", "surrogateescape")
    windows = len(WINDOWS_ONLY.findall(stray))
    if japanese is not None and 4 * windows > len(stray) and _mostly_in_words(_BEYOND_ASCII.findall(japanese), 2):
        return "shift_jis"
    if _mostly_in_words(odd, 3):
        return None
    return "cp1252" if windows and _decoded(block, "cp1252") is not None else "latin-1"


def _decoded(block: bytes, encoding: str) -> str | None:
    """The text of a block, which may end inside a character; None if it is invalid in the encoding."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(block)
    except UnicodeDecodeError:
        return None


def _mostly_in_words(runs: list[str], letters: int) -> bool:
    """Whether runs of so many letters or more hold most of the characters, as in scripts other than Latin."""
    sizes = [len(run) for run in runs]
    return 2 * sum(size for size in sizes if size >= letters) > sum(sizes)
