"""`... discover` step by step: load the table, search, hand on what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tuplewise.engine.cli.listing import DcListing, Listing
from tuplewise.engine.cli.loading import Loading
from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import State
from tuplewise.engine.options import (
    DcDiscoverOptions,
    DependencyOptions,
    FdDiscoverOptions,
    LoadOptions,
    OdDiscoverOptions,
)

if TYPE_CHECKING:
    from tuplewise.engine.dc.discover import DcDiscovery
    from tuplewise.engine.dc.incremental.kept_space import KeptSpace
    from tuplewise.engine.report.dc_result import DcResult
    from tuplewise.engine.report.dependency_result import DependencyResult

O = TypeVar("O", DcDiscoverOptions, DependencyOptions)  # noqa: E741


class _Discovery(Generic[O]):
    """One run of a command that discovers."""

    def __init__(self, table: str, load_options: LoadOptions, options: O, progress: Progress, state: State) -> None:
        self._loading = Loading(table, load_options, options.device, progress, state, command=_command(options))
        self._load_options = load_options
        self._options: O = options
        self._progress, self._state = progress, state

    def _search(self, find: Callable[..., Any], find_opened: Callable[..., Any], most_bytes: int | None) -> Any:
        """What was found: here, or in Spark where the codes of the table take more bytes than may be here."""
        from tuplewise.engine.table.spark_load import BeyondDriver

        deadline = self._loading.deadline(self._options.time_limit)
        how: dict[str, Any] = {"progress": self._progress.share, "deadline": deadline}
        try:
            relation = self._loading.relation(most_bytes=most_bytes)
        except BeyondDriver as beyond:
            return find_opened(beyond.opened, self._options, step=self._progress.step, **how)
        return find(relation, self._options, **how)

    def _handed_on(self, **shown: Any) -> dict[str, Any]:
        """What a result is told beside what was found."""
        from tuplewise.engine.report import model

        return {
            "options": model.options_record(self._load_options, self._options, **shown),
            "notes": self._loading.notes,
            "total_seconds": self._loading.seconds,
        }


class DcRun(_Discovery[DcDiscoverOptions]):
    """One run of `dc discover`. `space_from`: a state that says which rules there are."""

    def __init__(
        self,
        table: str,
        load_options: LoadOptions,
        options: DcDiscoverOptions,
        progress: Progress,
        state: State,
        *,
        space_from: str | None = None,
    ) -> None:
        self._kept: KeptSpace | None = None
        if space_from is not None:
            from tuplewise.engine.dc.incremental.kept_space import KeptSpace

            progress.step("reading the state")
            self._kept = KeptSpace.of_state(space_from)
            load_options, options = self._kept.load_options(load_options), self._kept.discover_options(options)
        super().__init__(table, load_options, options, progress, state)
        self._space_from = space_from

    def explain(self, form: str) -> Iterator[str]:
        """The predicate space as text or JSON."""
        relation = self._loading.relation(kernels=False)
        from tuplewise.engine.dc.predicate import space_to_search
        from tuplewise.engine.report import json, model, text

        space = space_to_search(relation, self._options) if self._kept is None else self._kept.space
        options = model.options_record(
            self._load_options, self._options, explain_space=True, space_from=self._space_from
        )
        notes = [*relation.notes, *self._loading.notes]
        document = model.heading("dc discover", relation, options=options, notes=notes)
        document["result"] = model.space_record(space)
        yield (
            json.dump(document)
            if form == "json"
            else text.render(text.space_parts(document, verbose=self._state.verbose > 0))
        )

    def discover(self, listing: DcListing) -> DcResult:
        """What holds in the table."""
        found = self._find()
        from tuplewise.engine.report.dc_result import DcResult

        shown = {"rank_by": listing.rank_by, "limit": listing.limit, "explain_space": False}
        return DcResult(found, **self._handed_on(**shown, space_from=self._space_from))

    def _find(self) -> DcDiscovery:
        """What was found."""
        from tuplewise.engine.dc.discover import discover
        from tuplewise.engine.dc.distributed_discover import discover_opened, most_bytes_to_search

        most_bytes = most_bytes_to_search(self._options)
        found: DcDiscovery
        if self._kept is None:
            found = self._search(discover, discover_opened, most_bytes)
        else:
            found = self._search(self._kept.discover, self._kept.discover_opened, most_bytes)
        return found


class DependencyRun(_Discovery[DependencyOptions]):
    """One run of `fd discover`, `key discover` or `od discover`: its options say which."""

    def discover(self, listing: Listing) -> DependencyResult:
        """What holds in the table."""
        from tuplewise.engine.od.distributed_discover import discover_opened, most_bytes_to_search

        find, result = _ways(self._options)
        found = self._search(find, discover_opened, most_bytes_to_search(self._options))
        return result(found, **self._handed_on(limit=listing.limit))


def _command(options: DcDiscoverOptions | DependencyOptions) -> str:
    """Whose kernels are needed."""
    if isinstance(options, DcDiscoverOptions):
        return "dc discover --error" if options.error > 0 else "dc discover"
    if isinstance(options, OdDiscoverOptions):
        return "od discover"
    return "fd discover" if type(options) is FdDiscoverOptions else "key discover"


def _ways(options: DependencyOptions) -> tuple[Callable[..., Any], type[DependencyResult]]:
    """What finds the dependencies that options are about, and what they are handed on as."""
    if isinstance(options, OdDiscoverOptions):
        from tuplewise.engine.od.discover import discover_orders
        from tuplewise.engine.report.od_result import OdResult

        return discover_orders, OdResult
    from tuplewise.engine.fd.discover import discover_functional, discover_keys
    from tuplewise.engine.report.fd_result import FdResult, KeyResult

    return (discover_functional, FdResult) if type(options) is FdDiscoverOptions else (discover_keys, KeyResult)
