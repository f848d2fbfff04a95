"""`dc discover` step by step: load the table, search, hand on what was found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuplewise.engine.cli.loading import Loading
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import Listing, State
from tuplewise.engine.options import Algorithm, DcDiscoverOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.dc.discover import DcDiscovery
    from tuplewise.engine.relation.relation import Relation
    from tuplewise.engine.report.dc_result import DcResult


class Discovery:
    """One run of the command."""

    def __init__(
        self, table: str, load_options: LoadOptions, options: DcDiscoverOptions, progress: Progress, state: State
    ) -> None:
        self._loading = Loading(table, load_options, options.device, progress, state)
        self._load_options, self._options = load_options, options
        self._progress, self._state = progress, state

    def explain(self, form: str) -> Iterator[str]:
        """The predicate space as text or JSON."""
        relation = self._loading.relation()
        from tuplewise.engine.dc.predicate import build_space
        from tuplewise.engine.report import json, model, text

        space = build_space(relation, self._options)
        options = model.options_record(self._load_options, self._options, explain_space=True)
        notes = [*relation.notes, *self._loading.notes]
        document = model.heading("dc discover", relation, options=options, notes=notes)
        document["result"] = model.space_record(space)
        yield (
            json.dump(document)
            if form == "json"
            else text.render(text.space_parts(document, verbose=self._state.verbose > 0))
        )

    def discover(self, listing: Listing) -> DcResult:
        """What holds in the table."""
        from tuplewise.engine.report import model
        from tuplewise.engine.report.dc_result import DcResult

        found = self._find()
        shown = {"rank_by": listing.rank_by, "limit": listing.limit, "explain_space": False}
        return DcResult(
            found,
            options=model.options_record(self._load_options, self._options, **shown),
            notes=self._loading.notes,
            total_seconds=self._loading.seconds,
        )

    def _find(self) -> DcDiscovery:
        """What was found, here or in Spark."""
        from tuplewise.engine.dc.discover import discover
        from tuplewise.engine.dc.distributed_discover import discover_opened, most_bytes_to_search
        from tuplewise.engine.relation.spark_load import BeyondDriver

        options, deadline = self._options, self._loading.deadline(self._options.time_limit)
        most_bytes = most_bytes_to_search(options)
        try:
            relation = self._loading.relation(self._warm_up, most_bytes=most_bytes)
        except BeyondDriver as beyond:
            return discover_opened(
                beyond.opened, options, step=self._progress.step, progress=self._progress.share, deadline=deadline
            )
        return discover(relation, options, progress=self._progress.share, deadline=deadline)

    def _warm_up(self, few: Relation) -> None:
        """Discover in a few rows by each algorithm that may be taken."""
        from tuplewise.engine.dc.discover import discover

        options = self._options
        algorithms: list[Algorithm] = [options.algorithm]
        if options.algorithm == "auto" and options.error == 0 and options.sample_pairs is None:
            algorithms = ["evidence", "hybrid"]
        for algorithm in algorithms:
            discover(few, DcDiscoverOptions(device=options.device, error=options.error, algorithm=algorithm))
