"""A state: the minimal denial constraints of a table in a folder, kept current as rows come, change and go.

What a revision changes is worked out in memory (revising.py), then written as one record of the log (folder.py); so a
state that is killed is that before the revision or after it. Rows since the last checkpoint are the tail: new rows are
compared with all of them. When it is long, a checkpoint brings the tail into the sorted rows, drops rows that have
gone, and chooses probes anew.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint
from tuplewise.engine.dc.discovery import ConstraintList
from tuplewise.engine.dc.incremental.applied import AppliedRevision, LostRule, LostRules, RuleChanges
from tuplewise.engine.dc.incremental.breaking import Breaking
from tuplewise.engine.dc.incremental.checkpointing import checkpoint_arrays, outgrown
from tuplewise.engine.dc.incremental.clue_set import WitnessedClues
from tuplewise.engine.dc.incremental.column_set_index import ColumnSetIndex
from tuplewise.engine.dc.incremental.dictionaries import Additions, Dictionaries, GapsExhausted
from tuplewise.engine.dc.incremental.fixed import Fixed
from tuplewise.engine.dc.incremental.folder import StateFolder
from tuplewise.engine.dc.incremental.held_rows import HeldRows
from tuplewise.engine.dc.incremental.initial import refuse_keys, unpacked_columns
from tuplewise.engine.dc.incremental.listing import (
    NOTHING_LISTED,
    Numbers,
    RuleListing,
    listing_of,
    listing_of_numbers,
)
from tuplewise.engine.dc.incremental.ranks import rank_codes, ranks_by_places
from tuplewise.engine.dc.incremental.revising import Revising
from tuplewise.engine.dc.incremental.revision import (
    Known,
    applied,
    difference,
    history_of,
    listed_at,
    net_changes,
    row_arrays,
)
from tuplewise.engine.dc.incremental.revision_log import LogRecord
from tuplewise.engine.dc.incremental.row_names import key_of_row
from tuplewise.engine.dc.incremental.rows import RowBatch, keys_of, read_batch
from tuplewise.engine.dc.inversion import ConstraintArrays
from tuplewise.engine.dc.predicate import build_space
from tuplewise.engine.dc.vertices import Vertices
from tuplewise.engine.errors import InputError, message
from tuplewise.engine.options import LoadOptions
from tuplewise.engine.state_folders import DCS, ClosedOnExit, damaged
from tuplewise.engine.table.relation import Relation
from tuplewise.engine.table.rows import KeptColumn
from tuplewise.engine.table.typing_columns import infer_text_column
from tuplewise.gpu_kernels.column_set_index import SortedRows
from tuplewise.gpu_kernels.device import pick_device

LEAST_TAIL = 12_288  # rows of the tail that are no reason for a checkpoint,
TAIL_SHARE = 64  # nor is one part in so many of the rows
MOST_LOG_BYTES = 256 << 20
NOTHING = "Nothing was applied"


class DcState(ClosedOnExit):
    """An open state.

    Parameters
    ----------
    folder : that `initial.build` made
    write : whether rows are to be applied; other processes may then read, not write
    device : where pairs are compared when new hitting sets are checked on the whole table

    Attributes
    ----------
    revision : 0 when it was built, one more with every change
    next_row_id : the id that the next row gets
    folder : its real path
    space, options : fixed when it was built
    columns : with their types, fixed when it was built
    name, path : of the table that it was built from
    null_tokens : texts that stand for null
    counting : whether the pairs that leave each clue are counted; a state that grows ends this at a checkpoint

    Raises
    ------
    InputError
        Where the folder is no state, is damaged, of another version, or written by another process.

    Notes
    -----
    Opening checks all files, copies the rows' codes into memory and applies the log; sorted rows and dictionaries are
    mapped. Inserting a row costs a walk down sorted arrays for each probe, comparing with the rows found there, and a
    comparison with the tail; more only where its pairs leave clues that are new.
    """

    def __init__(self, folder: str | os.PathLike[str], *, write: bool = True, device: str = "auto") -> None:
        self._files = StateFolder(folder, write=write)
        self.folder = self._files.folder
        try:
            try:
                self._built = fixed = Fixed.of_record(self._files.manifest.fixed)
            except (KeyError, TypeError, ValueError) as error:
                raise damaged(self.folder, f"what is fixed can't be read: {error}", DCS) from error
            self.name, self.path, self.null_tokens = fixed.name, fixed.path, fixed.null_tokens
            self.columns, self.options, self.space = fixed.columns, fixed.options, fixed.space
            self._files.sync = self.options.sync
            self._vertices = Vertices(self.space)
            self._device = pick_device(device)
            self._version = self._respread_at = secrets.randbits(60)  # of the dictionaries: no other state has it
            self._load()
        except BaseException:
            self._files.close()
            raise

    def _load(self, *, codes_stay: bool = False) -> None:
        """Read the folder. `codes_stay`: rows that were read before can still be applied."""
        self._whole = False  # Ctrl-C may come
        self._files.verify()
        array, names = self._files.array, self._files.arrays()
        self._dictionaries = Dictionaries.of_arrays(array, names)
        if not codes_stay:
            self._version += 1
            self._respread_at = self._version
        sorted_rows = SortedRows.of_arrays(lambda name: array(f"sorted/{name}"))
        self.next_row_id = int(array("next_id")[0])
        self.counting = bool(array("counting")[0]) if "counting" in names else self._built.counting
        self._fixed = replace(self._built, counting=self.counting)
        self._streams: dict[str, int] = json.loads(array("streams").tobytes())
        clues = WitnessedClues(self.space.layout, array("clues"), array("witnesses"), array("counts"))
        index = ColumnSetIndex(array("probes"), array("promised"), array("own"))
        known = Known(clues, array("sets"), array("violations"), index)
        rows = int(array("rows")[0])
        codes = unpacked_columns(array, len(self.columns), rows)
        ids = array("ids") if len(array("ids")) else np.arange(rows, dtype=np.int64)
        key_index = len(sorted_rows) - 1 if self.options.key else -1
        scanned_from = 0 if self.counting else len(codes)
        self._held = HeldRows(codes, ids, sorted_rows, key_index, scanned_from)
        self._work = Revising(self._held, known, self._fixed, self._vertices, self._ranked, self._device)
        self.revision = self._files.manifest.revision
        for record in self._files.records():
            self._replay(record)
        self._listed: RuleListing | None = None
        self._checkpoint_from = LEAST_TAIL
        self._whole = True

    def _replay(self, record: LogRecord) -> None:
        arrays = dict(record.arrays)
        self._dictionaries.add(Additions.of_arrays(arrays))
        if "killed" in arrays:
            self._held.kill(arrays["killed"])
        if "ids" in arrays:
            self._held.append(arrays["codes"], arrays["ids"])
        self._work.take(applied(self._work.known, arrays))
        self.next_row_id = record.header["next_id"]
        if record.header["batch"] is not None:
            stream, number = record.header["batch"]
            self._streams[stream] = number
        self.revision = record.header["revision"]

    def close(self) -> None:
        """Release the folder. May be called again."""
        self._files.close()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._held.living

    def refresh(self) -> bool:
        """Read what the writer has written since this reader was opened; whether there was anything."""
        if not self._files.refresh():
            return False
        self._load()
        return True

    @property
    def listing(self) -> RuleListing:
        """The constraints that are listed now."""
        if self._listed is None:
            known = self._work.known
            self._listed = listing_of(known.sets, known.violations, self.space, self.rows, self._ranked)
        return self._listed

    def arrays(self, revision: int | None = None) -> ConstraintArrays:
        """The constraints in result order, now (as a discovery in the same rows finds them) or after a revision.

        Raises InputError where there was no such revision. Violations of an earlier one are not known: 0.
        """
        if revision is None or revision == self.revision:
            return self.listing.arrays
        self._check_revision(revision)
        return listing_of_numbers(listed_at(self._files.history(), revision), self.space).arrays

    def constraints(self, revision: int | None = None) -> Sequence[DenialConstraint]:
        """`arrays` as objects."""
        return ConstraintList(self.space, self.arrays(revision))

    def _check_revision(self, revision: int) -> None:
        if not 0 <= revision <= self.revision:
            raise InputError(message("no such revision of the state", revision, f"0 to {self.revision}"))

    def changes(self, since: int, until: int | None = None) -> RuleChanges:
        """The net changes of the revisions after `since`, with the pair that broke each lost constraint last."""
        last = self.revision if until is None else until
        self._check_revision(since)
        self._check_revision(last)
        gained, lost = net_changes(self._files.history(since + 1), last)
        found = listing_of_numbers(gained, self.space).numbers
        gone = listing_of_numbers(list(lost), self.space).numbers
        return RuleChanges(
            tuple(self.space.constraint(list(n)) for n in found), tuple(self._lost(n, lost[n]) for n in gone)
        )

    def history(self) -> Iterator[dict[str, Any]]:
        """The changes of each revision, oldest first; constraints as text."""
        for record in self._files.history():
            gained = [str(self.space.constraint(numbers)) for numbers in record["gained"]]
            lost = [
                {"rule": str(self.space.constraint(numbers)), "broken_by": pair and {"t": pair[0], "u": pair[1]}}
                for numbers, pair in record["lost"]
            ]
            yield {**record, "gained": gained, "lost": lost}

    def _lost(self, numbers: Numbers, pair: Any) -> LostRule:
        return LostRule(self.space.constraint(list(numbers)), None if pair is None else (pair[0], pair[1]))

    def relation(self) -> Relation:
        """The rows in order of their ids."""
        codes = self._held.codes[self._held.living_rows]
        return self._dictionaries.relation(self.columns, codes, self.name, self.path)

    def _ranked(self, columns: Sequence[int] | None = None) -> Relation:
        """The rows as ranks, without values. `columns`: those that are wanted, in ranks that may have gaps."""
        held = self._held
        if columns is None:
            ranks, described, _ = rank_codes(self.columns, held.codes[held.living_rows])
        else:
            array, chosen = self._files.array, [self.columns[c] for c in columns]
            kept = [(array(f"column/{c}/codes"), array(f"column/{c}/places")) for c in columns]
            tail = held.codes[held.base : held.used, np.array(columns, dtype=np.int64)]
            ranks, described = ranks_by_places(chosen, kept, tail, held.living_rows)
        return Relation(self.name, None, described, ranks, {})

    def differs_today(self) -> list[str]:
        """Types and predicates that a state built today would gain or lose: a sentence each."""
        inferred = [c for c, column in enumerate(self.columns) if column.was_inferred]
        if not inferred and not self.options.discover.cross_columns:
            return []
        relation = self.relation()
        found = []
        for c in inferred:
            values = relation.dictionaries["text"]
            today = infer_text_column(self.columns[c].name, values, relation.codes[c])[0].type
            if today != "text" and relation.columns[c].distinct:
                found.append(f"of today's rows {self.columns[c].name!r} would be of type {today}, not text")
        return found + self._other_space(relation) if self.options.discover.cross_columns else found

    def _other_space(self, relation: Relation) -> list[str]:
        """Predicates that the space of these rows gains or loses, or orders differently: a sentence each."""
        today = build_space(relation, self.options.discover)
        mine, theirs = (
            {(int(a), int(b), int(s)): bool(o) for a, b, s, o in zip(x.left, x.right, x.scope, x.ordered, strict=True)}
            for x in (self.space, today)
        )
        found = []
        for groups, others, what in ((theirs, mine, "would be compared"), (mine, theirs, "would not be compared")):
            pairs = sorted({(a, b) for a, b, _ in groups.keys() - others.keys()})
            for a, b in pairs:
                found.append(f"of today's rows {self.space.names[a]!r} and {self.space.names[b]!r} {what}")
        for a, b in sorted({(a, b) for (a, b, s) in mine.keys() & theirs.keys() if mine[a, b, s] != theirs[a, b, s]}):
            how = "by == and != only" if mine[a, b, 0] else "by order too"
            found.append(f"of today's rows {self.space.names[a]!r} and {self.space.names[b]!r} would be compared {how}")
        return found

    def read(
        self, source: Any, load_options: LoadOptions | None = None, *, leave_out: bool = False,
        with_row_id: bool = False,
    ) -> RowBatch:  # fmt: skip
        """Rows for the state, columns matched by name and typed by its types (rows.read_batch)."""

        def work() -> RowBatch:
            return read_batch(
                source, self.columns, self._dictionaries, self.null_tokens, load_options, leave_out=leave_out,
                with_row_id=with_row_id,
            )  # fmt: skip

        try:
            batch = work()
        except GapsExhausted as full:
            self._respread(full)
            batch = work()
        return replace(batch, version=self._version)

    def _respread(self, full: GapsExhausted) -> None:
        """Give all values of some domains new codes, which leave room for the wanted ones."""
        self._check_writable()
        try:
            for domain, (old, new) in self._dictionaries.respread(full.wanted).items():
                columns = [c for c, column in enumerate(self.columns) if column.domain == domain]
                self._held.recode(columns, old, new)
            self.checkpoint()
        except BaseException:
            self._load()
            raise
        self._version += 1
        self._respread_at = self._version

    def _refuse_outdated(self, batch: RowBatch) -> None:
        """Raise InputError for rows whose new values have codes that other values may have taken since."""
        now = self._respread_at <= batch.version <= self._version
        if not now or (len(batch.additions) and batch.version != self._version):
            hint = "Read them again, with this state"
            fault = "rows that were read before others were applied, or by another state"
            raise InputError(message(fault, len(batch.codes), hint=hint))

    def _check_writable(self) -> None:
        if not self._files.writes:
            hint = "Open it again"
            raise InputError(message("the state is closed, or was opened to be read only", str(self.folder), hint=hint))
        if not self._whole:
            self._load()

    def row_ids_of(self, source: Any, load_options: LoadOptions | None = None) -> NDArray[np.int64]:
        """The ids of rows by their keys, int64. Raises InputError where a row is missing."""
        self._check_key()
        keys = keys_of(source, self._key_columns, self._dictionaries, self.null_tokens, load_options)
        return self._held.ids[self._rows_of_keys(keys, Additions())]

    def _check_key(self) -> None:
        if not self.options.key:
            hint = "Name rows by their ids, or by a column row_id; or build the state with a key"
            raise InputError(message("rows named by a key in a state without one", str(self.folder), hint=hint))

    @property
    def _key_columns(self) -> tuple[KeptColumn, ...]:
        return tuple(self.columns[c] for c in self._held.key_columns.tolist())

    def _rows_of_keys(self, keys: NDArray[np.int32], additions: Additions) -> NDArray[np.int64]:
        """The rows of keys, codes int32 (keys, key columns). Raises InputError where a row is missing."""
        rows = self._held.rows_of_keys(keys)
        if (rows < 0).any():
            first = int(np.flatnonzero(rows < 0)[0])
            shown: list[str] = []
            for column, code in zip(self._key_columns, keys[first], strict=True):
                value = "a value that no row has had"
                if code >= 0:
                    named_by = key_of_row([column], np.array([code]), self._dictionaries, additions)
                    value = repr(named_by[column.name])
                shown.append(f"{column.name} = {value}")
            named = f"row {first} of those given, {', '.join(shown)}"
            raise InputError(message("no row of the state has the key of", named, hint=NOTHING))
        return rows

    def insert(self, batch: RowBatch, *, batch_id: tuple[str, int] | None = None) -> AppliedRevision:
        """Insert rows as one revision.

        Parameters
        ----------
        batch_id : name of a stream and number of the batch; one that was applied before is not applied again

        Raises
        ------
        InputError
            Where the state is closed or only read, or a key is there twice; nothing is then changed.
        """
        if batch_id is not None and batch_id[1] <= self.applied_batch(batch_id[0]):
            return AppliedRevision(self.revision, self.rows, (), (), np.zeros(0, dtype=np.int64))
        ids = self.next_row_id + np.arange(len(batch.codes), dtype=np.int64)
        self._refuse_keys(batch.codes, np.zeros(0, dtype=np.int64))
        return self._revise("insert", batch, ids, np.zeros(0, dtype=np.int64), batch_id)

    def delete(self, row_ids: NDArray[np.int64] | Sequence[int]) -> AppliedRevision:
        """Delete rows. Raises InputError where an id is unknown or given twice; nothing is changed then."""
        ids = np.array(row_ids, dtype=np.int64).ravel()
        return self._revise("delete", None, np.zeros(0, dtype=np.int64), self._rows_of_ids(ids), None)

    def _rows_of_ids(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        distinct, counts = np.unique(ids, return_counts=True)
        if len(distinct) < len(ids):
            twice = int(distinct[np.argmax(counts > 1)])
            raise InputError(message("a row is named twice", twice, "each row once", NOTHING))
        rows = self._held.rows_of_ids(ids)
        if (rows < 0).any():
            absent = int(ids[np.argmax(rows < 0)])
            raise InputError(message("no row of the state has the id", absent, hint=NOTHING))
        return rows

    def update(self, batch: RowBatch) -> AppliedRevision:
        """Update rows, named by `row_ids` of the batch or by the key; they keep their ids.

        Raises InputError where one is not there; nothing is then changed.
        """
        if batch.row_ids is not None:
            rows = self._rows_of_ids(batch.row_ids)
        else:
            self._check_key()
            keys = np.ascontiguousarray(batch.codes[:, self._held.key_columns])
            rows = self._rows_of_keys(keys, batch.additions)
            if len(np.unique(rows)) < len(rows):
                raise InputError(message("a row is named twice", ", ".join(self.options.key), "each row once", NOTHING))
        self._refuse_keys(batch.codes, rows)
        return self._revise("update", batch, self._held.ids[rows], rows, None)

    def _refuse_keys(self, codes: NDArray[np.int32], gone: NDArray[np.int64]) -> None:
        """Raise InputError where a new row has no key, or that of another row. `gone`: rows that are deleted."""
        columns = self._held.key_columns
        if not len(columns) or not len(codes):
            return
        keys = np.ascontiguousarray(codes[:, columns])
        refuse_keys(keys, self.options.key, lambda row: f"row {row} of those given")
        rows = self._held.rows_of_keys(keys)
        taken = np.flatnonzero((rows >= 0) & ~np.isin(rows, gone))
        if len(taken):
            both = f"row {taken[0]} of those given and the row with id {self._held.ids[rows[taken[0]]]}"
            fault = f"two rows have the same key {', '.join(self.options.key)!r}"
            raise InputError(message(fault, both, "a key of its own for each row", NOTHING))

    def applied_batch(self, stream: str) -> int:
        """Number of the last batch of a stream that was applied; -1: none was."""
        return self._streams.get(stream, -1)

    def _revise(
        self, kind: Literal["insert", "delete", "update"], batch: RowBatch | None, ids: NDArray[np.int64],
        killed: NDArray[np.int64], batch_id: tuple[str, int] | None,
    ) -> AppliedRevision:  # fmt: skip
        self._check_writable()
        if batch is not None:
            self._refuse_outdated(batch)
        before, used, rows_before = self._work.known, self._held.used, self.rows
        listed = self.listing if rows_before < 2 else self._listed
        codes = np.zeros((0, len(self.columns)), np.int32) if batch is None else batch.codes
        try:
            known, gone = self._work.revise(codes, ids, killed)
            now, gained, gone_rules = listed, NOTHING_LISTED, NOTHING_LISTED
            if known.sets is not before.sets or min(rows_before, self.rows) < 2:
                if listed is None:
                    listed = listing_of_numbers(listed_at(self._files.history(), self.revision), self.space)
                only_lost = listed if gone is None and rows_before > 1 and not self.options.discover.error else None
                now = listing_of(
                    known.sets, known.violations, self.space, self.rows, self._ranked, only_lost=only_lost
                )  # fmt: skip
                gained, gone_rules = now.against(listed, self.space)
            fresh = len(before.clues) - (0 if gone is None else int(gone.sum()))
            additions = Additions() if batch is None else batch.additions
            breaking = Breaking(
                self._fixed, self._vertices, self._held, known, self._dictionaries, additions, fresh=fresh, first=used
            )
            pairs = breaking.pairs(gone_rules.arrays.predicates)
            lost = list(zip(gone_rules.numbers, pairs, strict=True))
            next_id = self.next_row_id + (len(ids) if kind == "insert" else 0)
            history = history_of(self.revision + 1, kind, self.rows, gained.numbers, lost, batch_id)
            arrays = difference(before, known, gone) | row_arrays(codes, ids, killed) | additions.arrays()
            header = {"revision": self.revision + 1, "next_id": next_id, "batch": batch_id, "history": history}
            self._files.append(LogRecord(header, arrays))
            if len(additions):
                self._dictionaries.add(additions)
                self._version += 1
            self._work.take(known)
            self._listed, self.next_row_id = now, next_id
            self.revision += 1
            if batch_id is not None:
                self._streams[batch_id[0]] = batch_id[1]
        except BaseException:
            self._load()  # wherever it was broken off: what the folder says counts
            raise
        applied_ = AppliedRevision(
            self.revision, self.rows, ConstraintList(self.space, gained.arrays),
            LostRules(ConstraintList(self.space, gone_rules.arrays), pairs),
            ids.copy() if kind == "insert" else ids[:0],
            batch.notes if batch is not None else (),
        )  # fmt: skip
        return self._checkpointed(applied_)

    def _checkpointed(self, done: AppliedRevision) -> AppliedRevision:
        """After a checkpoint, where the tail is long. That it failed is a note: the revision is written."""
        tail = self._held.used - self._held.base
        short = tail <= max(self._checkpoint_from, self._held.base // TAIL_SHARE)
        short &= self._checkpoint_from > LEAST_TAIL or not outgrown(self._fixed, self._held)
        if short and self._files.log_bytes <= MOST_LOG_BYTES:
            return done
        try:
            self.checkpoint()
        except InputError as fault:
            self._checkpoint_from = tail + LEAST_TAIL
            return replace(done, notes=(*done.notes, f"the revision is written, but no checkpoint could be: {fault}"))
        return done

    def checkpoint(self) -> None:
        """Bring the rows since the last checkpoint into the sorted ones, and drop rows that have gone.

        Nothing that is said of the state changes, and no revision comes about.
        """
        arrays = checkpoint_arrays(
            self._fixed, self._vertices, self._held, self._work.known, self._dictionaries, self.next_row_id,
            self._streams, self._ranked,
        )  # fmt: skip
        listed = self._listed
        try:
            self._files.checkpoint(arrays)
        except BaseException:
            self._load()  # the folder may have the new numbers of rows by now
            raise
        self._load(codes_stay=True)
        self._listed = listed
