"""Values of a domain as order-preserving keys: whole numbers with a scale, or bytes.

A number, date, timestamp, boolean or double is a whole number at a *scale*: the key is the value times ten to the
scale. A date counts days since 1970, a timestamp microseconds (at scale 3 nanoseconds), false is 0, true is 1. A double
is its bits as a whole number, with the bits of negative doubles inverted, so that NaN is the last. A text is its bytes.

A single key is a Python int, a Decimal if it has a fraction, or bytes.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.errors import InputError, message
from tuplewise.engine.table.relation import Domain, TypeName
from tuplewise.engine.table.rows import PlainRow
from tuplewise.gpu_kernels.compiled import kernel

if TYPE_CHECKING:
    import pyarrow as pa

PlainKey = int | decimal.Decimal | bytes

EXACT = decimal.Context(prec=400, Emax=999_999, Emin=-999_999)  # no number here has this many digits
MOST_DIGITS = 76  # of a decimal
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
TURN = np.int64(_MOST)
WIDE_BYTES = 32
_WIDE_ZERO = 1 << 255
_LONGEST_SHIFT = 18  # ten to this fits 64 bits
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")
_NOT_A_NUMBER: int = _BITS.unpack(_DOUBLE.pack(float("nan")))[0]  # its sign is 0, so it is its own key


@dataclass(frozen=True, eq=False)
class Numbers:
    """Ascending whole numbers of 64 bits. values: int64 (n,); a value is `values / 10**scale`."""

    values: NDArray[np.int64]
    scale: int = 0

    def __len__(self) -> int:
        return len(self.values)

    def take(self, places: NDArray[np.int64]) -> Numbers:
        return Numbers(self.values[places], self.scale)

    def integers(self) -> list[int]:
        """The values times ten to the scale."""
        found: list[int] = self.values.tolist()
        return found

    def plain(self) -> list[PlainKey]:
        """The keys as single keys."""
        return _plain_numbers(self.integers(), self.scale)

    def find(self, key: PlainKey) -> tuple[int, bool]:
        """Number of keys less than a key, and whether the key is present."""
        assert not isinstance(key, bytes)
        floor, whole = (key, True) if isinstance(key, int) and not self.scale else _floor(key, self.scale)
        if floor > _MOST:
            return len(self.values), False
        if floor < _LEAST:
            return 0, False
        if not whole:
            return int(self.values.searchsorted(np.int64(floor), "right")), False
        place = int(self.values.searchsorted(np.int64(floor)))
        return place, place < len(self.values) and self.values.item(place) == floor

    def search(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """`find` for many keys, ascending: int64 (k,), bool (k,)."""
        assert not isinstance(keys, Texts)
        if isinstance(keys, WideNumbers) or abs(keys.scale - self.scale) > _LONGEST_SHIFT:
            return _found(self, keys)
        shift = self.scale - keys.scale
        if shift >= 0:
            most = _MOST // 10**shift
            if ((keys.values > most) | (keys.values < -most)).any():
                return _found(self, keys)
            floors, whole = keys.values * np.int64(10**shift), np.ones(len(keys), dtype=np.bool_)
            places = self.values.searchsorted(floors)
        else:
            floors, rest = np.divmod(keys.values, np.int64(10**-shift))
            whole = rest == 0
            places = np.where(whole, self.values.searchsorted(floors), self.values.searchsorted(floors, "right"))
        equal = whole & (places < len(self.values))
        equal[equal] = self.values[places[equal]] == floors[equal]
        return places.astype(np.int64, copy=False), equal


@dataclass(frozen=True, eq=False)
class WideNumbers:
    """Ascending whole numbers of up to 255 bits, for those that don't fit 64 bits.

    Attributes
    ----------
    content : uint8 (n, 32), each number plus 2**255, most significant byte first: bytes sort like numbers
    scale : a value is its number divided by ten to the scale
    """

    content: NDArray[np.uint8]
    scale: int

    def __len__(self) -> int:
        return len(self.content)

    def take(self, places: NDArray[np.int64]) -> WideNumbers:
        return WideNumbers(self.content[places], self.scale)

    def integers(self) -> list[int]:
        data = self.content.tobytes()
        starts = range(0, len(data), WIDE_BYTES)
        return [int.from_bytes(data[i : i + WIDE_BYTES], "big") - _WIDE_ZERO for i in starts]

    def plain(self) -> list[PlainKey]:
        return _plain_numbers(self.integers(), self.scale)

    def _texts(self) -> Texts:
        ends = np.arange(len(self.content) + 1, dtype=np.int64) * WIDE_BYTES
        return Texts(self.content.reshape(-1), ends)

    def find(self, key: PlainKey) -> tuple[int, bool]:
        places, equal = _found(self, keys_of_plain("number", [key]))
        return int(places[0]), bool(equal[0])

    def search(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        return _found(self, keys)


@dataclass(frozen=True, eq=False)
class Texts:
    """Ascending texts as concatenated bytes.

    Attributes
    ----------
    content : uint8 (bytes,)
    ends : int64 or int32 (n + 1,), text i is content[ends[i] : ends[i + 1]]
    """

    content: NDArray[np.uint8]
    ends: NDArray[Any]
    scale = 0

    def __len__(self) -> int:
        return len(self.ends) - 1

    def take(self, places: NDArray[np.int64]) -> Texts:
        import pyarrow as pa

        return texts_of(binary_of(self).take(pa.array(places)))

    def plain(self) -> list[PlainKey]:
        data, ends = self.content.tobytes(), self.ends.tolist()
        return [data[a:b] for a, b in pairwise(ends)]

    def find(self, key: PlainKey) -> tuple[int, bool]:
        assert isinstance(key, bytes)
        place = _find_text(self.content, self.ends, np.frombuffer(key, dtype=np.uint8))
        return place >> 1, bool(place & 1)

    def search(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        assert isinstance(keys, Texts)
        places = np.empty(len(keys), dtype=np.int64)
        _find_texts(self.content, self.ends, keys.content, keys.ends.astype(np.int64, copy=False), places)
        return places >> 1, (places & 1).astype(np.bool_)


Keys = Numbers | WideNumbers | Texts


@kernel(*(f"const uint8[::1], const {ends}[::1], const uint8[::1]" for ends in ("int32", "int64")))
def _find_text(content, ends, sought):  # type: ignore[no-untyped-def]
    """Twice the number of smaller texts, plus one if the sought text is present."""
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) >> 1
        start = ends[middle]
        size = ends[middle + 1] - start
        common = min(size, len(sought))
        at = 0
        while at < common and content[start + at] == sought[at]:
            at += 1
        if at < common:
            less = content[start + at] < sought[at]
        elif size == len(sought):
            return 2 * middle + 1
        else:
            less = size < len(sought)
        if less:
            low = middle + 1
        else:
            high = middle
    return 2 * low


@kernel(
    "const uint8[::1], const int32[::1], const uint8[::1], const int64[::1], int64[::1]",
    "const uint8[::1], const int64[::1], const uint8[::1], const int64[::1], int64[::1]",
)
def _find_texts(content, ends, sought, sought_ends, places):  # type: ignore[no-untyped-def]
    for i in range(len(places)):
        places[i] = _find_text(content, ends, sought[sought_ends[i] : sought_ends[i + 1]])


def _floor(key: int | decimal.Decimal, scale: int) -> tuple[int, bool]:
    """The largest whole number not above the key times ten to the scale, and whether they are equal."""
    if isinstance(key, int):
        return key * 10**scale if scale else key, True
    moved = key.scaleb(scale, EXACT)
    floor = int(moved.to_integral_value(decimal.ROUND_FLOOR, EXACT))
    return floor, floor == moved


def _found(run: Numbers | WideNumbers, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Places of keys in a run, by Python integers, for numbers that don't fit 64 bits."""
    assert not isinstance(keys, Texts)
    shift = run.scale - keys.scale
    if shift >= 0:
        floors, whole = [v * 10**shift for v in keys.integers()], np.ones(len(keys), dtype=np.bool_)
    else:
        divided = [divmod(v, 10**-shift) for v in keys.integers()]
        floors, whole = [q for q, _ in divided], np.array([r == 0 for _, r in divided], dtype=np.bool_)
    if isinstance(run, WideNumbers):
        clipped = [min(max(v, -_WIDE_ZERO), _WIDE_ZERO - 1) for v in floors]  # no number in a dictionary is this large
        places, equal = run._texts().search(_wide(clipped, run.scale)._texts())
        return places + (equal & ~whole), equal & whole
    inside = np.array([_LEAST <= v <= _MOST for v in floors], dtype=np.bool_)
    nearest = np.array([min(max(v, _LEAST), _MOST) for v in floors], dtype=np.int64)
    beyond = ~inside & (nearest > 0)
    places = run.values.searchsorted(nearest)
    equal = inside & (places < len(run))
    equal[equal] = run.values[places[equal]] == nearest[equal]
    return np.where(beyond, len(run), places + (equal & ~whole)).astype(np.int64), equal & whole


def _wide(integers: Sequence[int], scale: int) -> WideNumbers:
    try:
        data = b"".join([(v + _WIDE_ZERO).to_bytes(WIDE_BYTES, "big") for v in integers])
    except OverflowError:
        raise too_many_digits(scale) from None
    return WideNumbers(np.frombuffer(data, dtype=np.uint8).reshape(-1, WIDE_BYTES), scale)


def _numbers(integers: Sequence[int], scale: int) -> Numbers | WideNumbers:
    try:
        return Numbers(np.array(integers, dtype=np.int64), scale)
    except OverflowError:
        return _wide(integers, scale)


def _plain_numbers(integers: list[int], scale: int) -> list[PlainKey]:
    if scale == 0:
        return list(integers)
    factor = 10**scale
    return [
        v // factor if v % factor == 0 else decimal.Decimal(v).scaleb(-scale, EXACT) for v in integers
    ]  # fmt: skip


def keys_of_rows(types: Sequence[TypeName], rows: Sequence[PlainRow]) -> list[list[PlainKey | None]]:
    """Keys of rows of plain values (`engine.table.rows`) for each column, None for null."""
    if not rows:
        return [[] for _ in types]
    makers = [_KEY_OF_VALUE.get(type_) for type_ in types]
    keys: list[list[Any]] = [
        [value if value is None or make is None else make(value) for make, value in zip(makers, row, strict=True)]
        for row in rows
    ]
    return [list(column) for column in zip(*keys, strict=True)]


def _key_of_double(value: float) -> int:
    if value != value:
        return _NOT_A_NUMBER
    bits: int = _BITS.unpack(_DOUBLE.pack(value + 0.0))[0]  # 0.0 for -0.0
    return bits if bits >= 0 else bits ^ _MOST


_KEY_OF_VALUE: dict[TypeName, Callable[[Any], PlainKey]] = {
    "text": str.encode,
    "double": _key_of_double,
    "boolean": int,
}


def too_many_digits(scale: int) -> InputError:
    fault = f"numbers that need more than {MOST_DIGITS} digits together, {scale} of them behind the point"
    return InputError(message(fault, None, f"up to {MOST_DIGITS} digits", "Nothing was applied"))


def digits_at(key: PlainKey, scale: int) -> int:
    """Number of digits of a number at a scale."""
    assert not isinstance(key, bytes)
    return len(str(abs(_floor(key, scale)[0])))


def keys_of_plain(domain: Domain, plain: Sequence[PlainKey]) -> Keys:
    """Keys from single keys, ascending and distinct."""
    if domain == "text":
        texts: list[bytes] = list(plain)  # type: ignore[arg-type]
        ends = np.zeros(len(texts) + 1, dtype=np.int64)
        np.cumsum([len(t) for t in texts], out=ends[1:])
        return Texts(np.frombuffer(b"".join(texts), dtype=np.uint8), ends)
    numbers: list[int | decimal.Decimal] = list(plain)  # type: ignore[arg-type]
    fractions = [v for v in numbers if not isinstance(v, int)]
    if not fractions:
        return _numbers(numbers, 0)  # type: ignore[arg-type]
    scale = max(map(_scale_of, fractions))
    return _numbers([_floor(v, scale)[0] for v in numbers], scale)


def _scale_of(key: decimal.Decimal) -> int:
    exponent = key.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def at_scale(keys: Keys, scale: int) -> Keys:
    """The same values at a scale that is not smaller."""
    if isinstance(keys, Texts) or scale == keys.scale:
        return keys
    shift = scale - keys.scale
    if isinstance(keys, Numbers) and shift <= _LONGEST_SHIFT:
        most = _MOST // 10**shift
        if not len(keys) or (keys.values[0] >= -most and keys.values[-1] <= most):
            return Numbers(keys.values * np.int64(10**shift), scale)
    return _numbers([v * 10**shift for v in keys.integers()], scale)


def united(parts: Sequence[Keys]) -> Keys:
    """Concatenate the keys of the parts, at one scale and in one form."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Texts):
        import pyarrow as pa

        return texts_of(pa.concat_arrays([binary_of(part) for part in parts if isinstance(part, Texts)]))
    scale = max(part.scale for part in parts)
    scaled = [at_scale(part, scale) for part in parts]
    if all(isinstance(part, Numbers) for part in scaled):
        return Numbers(np.concatenate([part.values for part in scaled if isinstance(part, Numbers)]), scale)
    wide = [part if isinstance(part, WideNumbers) else widened(part) for part in scaled]
    return WideNumbers(np.concatenate([part.content for part in wide]), scale)


def widened(keys: Keys) -> WideNumbers:
    assert isinstance(keys, Numbers)
    content = np.zeros((len(keys), WIDE_BYTES), dtype=np.uint8)
    content[keys.values < 0] = 0xFF
    content[:, -8:] = keys.values.astype(">i8").view(np.uint8).reshape(-1, 8)
    content[:, 0] ^= 0x80
    return WideNumbers(content, keys.scale)


def merged(left: Keys, right: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Merge two ascending lists without common keys. Returns the merged keys, and the index in left + right of each.

    Cost: linear, plus a search of each right key in left.
    """
    places = left.search(right)[0] + np.arange(len(right), dtype=np.int64)
    order = np.empty(len(left) + len(right), dtype=np.int64)
    from_left = np.ones(len(order), dtype=np.bool_)
    from_left[places] = False
    order[places] = len(left) + np.arange(len(right), dtype=np.int64)
    order[from_left] = np.arange(len(left), dtype=np.int64)
    return united([left, right]).take(order), order


def texts_of(binary: pa.Array) -> Texts:
    """Texts from large_binary; bytes are shared if they begin at the array's start."""
    _, places, content = binary.buffers()
    if not len(binary) or places is None:
        return Texts(np.empty(0, dtype=np.uint8), np.zeros(len(binary) + 1, dtype=np.int64))
    ends = np.frombuffer(places, dtype=np.int64)[binary.offset : binary.offset + len(binary) + 1]
    data = np.empty(0, dtype=np.uint8) if content is None else np.frombuffer(content, dtype=np.uint8)
    data = data[ends[0] : ends[-1]]
    return Texts(data, ends - ends[0] if ends[0] else ends)


def binary_of(texts: Texts) -> pa.Array:
    import pyarrow as pa

    ends = np.ascontiguousarray(texts.ends, dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(texts.content))]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
