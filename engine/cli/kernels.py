"""The kernels that each command calls, prepared while its table is read: loaded, or compiled on all cores."""

from __future__ import annotations

import contextlib
import threading
import time

from tuplewise.engine.cli.progress import Progress
from tuplewise.engine.errors import TuplewiseError

_CPU = "gpu_kernels.cpu"
_GROUPS = (f"{_CPU}.grouping.extremes_of", f"{_CPU}.grouping.write_keys")
_SCATTER = (f"{_CPU}.grouping.count_table", f"{_CPU}.grouping.table_offsets", f"{_CPU}.grouping.scatter_table")
_PAIRS = (  # the loop of the exact discoveries: pairs that agree on a few columns
    f"{_CPU}.cluster_pairs.keys_of_pairs",
    f"{_CPU}.cluster_pairs.compare",
    f"{_CPU}.cluster_pairs.compare_small",
    *_GROUPS,
    f"{_CPU}.grouping.runs_to_clusters",
    f"{_CPU}.new_clues.take_new",
    "engine.local_table.count_agreeing",
)
_DEPENDENCIES = (  # what takes longest first
    f"{_CPU}.contexts._extend",
    f"{_CPU}.contexts._read_clues",
    *_PAIRS,
    f"{_CPU}.hitting_search.edge_bitmaps",
)
_EVIDENCE = ("engine.dc.shared_values._count_common", f"{_CPU}.by_code.add_small_groups")
_CONSTRAINTS = (  # sets of bits as constraints, and which of them follow from others
    "engine.dc.inversion._read_bits",
    "engine.dc.implication._closures",
    "engine.dc.implication._build_trie",
    "engine.dc.implication._mark_implied",
)
_INVERSION = (
    f"{_CPU}.hitting_search.search_node",
    f"{_CPU}.hitting_search.child_node",
    f"{_CPU}.hitting_sets.smallest_edge",
    f"{_CPU}.hitting_sets.branches",
    *_CONSTRAINTS,
)
_VALIDATION = (
    f"{_CPU}.grouping.mark_values",
    f"{_CPU}.grouping.keep_seen",
    *_SCATTER,
    f"{_CPU}.grouping.match_runs",
    f"{_CPU}.extremes.find_extreme",
    f"{_CPU}.sorted_join.find_slices",
    "engine.column_sets.list_subsets",
)
_RANKED_TEXT = (f"{_CPU}.agreement.add_classes", *_SCATTER)  # kernels that rank rules for text

NEEDED: dict[str, tuple[str, ...]] = {
    "dc discover": (*_EVIDENCE, *_INVERSION),
    "dc discover --error": (
        *_EVIDENCE,
        f"{_CPU}.hitting_weighted.search_weighted",
        f"{_CPU}.hitting_weighted.weighted_child",
        f"{_CPU}.hitting_weighted.restrict_weighted",
        f"{_CPU}.hitting_weighted.pick_weighted",
        f"{_CPU}.hitting_weighted.budgets_of",
        f"{_CPU}.hitting_sets.branches",
        "engine.dc.inversion._read_bits",
    ),
    "dc check": (
        *_GROUPS,
        *_SCATTER,
        f"{_CPU}.grouping.mark_values",
        f"{_CPU}.sorted_join.count_slices",
        f"{_CPU}.sorted_join.partners_of",
        f"{_CPU}.sorted_join.write_slices",
        f"{_CPU}.wavelet.write_ranks",
        f"{_CPU}.wavelet.build_levels",
        f"{_CPU}.wavelet.count_dominated",
        f"{_CPU}.extremes.fill_tree",
        f"{_CPU}.extremes.report_partners",
    ),
    "dc init": (*_EVIDENCE, *_INVERSION),
    "dc insert": (
        "engine.dc.incremental.keys._find_texts",
        "engine.dc.incremental.domain_codes._spread_between",
        f"{_CPU}.column_set_index.fill_table",
        f"{_CPU}.column_set_index.scan_rows",
        f"{_CPU}.column_set_index.numbers_of",
        f"{_CPU}.hitting_search.edge_bitmaps",
        f"{_CPU}.hitting_extend.paths_of",
        f"{_CPU}.hitting_extend._mark_missing",
        f"{_CPU}.hitting_extend._search",
        f"{_CPU}.hitting_missed.first_missed",
        *_CONSTRAINTS,
    ),
    "fd discover": _DEPENDENCIES,
    "key discover": _DEPENDENCIES,
    "od discover": (*_DEPENDENCIES, "engine.od.dependency.any_inside"),
    "od check": (f"{_CPU}.partitions.order_column", f"{_CPU}.order.check_range"),
    "ind discover": (
        f"{_CPU}.distinct_csv.first_record_end",
        f"{_CPU}.distinct_csv.split_records",
        f"{_CPU}.distinct.add_cells",
        f"{_CPU}.distinct.fill_table",
        f"{_CPU}.distinct.list_values",
        f"{_CPU}.distinct.copy_values",
        f"{_CPU}.distinct.merge_values",
        f"{_CPU}.distinct.fill_masks",
        f"{_CPU}.inclusion.intersect_word",
    ),
    "profile": (
        *_GROUPS,
        f"{_CPU}.grouping.runs_to_clusters",
        *_SCATTER,
        f"{_CPU}.agreement.add_classes",
        f"{_CPU}.grouping.mark_values",
        f"{_CPU}.wavelet.write_ranks",
        f"{_CPU}.wavelet.build_levels",
        f"{_CPU}.wavelet.count_dominated",
    ),
    "check": (
        "engine.contract.chains._keep_longest_runs",
        *_GROUPS,
        f"{_CPU}.grouping.runs_to_clusters",
        *_SCATTER,
        f"{_CPU}.agreement.add_classes",
        f"{_CPU}.grouping.mark_values",
    ),
    "ind check": ("engine.ind.tuples.number_pairs", "engine.ind.tuples.find_pairs"),
}
"""The kernels that a command calls on a small table, in order of need. Others are compiled when they are called."""

NEEDED_LATER = {
    "dc discover": (_RANKED_TEXT[0], *_PAIRS, *_VALIDATION),
    "dc discover --error": (*_RANKED_TEXT, *_GROUPS, f"{_CPU}.grouping.runs_to_clusters"),
    "fd discover": _RANKED_TEXT,
    "key discover": _RANKED_TEXT,
    "od discover": _RANKED_TEXT,
}
"""Further kernels, for larger tables or for text: compiled too, but the command does not wait for them."""


def announce(progress: Progress) -> None:
    """Tell the user when a kernel is compiled by its first call."""
    from tuplewise.gpu_kernels import cache

    cache.announce_compiling(lambda: progress.say("compiling kernels, once on this machine"))


def compile_all(progress: Progress) -> None:
    """Compile every kernel that isn't compiled for this processor yet, on all cores.

    Raises TuplewiseError where machine code can't be stored, or a kernel can't be compiled.
    """
    from tuplewise.gpu_kernels import cache
    from tuplewise.gpu_kernels.building import Building, kernel_modules

    building = Building(kernel_modules())
    if building.missing and (note := cache.prepare().note):
        raise TuplewiseError(note)
    try:
        building.start()
        while building.running():
            progress.step(f"compiling kernels: {building.missing - building.left} of {building.missing}")
            time.sleep(0.1)
        building.wait()
    except (OSError, RuntimeError) as error:
        raise TuplewiseError(str(error)) from None
    finally:
        building.stop()


def get_ready(command: str, progress: Progress) -> list[str]:
    """Get a command's kernels ready now. Returns notes on them."""
    kernels = Kernels(command, progress)
    kernels.start()
    kernels.wait()
    return kernels.notes


class Kernels:
    """The kernels that a command needs, prepared in a thread of their own. `notes`: remarks for the user."""

    def __init__(self, command: str, progress: Progress) -> None:
        self._names = NEEDED[command]
        self._later = NEEDED_LATER.get(command, ())
        self._progress = progress
        self._thread: threading.Thread | None = None
        self.notes: list[str] = []

    def start(self) -> None:
        """Begin; a second call does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._get_ready, name="kernels", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Wait until they are ready, in short waits, so that Ctrl-C is heard."""
        if self._thread is not None and self._thread.is_alive():
            self._progress.step("waiting for kernels")
            while self._thread.is_alive():
                self._thread.join(timeout=0.1)

    def _get_ready(self) -> None:
        from tuplewise.gpu_kernels import cache
        from tuplewise.gpu_kernels.building import Building, load

        kept = cache.prepare()
        announce(self._progress)
        needed = Building(self._names)
        if needed.missing and kept.note:
            self.notes.append(kept.note)
            self._progress.say(f"note: {kept.note}")
        if needed.missing:
            of = f"{needed.missing} kernels" if needed.missing > 1 else "a kernel"
            self._progress.say(f"compiling {of}{', once on this machine' if kept.lasting else ''}")
            cache.announce_compiling(None)
        with contextlib.suppress(OSError):  # no processes: the command compiles what it calls
            needed.start()
            while needed.running() and (left := needed.left):
                self._progress.beside(f"compiling kernels: {needed.missing - left} of {needed.missing}")
                time.sleep(0.1)
            self._progress.beside(None)
            needed.stop()
            if self._later and not needed.left:  # else the processes were ended, and so is this command
                Building(self._later).start(niceness=10)
        load(self._names)
