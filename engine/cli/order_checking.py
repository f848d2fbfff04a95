"""`od check` step by step: read the dependencies, load the table, check; or decide from a saved result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuplewise.engine.cli.listing import OrderListing
from tuplewise.engine.cli.loading import Loading
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import LoadOptions, OdCheckOptions

if TYPE_CHECKING:
    from tuplewise.engine.report.od_check_result import OdCheckResult


class OrderChecking:
    """One run of the command on a table."""

    def __init__(
        self,
        table: str,
        load_options: LoadOptions,
        options: OdCheckOptions,
        listing: OrderListing,
        progress: Progress,
        state: State,
    ) -> None:
        self._loading = Loading(table, load_options, options.device, progress, state, command="od check")
        self._table, self._load_options, self._options, self._listing = table, load_options, options, listing
        self._progress = progress

    def check(self) -> OdCheckResult:
        """What was found. Where columns are known before loading, faults in the dependencies are told then."""
        from tuplewise.engine.od.check import check_opened, check_table
        from tuplewise.engine.report import model
        from tuplewise.engine.report.od_check_result import OdCheckResult
        from tuplewise.engine.report.od_texts import read_all_ods
        from tuplewise.engine.table.peek import column_names
        from tuplewise.engine.table.spark_load import BeyondDriver
        from tuplewise.engine.watch import most_bytes_here

        names = column_names(self._table, self._load_options)
        if names is not None:
            read_all_ods(_given(self._listing), names)
        deadline = self._loading.deadline(self._options.time_limit)
        how: dict[str, Any] = {"progress": self._progress.share, "deadline": deadline}
        try:
            relation = self._loading.relation(most_bytes=most_bytes_here(self._options))
        except BeyondDriver as beyond:
            ods, notes = read_all_ods(_given(self._listing), beyond.column_names)
            found = check_opened(beyond.opened, ods, self._options, step=self._progress.step, **how)
        else:
            ods, notes = read_all_ods(_given(self._listing), relation.column_names)
            found = check_table(relation, ods, self._options, **how)
        return OdCheckResult(
            found,
            options=model.options_record(self._load_options, self._options, against=None),
            notes=[*self._loading.notes, *notes],
            total_seconds=self._loading.seconds,
        )


def decide(listing: OrderListing, options: OdCheckOptions) -> OdCheckResult:
    """Whether the dependencies follow from a saved result."""
    from tuplewise.engine.od.check import check_saved
    from tuplewise.engine.od.implied import SavedOds
    from tuplewise.engine.report import model
    from tuplewise.engine.report.od_check_result import OdCheckResult
    from tuplewise.engine.report.od_texts import read_all_ods
    from tuplewise.engine.watch import Clock

    clock = Clock()
    saved = SavedOds.read(str(listing.against))
    ods, notes = read_all_ods(_given(listing), saved.names)
    clock.lap("reading")
    found = check_saved(saved, ods, options)
    clock.lap("checking")
    return OdCheckResult(
        replace(found, timings_seconds=clock.seconds),
        options=model.options_record(options, against=listing.against),
        notes=notes,
        total_seconds=sum(clock.seconds.values()),
    )


def _given(listing: OrderListing) -> Sequence[Any]:
    return [*listing.ods, *map(Path, listing.od_files)]
