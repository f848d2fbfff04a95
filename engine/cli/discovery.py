"""`dc discover` step by step: load the table, meanwhile get the kernels ready, search, hand on what was found."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.cli.settings import KERNELS_THREAD, Listing, State
from tuplewise.engine.options import DcDiscoverOptions, LoadOptions

if TYPE_CHECKING:
    from tuplewise.engine.relation.relation import Relation
    from tuplewise.engine.report.dc_result import DcResult

COMPILING = "compiling kernels (once for this version of tuplewise on this machine; up to a minute)"


class Discovery:
    """One run of the command. Its clock starts when it is made: a time limit counts loading too."""

    def __init__(
        self, table: str, load_options: LoadOptions, options: DcDiscoverOptions, progress: Progress, state: State
    ) -> None:
        self._start = time.monotonic()
        self._table, self._load_options, self._options = table, load_options, options
        self._progress, self._state = progress, state
        self._notes: list[str] = []
        self._kernels: threading.Thread | None = None

    def explain(self, form: str) -> Iterator[str]:
        """The predicate space as text or JSON."""
        relation = self._load(self._progress.step)
        from tuplewise.engine.dc.predicate import build_space
        from tuplewise.engine.report import json, model, text

        space = build_space(relation, self._options)
        options = model.options_record(self._load_options, self._options, explain_space=True)
        document = model.heading("dc discover", relation, options=options, notes=[*relation.notes, *self._notes])
        document["result"] = model.space_record(space)
        yield (
            json.dump(document)
            if form == "json"
            else text.render(text.space_parts(document, verbose=self._state.verbose > 0))
        )

    def discover(self, listing: Listing) -> DcResult:
        """What holds in the table."""
        self._check_device()
        relation = self._load(self._loading)
        self._wait_for_kernels()
        from tuplewise.engine.dc.discover import discover
        from tuplewise.engine.report import model
        from tuplewise.engine.report.dc_result import DcResult

        deadline = None if self._options.time_limit is None else self._start + self._options.time_limit
        found = discover(relation, self._options, progress=self._progress.share, deadline=deadline)
        shown = {"rank_by": listing.rank_by, "limit": listing.limit, "explain_space": False}
        return DcResult(
            found,
            options=model.options_record(self._load_options, self._options, **shown),
            notes=self._notes,
            total_seconds=time.monotonic() - self._start,
        )

    def _check_device(self) -> None:
        """A device that can't be had is known before the table is read."""
        if self._options.device not in ("auto", "cpu"):
            from tuplewise.gpu_kernels.device import pick_device

            pick_device(self._options.device)

    def _load(self, report: Callable[[str], None]) -> Relation:
        """The table. What Spark leaves behind is cleared away: it is not needed any more."""
        from tuplewise.engine.relation.load import load

        relation = load(self._table, self._load_options, progress=report)
        if self._state.own_process and relation.spark is not None:
            from tuplewise.engine.spark.session import stop

            threading.Thread(target=stop, name="stop Spark").start()
        return relation

    def _loading(self, step: str) -> None:
        self._progress.step(step)
        if self._kernels is None:
            self._kernels = threading.Thread(target=self._get_kernels_ready, name=KERNELS_THREAD, daemon=True)
            self._kernels.start()

    def _get_kernels_ready(self) -> None:
        """Load the kernels, or compile them, while Spark starts: by a discovery in a table of three rows."""
        from tuplewise.gpu_kernels import cache

        cache.announce_compiling(lambda: self._progress.say(COMPILING))
        if note := cache.prepare().note:
            self._notes.append(note)
            self._progress.say(f"note: {note}")
        import pyarrow as pa

        from tuplewise.engine.dc.discover import discover
        from tuplewise.engine.relation.load import load

        few = pa.table({"a": [1, 2, 2], "b": ["x", "y", None], "c": [3, 1, 3]})
        with contextlib.suppress(Exception):  # the table's own discovery meets it again, and will say it
            discover(load(few), DcDiscoverOptions(device=self._options.device, error=self._options.error))

    def _wait_for_kernels(self) -> None:
        if self._kernels is not None and self._kernels.is_alive():
            self._progress.step("loading kernels")
            while self._kernels.is_alive():  # in short waits, so that Ctrl-C is heard
                self._kernels.join(timeout=0.1)
