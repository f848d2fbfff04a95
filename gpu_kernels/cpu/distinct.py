"""Distinct cells of a column, by an open-addressing table over their bytes; and the set of attributes of each value.

A *store* is an array of 64-bit words that holds values one after the other. A value is one word, with its number of
bytes (lower half) and another number (upper half), then its bytes; the last word is filled up with zeros. A *table* is
uint64 (slots,), slots a power of two. An entry is 0 where the slot is free, else (half of the hash) << 32 | (place in
the store + 1). The other half of the hash gives the first slot to try. Two values are equal where their bytes are;
hashes only tell where to look.

Bytes are read a word at a time, so arrays of bytes have 8 spare bytes at the end. Distant memory is prefetched some
cells ahead.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tuplewise.gpu_kernels.compiled import helper, kernel
from tuplewise.gpu_kernels.cpu.hashing import mix_word
from tuplewise.gpu_kernels.word_hash import SPREAD

HEAD = 1  # words before a value's bytes
AHEAD = 64  # cells whose places are prefetched
NEAR = 1 << 15  # words of a store up to which it fits a cache near the processor
FULL = 3  # a table is full where FULL times its values are more than twice its slots
MOST_WORDS = (1 << 32) - 2  # words of a store at most
# places of a state: used words of the store, values; then null cells, or used nodes
WORDS, VALUES, NULLS, NODES = 0, 1, 2, 2
PARENT, ATTRIBUTE, COUNT = 0, 1, 2  # columns of nodes; COUNT: number of values whose set of attributes is the node
ADDED, CHILD = 0, 1  # columns of a tree: parent << 32 | attribute (-1 in free slots), and the child node
HALF = np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_32 = np.uint64(32)


@intrinsic
def load_word(typing_context, data, place):
    """Load 8 bytes of a uint8 array from a place on, as uint64 (little-endian)."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.int64), generate


@intrinsic
def prefetch(typing_context, words, place):
    """Prefetch the cache line of words[place], uint64."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), kind)
        builder.call(function, [pointer, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(words, types.int64), generate


@helper
def slot_shift(slots):
    """Shift of a 64-bit hash that leaves the number of a slot; slots are a power of two, at least 2."""
    shift = 64
    while slots > 1:
        slots >>= 1
        shift -= 1
    return np.uint64(shift)


@kernel(
    "uint8[::1], int32[::1], int32[::1], int64, uint64[::1], uint64[::1], int64[::1]",
    "uint8[::1], int64[::1], int64[::1], int64, uint64[::1], uint64[::1], int64[::1]",
)
def add_cells(data, starts, sizes, first, table, store, state):
    """Add the cells from `first` on. Returns the first cell that has no room in the table or the store, else the number
    of cells.

    Parameters
    ----------
    data : uint8, bytes of all cells
    starts, sizes : int32 or int64 (cells,), first byte and number of bytes of each cell; size -1 is null
    state : int64 (3,), WORDS, VALUES, NULLS; the number in a value's head counts its cells
    """
    # a single function, since passing arrays to another costs more than the work on a short cell
    mask = np.uint64(len(table) - 1)
    shift = slot_shift(len(table))
    keys = np.empty(AHEAD, dtype=np.uint64)
    for block in range(first, len(starts), AHEAD):
        end = min(block + AHEAD, len(starts))
        for i in range(block, end):
            size = np.int64(sizes[i])
            if size >= 0:
                start = np.int64(starts[i])
                key = np.uint64(size) * SPREAD
                for k in range(size >> 3):
                    key = mix_word(key, load_word(data, start + 8 * k))
                if size & 7:
                    word = load_word(data, start + (size & -8)) & (_ALL >> np.uint64(64 - 8 * (size & 7)))
                    key = mix_word(key, word)
                key *= SPREAD
                keys[i - block] = key
                prefetch(table, np.int64(key >> shift))
        if len(store) > NEAR:
            for i in range(block, end):
                found = table[keys[i - block] >> shift]
                if sizes[i] >= 0 and found != 0:
                    prefetch(store, np.int64(found & HALF) - 1)
        for i in range(block, end):
            size = np.int64(sizes[i])
            if size < 0:
                state[NULLS] += 1
                continue
            start = np.int64(starts[i])
            whole = size >> 3
            rest = _ALL >> np.uint64(64 - 8 * (size & 7)) if size & 7 else np.uint64(0)
            key = keys[i - block]
            slot = key >> shift
            place = np.int64(-1)
            while table[slot] != 0:
                if (table[slot] >> _32) == (key & HALF):
                    place = np.int64(table[slot] & HALF) - 1
                    same = store[place] & HALF == np.uint64(size)
                    k = 0
                    while same and k < whole:
                        same = store[place + HEAD + k] == load_word(data, start + 8 * k)
                        k += 1
                    if same and rest:
                        same = store[place + HEAD + whole] == load_word(data, start + 8 * whole) & rest
                    if same:
                        break
                    place = np.int64(-1)
                slot = (slot + _ONE) & mask
            if place < 0:
                place = state[WORDS]
                after = place + HEAD + whole + np.int64(rest != 0)
                if (state[VALUES] + 1) * FULL > 2 * len(table) or after > len(store):
                    return i
                table[slot] = (key << _32) | np.uint64(place + 1)
                store[place] = np.uint64(size)
                for k in range(whole):
                    store[place + HEAD + k] = load_word(data, start + 8 * k)
                if rest:
                    store[place + HEAD + whole] = load_word(data, start + 8 * whole) & rest
                state[WORDS] = after
                state[VALUES] += 1
            store[place] += _ONE << _32
    return len(starts)


@helper
def stored_key(store, place):
    """Hash of the value at a place of a store, and the number of words of its bytes."""
    size = store[place] & HALF
    words = (np.int64(size) + 7) >> 3
    key = size * SPREAD
    for k in range(words):
        key = mix_word(key, store[place + HEAD + k])
    return key * SPREAD, words


@kernel("uint64[::1], int64, uint64[::1]")
def fill_table(store, used, table):
    """Enter all values of a store into a table of zeros."""
    mask = np.uint64(len(table) - 1)
    shift = slot_shift(len(table))
    keys = np.empty(AHEAD, dtype=np.uint64)
    places = np.empty(AHEAD, dtype=np.int64)
    place = 0
    while place < used:
        block = 0
        while place < used and block < AHEAD:
            key, words = stored_key(store, place)
            prefetch(table, np.int64(key >> shift))
            keys[block] = key
            places[block] = place
            block += 1
            place += HEAD + words
        for i in range(block):
            slot = keys[i] >> shift
            while table[slot] != 0:
                slot = (slot + _ONE) & mask
            table[slot] = (keys[i] << _32) | np.uint64(places[i] + 1)


@kernel("uint64[::1], int64, int64[::1], int64[::1]")
def list_values(store, used, offsets, rows):
    """List values: offsets[i + 1] = bytes of the first i + 1 values, rows[i] = number of value i; offsets[0] is already
    0."""
    place = 0
    i = 0
    while place < used:
        size = np.int64(store[place] & HALF)
        offsets[i + 1] = offsets[i] + size
        rows[i] = np.int64(store[place] >> _32)
        place += HEAD + ((size + 7) >> 3)
        i += 1


@kernel("uint64[::1], int64, uint8[::1]")
def copy_values(store, used, data):
    """Copy the bytes of all values, one after the other, to data (uint8)."""
    place = 0
    at = 0
    while place < used:
        size = np.int64(store[place] & HALF)
        place += HEAD
        for k in range(size):
            data[at] = np.uint8((store[place + (k >> 3)] >> np.uint64(8 * (k & 7))) & np.uint64(0xFF))
            at += 1
        place += (size + 7) >> 3


@kernel("uint64[::1], int64, const uint64[::1], int64")
def drop_value(store, used, words, size):
    """Remove a value from a store. Returns its number, or -1 where it is absent. The `used` words shrink by its own.

    words : uint64, the value's bytes, the last word filled up with zeros
    """
    place = 0
    while place < used:
        own = (np.int64(store[place] & HALF) + 7) >> 3
        same = store[place] & HALF == np.uint64(size)
        k = 0
        while same and k < own:
            same = store[place + HEAD + k] == words[k]
            k += 1
        if same:
            rows = np.int64(store[place] >> _32)
            for k in range(place, used - HEAD - own):
                store[k] = store[k + HEAD + own]
            return rows
        place += HEAD + own
    return -1


# Sets of attributes are nodes of a tree: node 0 is the empty set, and a child adds an attribute greater than all of its
# parent's. `tree` is int64 (slots, 2): ADDED and CHILD.


@helper
def tree_slot(wanted, mask):
    """First slot of a tree to try."""
    key = np.uint64(wanted) * SPREAD
    return np.int64((key ^ (key >> _32)) & np.uint64(mask))


@kernel("int64[:, ::1], int64, int64[:, ::1]")
def fill_tree(nodes, used, tree):
    """Enter all nodes but the root into a tree filled with -1."""
    mask = len(tree) - 1
    for child in range(1, used):
        wanted = (nodes[child, PARENT] << 32) | nodes[child, ATTRIBUTE]
        slot = tree_slot(wanted, mask)
        while tree[slot, ADDED] != -1:
            slot = (slot + 1) & mask
        tree[slot, ADDED] = wanted
        tree[slot, CHILD] = child


@kernel(
    "uint64[::1], int64, int64, int64, int64, int64, uint64[::1], uint64[::1], int64[:, ::1], int64[:, ::1], "
    "int64[::1]"
)
def merge_values(source, first, used, attribute, parts, part, table, store, tree, nodes, state):
    """Add an attribute to the sets of its values. Returns the first word of the source without room, else `used`.

    Parameters
    ----------
    source : store of the attribute's values, from word `first` to `used`. Several calls may bring them in parts, which
        may share values.
    attribute : greater than all added before
    parts, part : parts is a power of two; only values with (hash >> 8) % parts == part are added
    table, store : those of all values; a value's number is the node of its set
    nodes : int64 (room, 3), PARENT, ATTRIBUTE, COUNT
    state : int64 (3,), WORDS, VALUES, NODES
    """
    mask = np.uint64(len(table) - 1)
    shift = slot_shift(len(table))
    tree_mask = len(tree) - 1
    keys = np.empty(AHEAD, dtype=np.uint64)
    places = np.empty(AHEAD, dtype=np.int64)
    next_place = first
    while next_place < used:
        block = 0
        while next_place < used and block < AHEAD:
            key, words = stored_key(source, next_place)
            if (key >> np.uint64(8)) & np.uint64(parts - 1) == np.uint64(part):
                prefetch(table, np.int64(key >> shift))
                keys[block] = key
                places[block] = next_place
                block += 1
            next_place += HEAD + words
        for i in range(block):
            found = table[keys[i] >> shift]
            if found != 0:
                prefetch(store, np.int64(found & HALF) - 1)
        for i in range(block):
            at = places[i]
            key = keys[i]
            words = (np.int64(source[at] & HALF) + 7) >> 3
            slot = key >> shift
            place = np.int64(-1)
            while table[slot] != 0:
                if (table[slot] >> _32) == (key & HALF):
                    place = np.int64(table[slot] & HALF) - 1
                    same = (store[place] ^ source[at]) & HALF == 0
                    k = 0
                    while same and k < words:
                        same = store[place + HEAD + k] == source[at + HEAD + k]
                        k += 1
                    if same:
                        break
                    place = np.int64(-1)
                slot = (slot + _ONE) & mask
            node = np.int64(0)
            if place >= 0:
                node = np.int64(store[place] >> _32)
                if nodes[node, ATTRIBUTE] == attribute:
                    continue
            elif (state[VALUES] + 1) * FULL > 2 * len(table) or state[WORDS] + HEAD + words > len(store):
                return at
            wanted = (node << 32) | np.int64(attribute)
            where = tree_slot(wanted, tree_mask)
            while tree[where, ADDED] != wanted and tree[where, ADDED] != -1:
                where = (where + 1) & tree_mask
            if tree[where, ADDED] == -1:
                child = state[NODES]
                if child >= len(nodes) or 2 * (child + 1) > len(tree):
                    return at
                nodes[child, PARENT] = node
                nodes[child, ATTRIBUTE] = attribute
                nodes[child, COUNT] = 0
                tree[where, ADDED] = wanted
                tree[where, CHILD] = child
                state[NODES] = child + 1
            child = tree[where, CHILD]
            nodes[child, COUNT] += 1
            if place >= 0:
                nodes[node, COUNT] -= 1
                store[place] = (store[place] & HALF) | (np.uint64(child) << _32)
            else:
                place = state[WORDS]
                table[slot] = (key << _32) | np.uint64(place + 1)
                store[place] = (source[at] & HALF) | (np.uint64(child) << _32)
                for k in range(words):
                    store[place + HEAD + k] = source[at + HEAD + k]
                state[WORDS] = place + HEAD + words
                state[VALUES] += 1
    return used


@kernel("int64[:, ::1], int64, int64[::1], uint64[:, ::1]")
def fill_masks(nodes, used, chosen, masks):
    """Write the attributes of nodes: masks[i] = those of node chosen[i], uint64 (chosen, words), zeros before."""
    for i in range(len(chosen)):
        node = chosen[i]
        while node > 0:
            attribute = nodes[node, ATTRIBUTE]
            masks[i, attribute >> 6] |= _ONE << np.uint64(attribute & 63)
            node = nodes[node, PARENT]
