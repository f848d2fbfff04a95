"""The one loop of every discovery: clues of pairs, minimal hitting sets, and what decides the rest.

Candidates are the minimal hitting sets of the edges that the clues seen so far make. A candidate is *decided* when all
pairs that could violate it were compared: a violating pair agrees on the column pairs of its equalities, so comparing
all pairs that agree on some of them (*exhausting* that set of column pairs) decides every candidate that includes
them. What would cost more that way is validated on the table; a violated one gives back the clues of violating pairs.
New clues continue the inversion. When nothing is undecided, the candidates are the rules.

`LoopCandidates` knows what a rule is and how it is validated; `LoopTable` knows where the rows lie.

Source: notes on large tables of this project; the scheme of sampling, inverting, completing is Hydra's (Bleifuss,
Kruse, Naumann, "Efficient Denial Constraint Discovery with Hydra", PVLDB 11(3), 2017), deciding candidates one by one
that of HPIValid (Birnick et al., "Hitting Set Enumeration with Partial Information for Unique Column Combination
Discovery", PVLDB 13(11), 2020). Departures from both: nearly all candidates are decided by comparing, many at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.column_sets import best_set, list_subsets, packed, unpacked
from tuplewise.engine.errors import LimitReached

Agreement = tuple[tuple[int, int], ...]  # column pairs (left, right), ascending: t.left == u.right for all of them
Clues = NDArray[np.uint64]

# None of these changes what is found, only how soon.
SAMPLED_PAIRS_A_ROW = 20  # of a random sample, and of a sample of agreeing pairs: as many as Hydra draws
MOST_COLUMN_PAIRS = 4  # column pairs in a set that is exhausted; `list_subsets` packs no more into 64 bits

LEAST_SAMPLED_CLUES = 64  # new clues of a sample of agreeing pairs, without which it is not repeated

# Outlier rows. A row is one if it left CLUES_OF_AN_OUTLIER_ROW new clues; OUTLIER_ROWS at a time are compared with all
# rows. They are set aside only where that pays: at least FEWEST_OUTLIER_ROWS of them, whose clues, in the first round,
# add LEAST_OUTLIER_GAIN to those of the sample. A round ends when they are MOST_OUTLIER_SHARE of the rows.
OUTLIER_ROWS = 64
CLUES_OF_AN_OUTLIER_ROW = 3
FEWEST_OUTLIER_ROWS = 128
LEAST_OUTLIER_GAIN = 0.2
MOST_OUTLIER_ROUNDS = 6
MOST_OUTLIER_SHARE = 0.02

# Exhausting and validating.
MANY_PAIRS_A_ROW = 4  # agreeing pairs of a set: with more, its time is that of pairs, and grouping its rows is nothing
SETS_A_ROUND = 48  # sets that are exhausted before the inversion is continued
MOST_TIMES_THE_ROUND = 4  # a set that costs more times what the round cost so far waits for what the round teaches
SAMPLED_CANDIDATES = 2000  # undecided candidates that a choice looks at; of more, so many at random
ALL_PAIRS_SHARE = 0.1  # deciding must have taken this share of what comparing all pairs costs before that is weighed
LEAST_PAIR_SECONDS = 1e-9  # a pair of rows costs no less
MEASURED_ROWS = 64  # rows that are compared with all others, to measure what a pair costs
FIRST_VALIDATED = 4  # candidates that are validated first, to measure what that costs
VALIDATED_A_ROUND = 16


@dataclass(frozen=True, eq=False)
class ComparedPairs:
    """The result of comparing pairs.

    Attributes
    ----------
    clues : uint64 (new, words), those not met before, of both orders
    rows : int32 (rare, 2), pairs of rows that left rare ones of them, as far as that is told
    pairs : unordered pairs of rows that were compared
    grouping_seconds, comparing_seconds : what it took, by the table's clock
    """

    clues: Clues
    rows: NDArray[np.int32]
    pairs: int
    grouping_seconds: float
    comparing_seconds: float


class LoopTable(Protocol):
    """Where the rows are: in this process, or in Spark. Rows that are equal count once."""

    rows: int
    pairs_a_row: int  # of a sample

    def clock(self) -> float:
        """Seconds of the clock that prices are measured with: of work, where other processes can't lengthen it."""

    def equal_rows(self) -> Clues:
        """The clues of pairs of equal rows, new ones only; of rows that are collapsed."""

    def sample(self) -> ComparedPairs:
        """Pairs drawn at random, each row in at least one of them; and a pair of equal rows, where there are any."""

    def estimate_pairs(self, agreement: Agreement) -> float:
        """About how many unordered pairs of rows agree on these column pairs."""

    def sample_agreeing(self, agreement: Agreement) -> ComparedPairs:
        """Compare some of the pairs that agree on these column pairs, as many as in `sample`. Raises LimitReached."""

    def compare_agreeing(self, agreement: Agreement) -> ComparedPairs:
        """Compare all pairs that agree on these column pairs; with none, all pairs. Raises LimitReached."""

    def compare_each(self, agreements: Sequence[Agreement]) -> list[ComparedPairs]:
        """`compare_agreeing` of each; a clue that several of them meet is told by one. Raises LimitReached."""

    def compare_rows(self, rows: NDArray[np.int32]) -> ComparedPairs:
        """Compare these rows, int32 (k,), with all rows. Raises LimitReached."""

    def without(self, rows: NDArray[np.int32]) -> LoopTable:
        """The table without these rows; it has met no clue yet."""


@dataclass(frozen=True, eq=False)
class ValidatedCandidates:
    """The result of validating some candidates.

    Attributes
    ----------
    clues, rows : of violating pairs, and these pairs
    candidates, violated : how many were validated, and how many of them were violated
    effort : their estimated cost, in cheapest validations
    """

    clues: Clues
    rows: NDArray[np.int32]
    candidates: int
    violated: int
    effort: float


class LoopCandidates(Protocol):
    """The candidates of the clues seen so far, and which of them are decided."""

    @property
    def column_pairs(self) -> Sequence[tuple[int, int]]:
        """Column pairs that a candidate may agree on."""

    def learn(self, clues: Clues) -> None:
        """Continue the inversion. Raises LimitReached where a deadline comes first; nothing has changed then."""

    def undecided(self) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which column pairs each undecided candidate agrees on, bool (undecided, column pairs), and what validating it
        costs, as a multiple of the cheapest validation, float64 (undecided,)."""

    def weighed(
        self, table: Any, undecided: NDArray[np.bool_], effort: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """A closer estimate of what validating some undecided candidates costs, in the unit of `undecided`."""

    def decide(self, column_pairs: Sequence[int]) -> int:
        """Mark the candidates that agree on all of these as decided, now and later; returns how many are new."""

    def validate(self, table: Any, most: int) -> ValidatedCandidates:
        """Decide at most so many undecided candidates on the table, the cheapest first. Raises LimitReached."""

    def drop_violated(self, clues: Clues) -> None:
        """Drop the candidates that these clues violate; what replaces them is not searched."""


@dataclass
class SearchRecord:
    """Figures of a search. `column_sets` holds (agreement, pairs, candidates decided).

    `sampled_pairs` are those drawn at random and those of `samples` samples of agreeing pairs; `outlier_rows` rows were
    compared with all others.
    """

    sampled_pairs: int = 0
    samples: int = 0
    outlier_rows: int = 0
    compared_pairs: int = 0
    rounds: int = 0
    column_sets: list[tuple[Agreement, int, int]] = field(default_factory=list)
    validated: int = 0
    violated: int = 0


@dataclass
class Prices:
    """Seconds for a pair, a row and a validation, measured as the loop runs by the table's clock.

    pair = seconds / pairs over the sets that many pairs agree on. What comparing took beyond pair * pairs went into
    bringing rows together: row = (grouping + comparing - pair * pairs) / rows. Exhausting a set costs
    row * rows + pair * pairs (`Loop._price`).
    """

    comparing: float = 0.0
    pairs: int = 0
    of_many: float = 0.0  # seconds and pairs of sets that many pairs agree on
    many: int = 0
    grouping: float = 0.0
    rows: int = 0
    validating: float = 0.0
    effort: float = 0.0

    def add(self, compared: ComparedPairs, rows: int) -> None:
        self.comparing += compared.comparing_seconds
        self.pairs += compared.pairs
        if compared.pairs > MANY_PAIRS_A_ROW * rows:
            self.of_many += compared.comparing_seconds
            self.many += compared.pairs
        self.grouping += compared.grouping_seconds
        self.rows += rows

    @property
    def pair(self) -> float:
        return self.of_many / self.many if self.many else self.comparing / max(1, self.pairs)

    @property
    def row(self) -> float:
        gathering = self.comparing - self.pair * self.pairs
        return (self.grouping + max(0.0, gathering)) / max(1, self.rows)

    @property
    def validation(self) -> float:
        """Of the cheapest kind."""
        return self.validating / max(1.0, self.effort)


class Loop:
    """One discovery.

    Parameters
    ----------
    outlier_rows : bool
        Whether rows that leave rare clues are looked for: not where nearly every pair leaves a clue of its own.
    all_at_once : of a table with no more pairs of rows than that, all are compared at once
    all_in_the_end : whether all pairs are compared where choosing among them has taken long
    near : returns the clues of pairs that are alike in nearly all columns. Nearly all remaining candidates then hold.
        So no samples of pairs that agree on one column pair are compared, and candidates are validated, not exhausted.
    lap : called after each stage's work: "sample", "inversion", "choice", "exhaust", "validation"
    progress : called with a share that is done; may raise LimitReached
    """

    def __init__(
        self,
        table: LoopTable,
        candidates: LoopCandidates,
        *,
        seed: int,
        lap: Callable[[str], None],
        progress: Callable[[float], None] | None,
        outlier_rows: bool = True,
        all_at_once: int = 0,
        all_in_the_end: bool = False,
        near: Callable[[], Clues] | None = None,
    ) -> None:
        self._seek_outlier_rows, self._all_at_once = outlier_rows, all_at_once
        self._all_in_the_end, self._near = all_in_the_end, near
        self.table, self.candidates = table, candidates
        self.record, self.prices = SearchRecord(), Prices()
        self._lap, self._progress = lap, progress
        self._rng = np.random.default_rng(seed)
        self._estimates: dict[int, float] = {}  # by packed set
        self._sampled: set[Agreement] = set()
        self._rows = table.rows
        self._clues_of_row = np.zeros(table.rows, dtype=np.int32)
        self._price_of_all = LEAST_PAIR_SECONDS * self._all_pairs  # seconds, as far as measured
        self._measured = 0  # rows that were compared with all others to measure it
        self._compared_all = False
        self._set_aside: list[Clues] = []  # clues of outlier rows, which are learnt last

    def run(self) -> str | None:
        """Decide all candidates. Returns the limit that came first, or None; what is decided by then holds."""
        try:
            self._run()
        except LimitReached as limit:
            if self._set_aside:
                self.candidates.drop_violated(np.concatenate(self._set_aside))
            return str(limit)
        return None

    def _run(self) -> None:
        """Decide all candidates. Raises LimitReached.

        Errors in data make outlier rows: each violates, with many rows and in many ways, what all others keep to. The
        rules of the others are found first; they are fewer, shorter and sooner proven. The outlier rows were compared
        with all rows by then. Their clues are all that is left to learn, and leave nothing undecided. Removing outliers
        reveals further ones, so this is done several times.
        """
        if self._all_pairs <= self._all_at_once:
            self._learn([self.table.equal_rows()])
            self._exhaust([()])
            return
        found, worth = self._sample_table(range(len(self.candidates.column_pairs)))
        for _ in range(MOST_OUTLIER_ROUNDS):
            common = sum(map(len, found))
            found, outliers = self._compare_outlier_rows(found)
            few = not self._set_aside and sum(map(len, found)) < (1 + LEAST_OUTLIER_GAIN) * common
            if few or len(outliers) < FEWEST_OUTLIER_ROWS:
                break
            self._set_aside += found
            self.table = self.table.without(outliers)
            self._clues_of_row = np.zeros(self.table.rows, dtype=np.int32)
            self._sampled.clear()
            self._estimates.clear()
            found, worth = self._sample_table(worth)
        self._lap("sample")
        self._learn(found)
        self._decide_all()
        if self._set_aside:
            self._learn(self._set_aside)
            self._set_aside = []
            self.candidates.decide(())

    def _sample_table(self, numbers: Iterable[int]) -> tuple[list[Clues], list[int]]:
        """Sample all rows, and those that agree on each of some column pairs, given by number.

        Returns the clues, and the column pairs that are worth sampling again.
        """
        before = self.record.compared_pairs
        found = [self._met(self.table.sample())]
        self.record.sampled_pairs += self.record.compared_pairs - before
        if self._near is not None:
            return [*found, self._near()], []
        worth = []
        for number in numbers:
            if self._needs_sample((number,)):
                found.append(self._sample((number,)))
                if len(found[-1]) >= LEAST_SAMPLED_CLUES:
                    worth.append(number)
        return found, worth

    @property
    def compared_all(self) -> bool:
        """Whether all pairs of rows were compared, and their clues were being learnt."""
        return self._compared_all

    @property
    def _all_pairs(self) -> int:
        return self.table.rows * (self.table.rows - 1) // 2

    def _decide_all(self) -> None:
        started = self.table.clock()
        while True:
            undecided, effort = self.candidates.undecided()
            if self._progress is not None:
                self._progress(1.0 / (1.0 + len(undecided)))
            if not len(undecided):
                return
            self.record.rounds += 1
            if not self.prices.effort:  # a few, to know what one costs
                self._validate(FIRST_VALIDATED)
                continue
            if self._all_in_the_end and self._is_late(started, len(undecided)):
                self._measure_all_pairs()
                if self._is_late(started, len(undecided)):
                    self._exhaust([()])
                continue
            chosen = self._choose(undecided, effort) if self._near is None else []
            unsampled = [numbers for numbers in chosen if self._needs_sample(numbers)]
            self._lap("choice")
            if unsampled:
                found = [self._sample(numbers) for numbers in unsampled]
                self._lap("sample")
                self._learn(found)
            elif chosen:
                self._exhaust(chosen)
            else:
                self._validate(VALIDATED_A_ROUND)

    def _is_late(self, started: float, undecided: int) -> bool:
        """Whether deciding the rest will take longer than comparing all pairs: as long for each as since `started`."""
        spent, decided = self.table.clock() - started, sum(of_set for _, _, of_set in self.record.column_sets)
        return spent > ALL_PAIRS_SHARE * self._price_of_all and spent * undecided > self._price_of_all * decided

    def _measure_all_pairs(self) -> None:
        """Compare some rows with all others, to know what comparing all pairs costs."""
        rows = np.arange(self._measured, min(self._measured + MEASURED_ROWS, self.table.rows), dtype=np.int32)
        self._measured += len(rows)
        compared = self.table.compare_rows(rows)
        self.record.compared_pairs += compared.pairs
        self._price_of_all = compared.comparing_seconds / max(1, compared.pairs) * self._all_pairs
        self._lap("sample")
        self._learn([compared.clues])

    def _needs_sample(self, numbers: tuple[int, ...]) -> bool:
        """Whether a set has so many agreeing pairs, four times those of a sample, that a sample of them comes first.

        A candidate that a few pairs refute needs no exhausting; most candidates with many predicates are such.
        """
        agreement = self._agreement(numbers)
        many = 4 * self.table.pairs_a_row * self.table.rows
        return bool(numbers) and agreement not in self._sampled and self._pairs(packed(numbers)) > many

    def _sample(self, numbers: tuple[int, ...]) -> Clues:
        agreement = self._agreement(numbers)
        self._sampled.add(agreement)
        self.record.samples += 1
        before = self.record.compared_pairs
        clues = self._met(self.table.sample_agreeing(agreement))
        self.record.sampled_pairs += self.record.compared_pairs - before
        return clues

    def _met(self, compared: ComparedPairs) -> Clues:
        """The clues of compared pairs; records what they cost and which rows left them."""
        self.prices.add(compared, self.table.rows)
        self.record.compared_pairs += compared.pairs
        self._note(compared.rows)
        if self._progress is not None:
            self._progress(0.0)
        return compared.clues

    def _note(self, rows: NDArray[np.int32]) -> None:
        if len(rows):
            self._clues_of_row += np.bincount(rows.ravel(), minlength=self.table.rows).astype(np.int32)

    def _learn(self, found: list[Clues]) -> None:
        self.candidates.learn(np.concatenate(found))
        self._lap("inversion")

    def _compare_outlier_rows(self, found: list[Clues]) -> tuple[list[Clues], NDArray[np.int32]]:
        """Compare the rows that left most new clues with all rows, as long as that brings new ones.

        Returns all clues, and those rows.
        """
        outliers = [np.zeros(0, dtype=np.int32)]
        while self._seek_outlier_rows:
            most = np.argsort(-self._clues_of_row, kind="stable")[:OUTLIER_ROWS].astype(np.int32)
            most = most[self._clues_of_row[most] >= CLUES_OF_AN_OUTLIER_ROW]
            if not len(most) or MOST_OUTLIER_SHARE * self.table.rows < sum(map(len, outliers)):
                break
            found.append(self._met(self.table.compare_rows(most)))
            self._clues_of_row[most] = np.iinfo(np.int32).min // 2  # each row once
            outliers.append(most)
            if len(found[-1]) < len(most):
                break
        self._clues_of_row[self._clues_of_row > 0] = 0
        rows = np.concatenate(outliers)
        self.record.outlier_rows += len(rows)
        return found, rows

    def _exhaust(self, chosen: list[tuple[int, ...]]) -> None:
        """Compare the agreeing pairs of each set; only when all their clues are learnt is anything decided by them."""
        compared = self.table.compare_each([self._agreement(numbers) for numbers in chosen])
        found, _ = self._compare_outlier_rows([self._met(of_set) for of_set in compared])
        self._lap("exhaust")
        self._compared_all |= () in chosen
        self._learn(found)
        for numbers, of_set in zip(chosen, compared, strict=True):
            decided = self.candidates.decide(numbers)
            self.record.column_sets.append((self._agreement(numbers), of_set.pairs, decided))

    def _validate(self, most: int) -> None:
        started = self.table.clock()
        validated = self.candidates.validate(self.table, most)
        self.prices.validating += self.table.clock() - started
        self.prices.effort += validated.effort
        self.record.validated += validated.candidates
        self.record.violated += validated.violated
        self._note(np.repeat(validated.rows, CLUES_OF_AN_OUTLIER_ROW, axis=0))  # whatever sampling missed is an outlier
        self._lap("validation")
        found, _ = self._compare_outlier_rows([validated.clues])
        self._learn(found)

    def _agreement(self, numbers: tuple[int, ...]) -> Agreement:
        return tuple(sorted(self.candidates.column_pairs[i] for i in numbers))

    def _choose(self, undecided: NDArray[np.bool_], effort: NDArray[np.float64]) -> list[tuple[int, ...]]:
        """Sets of column pairs to exhaust, as numbers; none where validating the candidates costs less.

        Greedy cover: each set is the one that saves most validating for its price. What it saves comes from a sample of
        the candidates; its pairs are estimated only where it could be the best.
        """
        share = 1.0
        if len(undecided) > SAMPLED_CANDIDATES:
            share = len(undecided) / SAMPLED_CANDIDATES
            sampled = self._rng.choice(len(undecided), SAMPLED_CANDIDATES, replace=False)
            undecided, effort = undecided[sampled], effort[sampled]
        saved = self.candidates.weighed(self.table, undecided, effort) * (share * self.prices.validation)
        codes, owners = list_subsets(np.ascontiguousarray(undecided), MOST_COLUMN_PAIRS)
        codes, place = np.unique(codes, return_inverse=True)
        pairs = np.array([self._estimates.get(code, np.nan) for code in codes.tolist()], dtype=np.float64)
        chosen: list[tuple[int, ...]] = []
        spent = 0.0
        while len(chosen) < SETS_A_ROUND:
            savings = np.bincount(place, weights=saved[owners]).astype(np.float64, copy=False)
            best = best_set(codes, savings, pairs, self._price, self._pairs)
            if best is None:
                break
            price = self._price(pairs[best])
            if chosen and price > MOST_TIMES_THE_ROUND * spent:
                break
            spent += price
            chosen.append(unpacked(int(codes[best])))
            saved = np.where(undecided[:, list(chosen[-1])].all(axis=1), 0.0, saved)
        return chosen

    def _price(self, pairs: Any) -> Any:
        """Seconds that exhausting a set takes that so many pairs agree on."""
        return max(1e-9, self.prices.row * self.table.rows) + self.prices.pair * pairs

    def _pairs(self, code: int) -> float:
        """About how many pairs agree on a packed set."""
        if code not in self._estimates:
            self._estimates[code] = self.table.estimate_pairs(self._agreement(unpacked(code)))
        return self._estimates[code]

    def report(self, rows: int, names: Sequence[str]) -> dict[str, Any]:
        """What results say about the search (result.search in JSON). `rows`: of the table, equal ones too."""
        r, p = self.record, self.prices
        all_pairs = rows * (rows - 1) // 2
        return {
            "sampled_pairs": r.sampled_pairs,
            "samples": r.samples,
            "outlier_rows": r.outlier_rows,
            "compared_pairs": r.compared_pairs,
            "share_of_pairs": r.compared_pairs / max(1, all_pairs),
            "equal_rows": rows - self._rows,
            "rounds": r.rounds,
            "column_sets": [
                {"columns": [[names[a], names[b]] for a, b in agreement], "pairs": pairs, "decided": decided}
                for agreement, pairs, decided in r.column_sets
            ],
            "validated": r.validated,
            "violated": r.violated,
            "undecided": len(self.candidates.undecided()[0]),
            "seconds_per": {"pair": p.pair, "row": p.row, "validation": p.validation},
        }
