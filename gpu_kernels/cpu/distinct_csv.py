"""Records and fields of CSV bytes: the place of each cell. Quotes are removed in place."""

from __future__ import annotations

import numpy as np

from tuplewise.gpu_kernels.compiled import kernel

NEWLINE, RETURN = 10, 13
# findings about records that are left to another reader
WRONG_FIELDS, ODD_QUOTE, ODD_RETURN = -1, -2, -3


@kernel("uint8[::1], int64, int64")
def last_record_end(data, size, quote):
    """Number of bytes of data[:size] up to the last newline outside quotes; 0 where there is none. quote -1: no quotes.

    Assumes that data begins with a record and that quotes come in pairs.
    """
    inside = 0
    if quote >= 0:
        wanted = np.uint8(quote)
        for i in range(size):
            inside += np.int64(data[i] == wanted)
    for i in range(size - 1, -1, -1):
        if data[i] == quote:
            inside -= 1
        elif data[i] == NEWLINE and inside & 1 == 0:
            return i + 1
    return 0


@kernel("const uint8[::1], int64, int64, int64")
def first_record_end(data, start, size, quote):
    """End of the record at `start`, behind its newline; `size` where no newline follows. quote -1: no quotes."""
    inside = False
    for i in range(start, size):
        if data[i] == quote:
            inside = not inside
        elif data[i] == NEWLINE and not inside:
            return i + 1
    return size


@kernel("uint8[::1], int64, uint8[::1], int32[:, ::1], int32[:, ::1], int64[::1]")
def split_records(data, size, kinds, starts, sizes, figures):
    """Split data[:size] into the cells of all records. Returns the number of records, or one of the findings above.

    Parameters
    ----------
    data : uint8; fields with doubled quotes are rewritten in place
    kinds : uint8 (256,), kind of each byte: 1 separator, 2 newline, 3 quote, 4 carriage return, else 0
    starts, sizes : int32 (fields, room), written: first byte and number of bytes of each cell; size -1 is null (empty,
        unquoted)
    figures : int64 (3,), added to: blank lines, lines that end with LF alone, lines that end with CR LF
    """
    fields = starts.shape[0]
    rows = 0
    i = 0
    while i < size:
        kind = kinds[data[i]]
        if kind == 2 or (kind == 4 and i + 1 < size and kinds[data[i + 1]] == 2):
            figures[0] += 1
            figures[1 if kind == 2 else 2] += 1
            i += 1 if kind == 2 else 2
            continue
        f = 0
        while True:
            if f == fields:
                return WRONG_FIELDS
            start = i
            if i < size and kinds[data[i]] == 3:
                i += 1
                write = i
                start = i
                quote = data[i - 1]
                while True:
                    while i < size and kinds[data[i]] != 3 and kinds[data[i]] != 4:
                        if write != i:
                            data[write] = data[i]
                        write += 1
                        i += 1
                    if i >= size:
                        return ODD_QUOTE
                    if data[i] != quote:
                        return ODD_RETURN
                    if i + 1 < size and data[i + 1] == quote:
                        data[write] = quote
                        write += 1
                        i += 2
                        continue
                    i += 1
                    break
                sizes[f, rows] = write - start
            else:
                while i < size and kinds[data[i]] == 0:
                    i += 1
                sizes[f, rows] = i - start if i > start else -1
            starts[f, rows] = start
            f += 1
            kind = kinds[data[i]] if i < size else 2
            if kind == 1:
                i += 1
                continue
            if kind == 4:
                i += 1
                if i >= size or kinds[data[i]] != 2:
                    return ODD_RETURN
                figures[2] += 1
            elif kind != 2:
                return ODD_QUOTE
            elif i < size:
                figures[1] += 1
            i += 1
            break
        if f != fields:
            return WRONG_FIELDS
        rows += 1
    return rows
