"""DuckDB, the engine that rule checks are timed against: the same rows in a table of its own, the same pairs in SQL.

Rules are read here by a reader of its own, which knows the plain rules of the cases only. A condition that keeps a row
from being paired with itself is added only where the rule doesn't say so already.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchmarks.answers import Triple, digest_counts, digest_pairs
from benchmarks.case import Case, Measurement, timed
from benchmarks.records import cores

if TYPE_CHECKING:
    import duckdb

NAME = "duckdb"
DEFAULT, RANGE_JOINS = "default", "prefer_range_joins"
CHUNK_ROWS = 1 << 20
_RULE = re.compile(r"not\((.+)\)")
_PREDICATE = re.compile(r"t\.(\w+) (==|!=|<=|>=|<|>) u\.(\w+)")
_SQL = {"==": "=", "!=": "<>"}
Answer = TypeVar("Answer")


def read(rule: str) -> list[Triple]:
    """Predicates of a rule as (column of t, operator, column of u).

    Examples
    --------
    >>> read("not(t.zip == u.zip and t.city != u.city)")
    [('zip', '==', 'zip'), ('city', '!=', 'city')]
    """
    whole = _RULE.fullmatch(rule)
    parts = [_PREDICATE.fullmatch(part) for part in whole[1].split(" and ")] if whole else [None]
    if not all(parts):
        raise ValueError(f"not a rule over two tuples that is read here: {rule!r}")
    return [(part[1], part[2], part[3]) for part in parts if part]


def columns_of(rules: Iterable[str]) -> list[str]:
    """The columns that some rules name, each once."""
    named = (column for rule in rules for left, _, right in read(rule) for column in (left, right))
    return list(dict.fromkeys(named))


def is_symmetric(rule: str) -> bool:
    """Tell whether the pair (u, t) violates the rule exactly where (t, u) does, as its form tells."""
    return all(left == right and operator in _SQL for left, operator, right in read(rule))


def has_range(rule: str) -> bool:
    """Tell whether a predicate orders, so that range joins can be used."""
    return any(operator not in _SQL for _, operator, _ in read(rule))


def pairs_sql(rule: str, *, each_once: bool = False) -> str:
    """FROM and WHERE of the violating pairs; `each_once`: of a symmetric rule the pairs of t before u only.

    Examples
    --------
    >>> pairs_sql("not(t.zip == u.zip and t.city != u.city)")
    'FROM r t, r u WHERE t.zip = u.zip AND t.city <> u.city'
    >>> pairs_sql("not(t.zip == u.zip)")
    'FROM r t, r u WHERE t.zip = u.zip AND t.rowid <> u.rowid'
    """
    predicates = read(rule)
    conditions = [f"t.{left} {_SQL.get(operator, operator)} u.{right}" for left, operator, right in predicates]
    if each_once and is_symmetric(rule):
        conditions.append("t.rowid < u.rowid")
    elif not any(left == right and operator in ("!=", "<", ">") for left, operator, right in predicates):
        conditions.append("t.rowid <> u.rowid")
    return "FROM r t, r u WHERE " + " AND ".join(conditions)


def connect(path: Path, columns: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """A database in memory with the columns of a Parquet file in the table r, and as many threads as we have cores."""
    import duckdb

    connection = duckdb.connect(config={"threads": cores()})
    listed = ", ".join(columns)
    connection.execute(f"CREATE TABLE r AS SELECT {listed} FROM read_parquet(?)", [str(path)])
    return connection


def peer_counts(case: Case, path: Path, warm_runs: int) -> Measurement:
    """COUNT(*) of the violating pairs of each rule, one query after the other."""
    rules = case.parameters["rules"]
    connection = connect(path, columns_of(rules))
    queries = [f"SELECT count(*) {pairs_sql(rule)}" for rule in rules]

    def work() -> list[int]:
        return [_one(connection, query) for query in queries]

    measured, counts = _at_its_best(connection, work, any(map(has_range, rules)), warm_runs)
    return measured | {"answer": {"count": sum(counts), "digest": digest_counts(counts)}}


def peer_existence(case: Case, path: Path, warm_runs: int) -> Measurement:
    """Tell whether there is a violating pair: the query may stop at the first."""
    rules = case.parameters["rules"]
    connection = connect(path, columns_of(rules))
    queries = [f"SELECT count(*) FROM (SELECT 1 {pairs_sql(rule)} LIMIT 1)" for rule in rules]

    def work() -> list[int]:
        return [_one(connection, query) for query in queries]

    measured, found = _at_its_best(connection, work, any(map(has_range, rules)), warm_runs)
    return measured | {"answer": {"count": sum(found), "digest": digest_counts(found)}}


def peer_listing(case: Case, path: Path, warm_runs: int) -> Measurement:
    """All violating pairs as Arrow batches, in whatever order they come; a symmetric rule gives each pair once."""
    (rule,) = case.parameters["rules"]
    connection = connect(path, columns_of([rule]))
    query = f"SELECT t.rowid, u.rowid {pairs_sql(rule, each_once=True)}"

    def work() -> int:
        batches = connection.sql(query).to_arrow_reader(CHUNK_ROWS)
        return sum(batch.num_rows for batch in batches)

    measured, listed = _at_its_best(connection, work, has_range(rule), warm_runs)
    batches = connection.sql(query).to_arrow_reader(CHUNK_ROWS)
    digest = digest_pairs((b.column(0).to_numpy(), b.column(1).to_numpy()) for b in batches)
    return measured | {"answer": {"count": listed, "digest": digest}}


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def _at_its_best(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Answer], has_range: bool, warm_runs: int
) -> tuple[Measurement, Answer]:
    """Time work at the setting that is faster at the first run; a setting that takes longer than the best is stopped.

    `figures` tells the setting used and the seconds of each setting's first run, or why there are none: some of the
    plans that range joins would need are not in DuckDB.
    """
    first: dict[str, float | str] = {}
    best, cold, answer = DEFAULT, None, None
    for setting in (DEFAULT, RANGE_JOINS) if has_range else (DEFAULT,):
        connection.execute(f"SET {RANGE_JOINS} = {str(setting == RANGE_JOINS).lower()}")
        taken, found = _within(connection, work, cold)
        first[setting] = taken
        if not isinstance(taken, str) and (cold is None or taken < cold):
            best, cold, answer = setting, taken, found
    assert cold is not None
    assert answer is not None
    connection.execute(f"SET {RANGE_JOINS} = {str(best == RANGE_JOINS).lower()}")
    seconds = timed(work, warm_runs - 1)[0] if warm_runs else []
    return {
        "cold_seconds": cold,
        "warm_seconds": seconds,
        "kernel_seconds": {},
        "figures": {"setting": best, "first_run_seconds": first, "threads": cores()},
    }, answer


def _within(
    connection: duckdb.DuckDBPyConnection, work: Callable[[], Answer], limit_seconds: float | None
) -> tuple[float | str, Answer | None]:
    """Seconds and answer; or why there are none, where the limit came first or DuckDB has no plan for the setting."""
    import duckdb

    stopper = threading.Timer(limit_seconds, connection.interrupt) if limit_seconds is not None else None
    started = time.perf_counter()
    if stopper is not None:
        stopper.start()
    try:
        answer: Any = work()
    except duckdb.InterruptException:
        return "stopped: slower than the other", None
    except duckdb.NotImplementedException as error:
        return f"refused: {error}", None
    finally:
        if stopper is not None:
            stopper.cancel()
            stopper.join()
    return time.perf_counter() - started, answer
