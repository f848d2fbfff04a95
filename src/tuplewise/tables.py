"""The public function that reads tables; `tuplewise` hands it on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import LoadOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from tuplewise.engine.options import LoadKeywords
    from tuplewise.engine.table.relation import Relation


@takes(LoadOptions)
def load(
    source: Any,
    *,
    name: str | None = None,
    spark: Any = None,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[LoadKeywords],
) -> Relation:
    """Read a table once, for all functions that take a table.

    Parameters
    ----------
    source : path or data frame
        A CSV, TSV, Parquet, ORC or JSON-lines path (a file, a folder or a glob; local, or a URL that Spark reads),
        `spark:db.table`, or a pandas, Polars, Arrow or Spark frame. Java is needed only for Spark's frames, and for
        files that are not local or do not fit in memory.
    name : what results call the table; default: the file's name without its ending, or "table".
    spark : SparkSession to read with; default: the active one, else one that is started. It is left as it was found.
    progress : called with the name of each step.

    Returns
    -------
    Relation
        The table, with its values as integer codes that keep their order. Pass it wherever a table is taken.

    Raises
    ------
    InputError
        Where the source or an option can't be used. The message says what is allowed.

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> table = tw.load(pd.DataFrame({"id": [1, 2, 3], "day": ["2026-01-01", "2026-01-02", None]}), name="visits")
    >>> table.rows, [(c.name, c.type, c.nulls) for c in table.columns]
    (3, [('id', 'integer', 0), ('day', 'text', 1)])
    """
    from tuplewise.engine.table.table import load as load_table

    return load_table(source, LoadOptions.of("load", options), name=name, spark=spark, progress=progress)
