"""Attribute clustering in Spark: the set of attributes of each value, and the number of values of each set.

Cells are in the long form (attribute, and the value in one of three columns), so that one shuffle by value serves all
attributes. Only operations that the RAPIDS plugin keeps on the GPU are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tuplewise.gpu_kernels.inclusion import BITS as WORD_BITS
from tuplewise.gpu_kernels.words import mask_words

MOST_WORDS = 4
"""Sets of attributes are held in so many words of bits. Of more attributes the sets are sorted arrays: most values are
in few of thousands of attributes."""
KEY = ("family", "text", "whole", "real")
"""What makes a value: its family, and the one of three columns that holds it; the others are null."""
KEY_TYPES = {"family": "tinyint", "text": "string", "whole": "bigint", "real": "double"}


@dataclass(frozen=True)
class Cell:
    """A column as a source of cells.

    Attributes
    ----------
    attribute : number of the attribute
    family : number of its family: values of two families are different values
    form : the column of KEY that holds its values
    value : of that column's type
    """

    attribute: int
    family: int
    form: Literal["text", "whole", "real"]
    value: Column


def cells_of(frame: DataFrame, cells: Sequence[Cell], *beside: str) -> DataFrame:
    """The non-null cells: `beside` (columns of the frame), attribute, and KEY."""
    structs = [
        f.struct(
            f.lit(cell.attribute).alias("attribute"),
            f.lit(cell.family).cast(KEY_TYPES["family"]).alias("family"),
            *(
                (cell.value if form == cell.form else f.lit(None)).cast(KEY_TYPES[form]).alias(form)
                for form in KEY[1:]
            ),
        )
        for cell in cells
    ]
    long = frame.select(*beside, f.explode(f.array(*structs)).alias("cell"))
    there = f.col("cell.text").isNotNull() | f.col("cell.whole").isNotNull() | f.col("cell.real").isNotNull()
    return long.where(there).select(*beside, "cell.attribute", *(f"cell.{name}" for name in KEY))


def set_columns(attributes: int, name: str, condition: str = "true") -> list[Column]:
    """Aggregates that encode the set of values of `attribute` among the rows that satisfy a condition (SQL), named by
    `set_names`."""
    if _as_array(attributes):
        held = f.expr(f"case when {condition} then attribute end")
        return [f.sort_array(f.collect_set(held)).alias(name)]
    columns = []
    for word in range(mask_words(attributes)):
        low = word * WORD_BITS
        inside = f"attribute >= {low} and attribute < {low + WORD_BITS} and ({condition})"
        bit = f"case when {inside} then shiftleft(1L, attribute - {low}) else 0L end"
        columns.append(f.expr(f"bit_or({bit})").alias(f"{name}{word}"))
    return columns


def set_names(attributes: int, name: str) -> list[str]:
    """The names of the columns that encode a set of attributes."""
    return [name] if _as_array(attributes) else [f"{name}{w}" for w in range(mask_words(attributes))]


def count_clusters(cells: DataFrame, attributes: int) -> DataFrame:
    """The number of distinct values with the same set of attributes: columns of the set, and `values` (bigint).

    Notes
    -----
    Two shuffles: of cells by value, each value with each attribute once a task; and of sets.
    """
    names = set_names(attributes, "held")
    sets = cells.groupBy(*KEY).agg(*set_columns(attributes, "held"))
    return sets.groupBy(*names).agg(f.count("*").alias("values"))


def masks_of(table: pa.Table, attributes: int, name: str) -> NDArray[np.uint64]:
    """The sets of collected rows as masks, uint64 (rows, words): attribute a is bit a % 64 of word a // 64."""
    words = mask_words(attributes)
    masks = np.zeros((len(table), words), dtype=np.uint64)
    if not _as_array(attributes):
        for word, column in enumerate(set_names(attributes, name)):
            masks[:, word] = np.asarray(table[column].to_numpy(), dtype=np.int64).view(np.uint64)
        return masks
    lists = table[name].combine_chunks()
    members = np.asarray(lists.flatten().to_numpy(), dtype=np.int64)
    lengths = np.asarray(lists.value_lengths().to_numpy(), dtype=np.int64)
    rows = np.repeat(np.arange(len(table)), lengths)
    bits = np.left_shift(np.uint64(1), (members % WORD_BITS).astype(np.uint64))
    np.bitwise_or.at(masks, (rows, members // WORD_BITS), bits)
    return masks


def count_filled(frame: DataFrame, columns: Sequence[Column]) -> list[int]:
    """The number of non-null rows of each column of a frame. One job."""
    return [int(n) for n in frame.agg(*(f.count(c) for c in columns)).collect()[0]]


def _as_array(attributes: int) -> bool:
    return attributes > MOST_WORDS * WORD_BITS
