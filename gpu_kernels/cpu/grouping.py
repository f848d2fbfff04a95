"""Ordering and grouping rows by cluster and codes, for equality refinement and joins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tuplewise.gpu_kernels.compiled import kernel

TABLE_SHARE = 4  # most entries for each row of a table that is indexed by key
KEY_BITS = 64


def bits_for(values: int) -> int:
    """Number of bits that distinguish `values` values."""
    return max(0, int(values - 1).bit_length()) if values > 0 else 0


@kernel("int64[::1], int32[::1], const int32[:, ::1], int64[::1], int64[::1], int64, int32[::1], uint64[::1]")
def write_keys(offsets, members, codes, columns, shifts, index_bits, lowest, keys):
    """Write sort keys: keys[i] = cluster | codes of the columns | i, most significant first.

    `codes`: int32 (columns, rows); `lowest`: int32 (columns,), subtracted from the codes.
    """
    for c in range(len(offsets) - 1):
        for i in range(offsets[c], offsets[c + 1]):
            key = np.uint64(c)
            for j in range(len(columns)):
                key = (key << np.uint64(shifts[j])) | np.uint64(codes[columns[j], members[i]] - lowest[j])
            keys[i] = (key << np.uint64(index_bits)) | np.uint64(i)


@kernel("int32[::1], int32[::1], int64, int64, uint64[::1]")
def write_column_keys(members, column, index_bits, lowest, keys):
    """Write sort keys without the cluster: keys[i] = code | i."""
    for i in range(len(members)):
        keys[i] = (np.uint64(column[members[i]] - lowest) << np.uint64(index_bits)) | np.uint64(i)


@kernel("uint64[::1], uint64, int64[::1], int32[::1], int32[::1]")
def scatter_by_cluster(keys, index_mask, offsets, clusters, order):
    """Order members cluster by cluster, within a cluster by `keys` (code | index): order[...] = index."""
    cursor = offsets[:-1].copy()
    for k in range(len(keys)):
        i = np.int64(keys[k] & index_mask)
        c = clusters[i]
        order[cursor[c]] = i
        cursor[c] += 1


@kernel("int32[::1], const int32[::1]")
def extremes_of(members, column):
    """Lowest and highest code of these rows; (0, -1) without rows."""
    if len(members) == 0:
        return 0, -1
    lowest = highest = column[members[0]]
    for i in range(1, len(members)):
        code = column[members[i]]
        lowest = min(lowest, code)
        highest = max(highest, code)
    return lowest, highest


@kernel("int32[::1], const int32[::1], int64, int64[::1]")
def count_table(members, column, lowest, table):
    """Count rows by code: table[code - lowest] = number of rows."""
    for i in range(len(members)):
        table[column[members[i]] - lowest] += 1


@kernel("int32[::1], const int32[::1], int64, int64[::1], int32[::1]")
def scatter_table(members, column, lowest, starts, ordered):
    """Write rows in order of (code, place). Advances `starts`; rows of a code whose start is -1 are left out."""
    for i in range(len(members)):
        row = members[i]
        code = column[row] - lowest
        place = starts[code]
        if place >= 0:
            ordered[place] = row
            starts[code] = place + 1


@kernel("int64[::1], int64, int64[::1], int64[::1]")
def table_offsets(table, least, starts, offsets):
    """Write the start of each code with at least `least` rows; returns the numbers of clusters and rows."""
    clusters = 0
    rows = 0
    for code in range(len(table)):
        if table[code] >= least:
            starts[code] = rows
            offsets[clusters] = rows
            rows += table[code]
            clusters += 1
        else:
            starts[code] = -1
    offsets[clusters] = rows
    return clusters, rows


@kernel("uint64[::1], int64, int32[::1], int32[::1], int64[::1]")
def runs_to_clusters(keys, index_bits, members, ordered, offsets):
    """Make clusters of runs of at least two equal keys (without index); returns the numbers of clusters and rows."""
    mask = (np.uint64(1) << np.uint64(index_bits)) - np.uint64(1)
    clusters = 0
    rows = 0
    n = len(keys)
    start = 0
    while start < n:
        key = keys[start] >> np.uint64(index_bits)
        end = start + 1
        while end < n and keys[end] >> np.uint64(index_bits) == key:
            end += 1
        if end - start >= 2:
            offsets[clusters] = rows
            for k in range(start, end):
                ordered[rows] = members[np.int64(keys[k] & mask)]
                rows += 1
            clusters += 1
        start = end
    offsets[clusters] = rows
    return clusters, rows


@kernel("int32[::1], int64[::1], int32[::1], int32[::1], int64[::1]")
def split_runs(rows, offsets, column, ordered, new_offsets):
    """Make clusters of runs of at least two equal codes inside clusters; returns the numbers of clusters and rows.

    `rows` are in order of (cluster, code).
    """
    clusters = 0
    n = 0
    for c in range(len(offsets) - 1):
        start = offsets[c]
        while start < offsets[c + 1]:
            code = column[rows[start]]
            end = start + 1
            while end < offsets[c + 1] and column[rows[end]] == code:
                end += 1
            if end - start >= 2:
                new_offsets[clusters] = n
                for k in range(start, end):
                    ordered[n] = rows[k]
                    n += 1
                clusters += 1
            start = end
    new_offsets[clusters] = n
    return clusters, n


@kernel(
    "int32[::1], int64[::1], const int32[::1], int32[::1], int64[::1], const int32[::1], int32[::1], "
    "int64[::1], int32[::1], int64[::1]"
)
def match_runs(left, loffsets, lcolumn, right, roffsets, rcolumn, lrows, lnew, rrows, rnew):
    """Make cluster pairs of runs of one code on both sides; returns the numbers of clusters, left and right rows.

    Both sides are in order of (cluster, code). A pair whose only row on both sides is the same is left out.
    """
    clusters = 0
    ln = 0
    rn = 0
    for c in range(len(loffsets) - 1):
        i = loffsets[c]
        j = roffsets[c]
        while i < loffsets[c + 1] and j < roffsets[c + 1]:
            a = lcolumn[left[i]]
            b = rcolumn[right[j]]
            if a < b:
                i += 1
                continue
            if b < a:
                j += 1
                continue
            iend = i + 1
            while iend < loffsets[c + 1] and lcolumn[left[iend]] == a:
                iend += 1
            jend = j + 1
            while jend < roffsets[c + 1] and rcolumn[right[jend]] == a:
                jend += 1
            if iend - i > 1 or jend - j > 1 or left[i] != right[j]:
                lnew[clusters] = ln
                rnew[clusters] = rn
                for k in range(i, iend):
                    lrows[ln] = left[k]
                    ln += 1
                for k in range(j, jend):
                    rrows[rn] = right[k]
                    rn += 1
                clusters += 1
            i = iend
            j = jend
    lnew[clusters] = ln
    rnew[clusters] = rn
    return clusters, ln, rn


@kernel("int32[::1], const int32[::1], int64, boolean[::1]")
def mark_values(members, column, lowest, seen):
    """Mark the codes of rows: seen[code - lowest] = True, for codes within the table."""
    for i in range(len(members)):
        code = column[members[i]] - lowest
        if 0 <= code < len(seen):
            seen[code] = True


@kernel("int32[::1], int64[::1], const int32[::1], int64, boolean[::1], int32[::1], int64[::1]")
def keep_seen(members, offsets, column, lowest, seen, kept, kept_offsets):
    """Keep the members whose code is marked; returns how many."""
    n = 0
    for c in range(len(offsets) - 1):
        kept_offsets[c] = n
        for i in range(offsets[c], offsets[c + 1]):
            code = column[members[i]] - lowest
            if 0 <= code < len(seen) and seen[code]:
                kept[n] = members[i]
                n += 1
    kept_offsets[len(offsets) - 1] = n
    return n


def order_by(members: NDArray[np.int32], offsets: NDArray[np.int64], column: NDArray[np.int32]) -> NDArray[np.int32]:
    """Order the members of each cluster by (code, place among the members). Returns rows, int32."""
    n, clusters = len(members), len(offsets) - 1
    lowest, highest = extremes_of(members, column)
    ordered = np.empty(n, dtype=np.int32)
    span = int(highest) - int(lowest) + 1
    if clusters == 1 and span <= TABLE_SHARE * n:
        table = np.zeros(span, dtype=np.int64)
        count_table(members, column, lowest, table)
        starts = np.cumsum(table) - table
        scatter_table(members, column, lowest, starts, ordered)
        return ordered
    index_bits = bits_for(n)
    mask = np.uint64((1 << index_bits) - 1)
    keys = np.empty(n, dtype=np.uint64)
    if bits_for(clusters) + bits_for(span) + index_bits <= KEY_BITS:
        columns = np.zeros(1, dtype=np.int64)
        shifts = np.array([bits_for(span)], dtype=np.int64)
        lows = np.array([lowest], dtype=np.int32)
        write_keys(offsets, members, column.reshape(1, -1), columns, shifts, index_bits, lows, keys)
        keys.sort()
        keys &= mask
        return members[keys.view(np.int64)]
    write_column_keys(members, column, index_bits, lowest, keys)
    keys.sort()
    scatter_by_cluster(keys, mask, offsets, cluster_numbers(offsets), ordered)
    return members[ordered]


def cluster_numbers(offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Number of each member's cluster, int32 (members,)."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
