"""A guard for Spark Structured Streaming: batches that keep a contract go on, the others go into quarantine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tuplewise.engine.options import ContractCheckOptions, takes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from tuplewise.engine.contract.result import ContractResult
    from tuplewise.engine.options import ContractKeywords


@takes(ContractCheckOptions)
def guard(
    contract: Any,
    write: Callable[[Any, int], object],
    *,
    quarantine: str | None = None,
    told: Callable[[int, ContractResult], object] | None = None,
    **options: Unpack[ContractKeywords],
) -> Callable[[Any, int], None]:
    """Make a function for `foreachBatch` that checks each batch against a contract of one table.

    Rules about pairs of rows are checked within each batch. A batch that comes again after a restart is checked again,
    and its folder in quarantine is overwritten, so it holds the batch once.

    Parameters
    ----------
    contract : path of the contract's file, read once
    write : called with each batch that keeps the contract, and its number
    quarantine : folder for the batches that break it, on a file system that Spark writes to
        Each becomes Parquet files in `batch=NUMBER`. None: such a batch raises InputError, which ends the stream before
        the batch counts as done.
    told : called with the number of each batch and the result of its check, for example to feed a monitor

    Returns
    -------
    function that takes a batch, a Spark DataFrame, and its number

    Raises
    ------
    InputError
        Where the contract can't be read, or has several tables.

    Examples
    --------
    >>> import tuplewise.stream
    >>> def start(stream):
    ...     def write(batch, number):
    ...         batch.write.mode("append").save("good")
    ...     checked = tuplewise.stream.guard("rules.yaml", write, quarantine="bad")
    ...     return stream.writeStream.foreachBatch(checked).start()
    """
    from tuplewise.contracts import check_contract
    from tuplewise.engine.contract.file import read_contract
    from tuplewise.engine.errors import InputError, message

    rules = read_contract(contract)
    if len(rules.tables) != 1:
        raise InputError(message(f"tables of contract {rules.name!r}", list(rules.tables), "one, for a stream"))
    ContractCheckOptions.of("guard", options)

    def check(batch: Any, number: int) -> None:
        batch.persist()
        try:
            found = check_contract(batch, rules, **options)
            if told is not None:
                told(number, found)
            if not found.failed:
                write(batch, number)
            elif quarantine is None:
                raise InputError(message(f"batch {number} breaks contract {rules.name!r}", repr(found)))
            else:
                batch.write.mode("overwrite").parquet(f"{quarantine.rstrip('/')}/batch={number}")
        finally:
            batch.unpersist()

    return check
