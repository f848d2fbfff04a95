"""What `discover_dcs` returns: the constraints that were found."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.constraint import DenialConstraint, Predicate
from tuplewise.engine.dc.ranking import operator_groups
from tuplewise.engine.errors import number_of
from tuplewise.engine.options import RankBy
from tuplewise.engine.report import model, sql, text
from tuplewise.engine.report.discovered_result import DiscoveredResult
from tuplewise.engine.report.result import SHOWN_IN_REPR, Choice, Chosen, Fields
from tuplewise.engine.report.sections import Heading, Section

if TYPE_CHECKING:
    import pandas as pd

    from tuplewise.engine.dc.discovery import DcDiscovery

FIELDS = ("id", "rule", "kind", "violating_pairs", "g1", "succinctness", "coverage")
ESTIMATED = ("estimated", "g1_low", "g1_high")
_CHUNK = 4096
TIMED = 1000  # constraints that tell how long others take to write


class DcResult(DiscoveredResult):
    """Denial constraints that hold in a table.

    Attributes
    ----------
    constraints : sequence of DenialConstraint, in result order (by size, column position, operator)
    relation, partial, notes, device, device_reason, timings_seconds : as of every Result

    Examples
    --------
    >>> import pandas as pd, tuplewise as tw
    >>> found = tw.discover_dcs(pd.DataFrame({"zip": ["01", "01", "02"], "city": ["A", "A", "B"], "id": [1, 2, 3]}))
    >>> "not(t.id == u.id)" in [str(c) for c in found.constraints]
    True
    """

    COMMAND = "dc discover"
    RANKINGS = get_args(RankBy)
    THINGS = ("denial constraint", "denial constraints")
    SMALLER = "more constraints, and smaller ones"
    ALL = ".constraints, .ranked(), .to_pandas()"
    _found: DcDiscovery

    @property
    def constraints(self) -> Sequence[DenialConstraint]:
        return self._found.constraints

    def __iter__(self) -> Iterator[DenialConstraint]:
        return iter(self._found.constraints)

    def __repr__(self) -> str:
        return self._described_as([c.rule for c in self.ranked(limit=SHOWN_IN_REPR)])

    def ranked(self, by: RankBy = "succinctness", limit: int | None = None) -> list[DenialConstraint]:
        """Constraints, best first by "genuineness", "succinctness", "coverage" or "g1"; ties in result order.

        Genuineness is how much more there is to a rule than chance, by the measures of `profile`
        (docs/concepts/errors.md).

        Examples
        --------
        >>> import pandas as pd, tuplewise as tw
        >>> tw.discover_dcs(pd.DataFrame({"a": [1, 2, 3]})).ranked(limit=1)[0].kind
        'key'
        """
        index = self._index(self._chosen(self.CHOICES, {"rank_by": by, "limit": limit}))
        return [constraint for constraint, _ in self._numbered(index)]

    def written_by(self, deadline: float | None) -> DcResult:
        """This result; with fewer constraints, the shortest, where not all can be written by a deadline.

        `deadline`: value of time.monotonic. A few constraints are written to nowhere, to learn what one takes.
        """
        if deadline is None or len(self) <= TIMED:
            return self
        began = time.monotonic()
        for record in self._records(np.linspace(0, len(self) - 1, TIMED).astype(np.int64)):
            json.dumps(record)
        now = time.monotonic()
        fit = max(TIMED, int(TIMED * (deadline - now) / (now - began)))
        if fit >= len(self):
            return self
        note = f"time limit: {fit:,} of the {len(self):,} constraints that were found are listed, the shortest ones"
        part = copy(self)
        part._found = self._found.first(fit, note)
        return part

    def to_pandas(self, **listed: Unpack[Choice]) -> pd.DataFrame:
        """One row a constraint: id, rule, kind, size, violating_pairs, g1, succinctness, coverage.

        Where g1 was estimated (sample_pairs), violating_pairs is missing, and estimated, g1_low and g1_high follow.
        """
        import pandas as pd

        index = self._index(self._chosen(self.CHOICES, listed))
        constraints = [constraint for constraint, _ in self._numbered(index)]
        ranking, arrays, estimate = self._found.ranking, self._found.arrays, self._found.estimate
        counts: Any = arrays.violations[index]
        if estimate is not None:
            counts = pd.array(self._violating_pairs(index), dtype="Int64")
        columns = {
            "id": [c.id for c in constraints],
            "rule": [c.rule for c in constraints],
            "kind": [c.kind for c in constraints],
            "size": arrays.sizes[index],
            "violating_pairs": counts,
            "g1": ranking.g1[index],
            "succinctness": ranking.succinctness[index],
            "coverage": ranking.coverage[index],
        }
        if estimate is not None:
            ends = (estimate.estimated, estimate.low, estimate.high)
            columns |= {name: values[index] for name, values in zip(ESTIMATED, ends, strict=True)}
        return pd.DataFrame(columns)

    def _in_full(self, chosen: Chosen) -> str:
        evidences = self._found.distinct_evidences
        said = f"{self._summary()}; {number_of(self._found.ordered_pairs, 'ordered pair')}, "
        said += number_of(self._found.space.predicates, "predicate")
        return said if evidences is None else f"{said}, {number_of(evidences, 'distinct evidence')}"

    @property
    def _facts(self) -> dict[str, Any]:
        found = self._found
        estimate = found.estimate
        return {
            "predicate_space": found.space.predicates,
            "distinct_evidences": found.distinct_evidences,
            "pairs": found.ordered_pairs,
            "algorithm": found.algorithm,
            "algorithm_reason": found.algorithm_reason,
            "search": None if found.search is None else dict(found.search),
            "estimate": None
            if estimate is None
            else {"sampled_pairs": estimate.sampled_pairs, "confidence": estimate.confidence, "measure": "g1"},
            "count": len(found.arrays),
        }

    def _lists(self, chosen: Chosen) -> dict[str, Iterable[Any]]:
        return {"constraints": self._records(self._index(chosen))}

    def _cut(self, chosen: Chosen) -> list[str]:
        if chosen.limit is None or chosen.limit >= len(self):
            return []
        return [f"{chosen.limit:,} of {len(self):,} constraints are listed (limit)"]

    def _table(self, chosen: Chosen) -> Fields:
        names = FIELDS if self._found.estimate is None else (*FIELDS, *ESTIMATED)
        return Fields(names, self._records(self._index(chosen)))

    def _queries(self, chosen: Chosen, dialect: str, table: str | None, tables: Mapping[str, str]) -> Iterator[str]:
        rules = self._numbered(self._index(chosen))
        return self._sql_writer(dialect, table).script((f"{rule.id} {rule.rule}", rule) for rule, _ in rules)

    def _sql_writer(self, dialect: str, table: str | None) -> sql.Writer:
        return sql.writer_of(self.relation, dialect, table, self._found.options.nulls)

    def _sections(self, chosen: Chosen, most: int, *, html: bool) -> list[Section]:
        """Constraints that differ in their operators only are one line where they are ranked by genuineness."""
        ranked_by = chosen.rank_by or self._by_default
        best, groups = self._best(Chosen(ranked_by, chosen.limit or most))
        grouped = groups < len(self)
        rows = [self._row(number, record, grouped, html) for number, record in enumerate(best, 1)]
        order = "best first"
        if len(best) < groups:
            order = f"best {len(best):,} of {groups:,}{' groups' if grouped else ''}"
        note = f"Best first, by {ranked_by}." if best else "There are none."
        if grouped:
            note += " Rules that differ in operators only are one line, with the number of its variants."
        return [
            Section(
                "Denial constraints", "table", self._columns(html and grouped), rows, note,
                heading=f"{order}, by {ranked_by}", count=groups, cut=len(best) < len(self),
            )
        ]  # fmt: skip

    def _columns(self, variants: bool) -> list[Heading]:
        estimate = self._found.estimate
        between: list[Heading] = []
        if estimate is not None:
            between = [(f"{100 * estimate.confidence:g} % interval", "left")]
        between = [("lift", "right")] if self._by_chance else between
        behind: list[Heading] = [("variants", "right")] if variants else []
        return [
            ("", "right"), ("kind", "left"), ("g1", "right"), *between, ("coverage", "right"), ("succinct", "right"),
            *behind, ("rule", "code"),
        ]  # fmt: skip

    def _row(self, number: int, record: Mapping[str, Any], grouped: bool, html: bool) -> list[str]:
        between = [] if self._found.estimate is None else [_interval(record)]
        between = [text.share(record["lift"])] if self._by_chance else between
        behind = [text.share(record[name]) for name in ("coverage", "succinctness")]
        figures = [text.share(record["g1"]), *between, *behind]
        variants, rule = record.get("variants", 0), record["rule"]
        if html and grouped:
            return [str(number), record["kind"], *figures, f"{variants:,}", rule]
        said = f"  and {number_of(variants, 'variant')}" if variants else ""
        return [str(number), record["kind"], *figures, rule + said]

    @property
    def _by_chance(self) -> bool:
        """Whether errors of constraints are relative to chance."""
        options = self._found.options
        return options.error > 0 and options.error_measure == "lift"

    @property
    def _by_default(self) -> RankBy:
        """What people are shown constraints by."""
        return "genuineness"

    def _best(self, chosen: Chosen) -> tuple[list[dict[str, Any]], int]:
        """What people are shown, and of how many; by genuineness the best of each group of operator variants."""
        if chosen.rank_by != "genuineness":
            return list(self._records(self._index(chosen))), len(self)
        order = self._index(Chosen("genuineness"))
        group = operator_groups(self._found.arrays, self._found.space)[order]
        _, first, counts = np.unique(group, return_index=True, return_counts=True)
        best = np.argsort(first)[: chosen.limit]
        records = self._records(order[first[best]])
        return [{**r, "variants": n - 1} for r, n in zip(records, counts[best].tolist(), strict=True)], len(first)

    def _index(self, chosen: Chosen) -> NDArray[np.int64]:
        """Numbers of the constraints to list: all in result order; with a ranking or a limit, best first."""
        if chosen.rank_by is None and chosen.limit is None:
            return np.arange(len(self), dtype=np.int64)
        if chosen.rank_by == "genuineness":
            from tuplewise.engine.profile.genuine import order_of_dcs

            return order_of_dcs(self._found)[: chosen.limit]
        by: Any = chosen.rank_by or "succinctness"
        return self._found.best(by, chosen.limit)

    def _numbered(self, index: NDArray[np.int64]) -> Iterator[tuple[DenialConstraint, list[int]]]:
        """Constraints that share their predicates, and the numbers of these: quick where there are many.

        Their texts are put together from the texts of the predicates and handed to the objects, which would make the
        same.
        """
        predicates = self._predicates()
        texts = [str(p) for p in predicates]
        arrays = self._found.arrays
        for start in range(0, len(index), _CHUNK):
            part = index[start : start + _CHUNK]
            for numbers, size in zip(arrays.predicates[part].tolist(), arrays.sizes[part].tolist(), strict=True):
                used = numbers[:size]
                constraint = DenialConstraint(tuple([predicates[i] for i in used]))
                vars(constraint)["rule"] = "not(" + " and ".join([texts[i] for i in used]) + ")"
                yield constraint, used

    def _predicates(self) -> list[Predicate]:
        return [self._found.space.predicate(i) for i in range(self._found.space.predicates)]

    def _records(self, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        """The entries of "constraints" with these numbers, made one by one: there may be millions."""
        triples = [list(map(model.operand, p.triple)) for p in self._predicates()]
        ranking = self._found.ranking
        figures = zip(
            self._numbered(index),
            self._violating_pairs(index),
            ranking.g1[index].tolist(),
            ranking.succinctness[index].tolist(),
            ranking.coverage[index].tolist(),
            self._intervals(index),
            ranking.chance[index].tolist(),
            strict=True,
        )
        by_chance = self._by_chance
        for (constraint, used), violations, g1, succinctness, coverage, interval, chance in figures:
            yield {
                "id": constraint.id,
                "rule": constraint.rule,
                "predicates": [triples[i] for i in used],
                "kind": constraint.kind,
                "violating_pairs": violations,
                "g1": g1,
                **interval,
                **({"lift": g1 / chance if chance else 0.0} if by_chance else {}),
                "succinctness": succinctness,
                "coverage": None if coverage != coverage else coverage,
            }

    def _violating_pairs(self, index: NDArray[np.int64]) -> list[int | None]:
        """Violating pairs of constraints; None where they are only estimated."""
        counts: list[int | None] = self._found.arrays.violations[index].tolist()
        if self._found.estimate is None:
            return counts
        estimated = self._found.estimate.estimated[index].tolist()
        return [None if e else n for n, e in zip(counts, estimated, strict=True)]

    def _intervals(self, index: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
        """What records of constraints say beside g1 where it was estimated; nothing where all figures are exact."""
        estimate = self._found.estimate
        if estimate is None:
            return iter([{}] * len(index))
        ends = zip(*(a[index].tolist() for a in (estimate.estimated, estimate.low, estimate.high)), strict=True)
        return (dict(zip(ESTIMATED, one, strict=True)) for one in ends)


def _interval(record: Mapping[str, Any]) -> str:
    """Within what g1 of a constraint lies, where it was estimated."""
    return f"{record['g1_low']:.2g} to {record['g1_high']:.2g}" if record["estimated"] else "exact"
