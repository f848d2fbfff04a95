"""Dictionaries of a state: the codes of the values of all columns, and codes for new values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.arrow_keys import arrow_of_keys, keys_of_arrow
from tuplewise.engine.dc.incremental.domain_codes import CODES, CodedKeys, DomainCodes, NoCodeLeft, refuse_unlike
from tuplewise.engine.dc.incremental.keys import (
    Keys,
    Numbers,
    PlainKey,
    Texts,
    WideNumbers,
    keys_of_plain,
)
from tuplewise.engine.dc.incremental.ranks import rank_codes
from tuplewise.engine.table.relation import DOMAIN_OF_TYPE, NULL_CODE, Domain, Relation
from tuplewise.engine.table.rows import KeptColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODES", "UNKNOWN_CODE", "Additions", "Dictionaries", "GapsExhausted"]

UNKNOWN_CODE = -2
_FEW_ROWS = 64
_DOMAINS: tuple[Domain, ...] = tuple(dict.fromkeys(DOMAIN_OF_TYPE.values()))


class GapsExhausted(Exception):
    """No room between two codes for all new values. `Dictionaries.respread` makes room.

    Attributes
    ----------
    wanted : domain to new values, for the domains without room
    """

    def __init__(self, wanted: Mapping[Domain, Keys]) -> None:
        super().__init__(f"no room for new values: {', '.join(wanted)}")
        self.wanted = wanted


@dataclass(frozen=True, eq=False)
class Additions:
    """New values with their codes, ascending, by domain."""

    runs: Mapping[Domain, CodedKeys] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.runs.values()))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The additions as arrays for `of_arrays`."""
        return {name: array for domain, run in self.runs.items() for name, array in _arrays_of(f"new/{domain}", run)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Additions:
        """Read additions from `arrays`; other arrays are ignored."""
        return cls(
            {d: _run_of(f"new/{d}", arrays.__getitem__, arrays) for d in _DOMAINS if f"new/{d}/codes" in arrays}
        )


class Dictionaries:
    """The values of all columns and their codes: int32, at least 0 and less than `CODES`; -1 is null.

    Columns of one domain share a dictionary: equal values have one code, a lower value has a lower code. Values are
    equal as in a Relation: -0.0 equals 0.0, NaN is a single value and the last, decimals compare by value.
    """

    def __init__(self, domains: Mapping[Domain, DomainCodes]) -> None:
        self._domains = dict(domains)

    @classmethod
    def of_relation(cls, relation: Relation) -> tuple[Dictionaries, NDArray[np.int32]]:
        """Make the dictionaries of a relation's values, and its codes in them.

        Returns
        -------
        dictionaries
        codes : int32 (rows, columns), C order
        """
        import pyarrow as pa

        domains = {}
        for domain, values in relation.dictionaries.items():
            decimals = domain == "number" and not pa.types.is_integer(values.type)
            domains[domain] = DomainCodes.spread(domain, keys_of_arrow(domain, values), decimal_type=decimals)
        dictionaries = cls(domains)
        lookups = {
            domain: np.append(kept.whole().codes, np.int32(NULL_CODE)) for domain, kept in domains.items()
        }
        return dictionaries, _looked_up(relation, lookups)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All values and codes as arrays for `of_arrays`."""
        found: dict[str, NDArray[Any]] = {}
        for domain, kept in self._domains.items():
            name = f"dictionary/{domain}"
            found |= _arrays_of(name, kept.whole())
            found[f"{name}/decimal"] = np.array([kept.decimal_type])
        return found

    @classmethod
    def of_arrays(cls, arrays: Callable[[str], NDArray[Any]], names: Collection[str]) -> Dictionaries:
        """Make dictionaries from `arrays` without copying them; they may be memory-mapped files.

        Parameters
        ----------
        arrays : returns an array by its name
        names : names of all existing arrays; unrelated ones are ignored
        """
        domains = {}
        for domain in _DOMAINS:
            name = f"dictionary/{domain}"
            if f"{name}/codes" in names:
                decimals = bool(arrays(f"{name}/decimal")[0])
                domains[domain] = DomainCodes(domain, _run_of(name, arrays, names), decimal_type=decimals)
        return cls(domains)

    def encode(self, relation: Relation) -> tuple[NDArray[np.int32], Additions]:
        """Encode a relation's values. New values get codes in the gaps; `add` makes them known.

        Returns
        -------
        codes : int32 (rows, columns), C order
        additions

        Raises
        ------
        GapsExhausted
            If there is no room for new values.
        """
        lookups: dict[Domain, NDArray[np.int32]] = {}
        new = _New()
        for domain, values in relation.dictionaries.items():
            used = _used(relation, domain, len(values))
            codes = new.codes_of(domain, self._of(domain), keys_of_arrow(domain, values).take(used))
            lookups[domain] = np.full(len(values) + 1, NULL_CODE, dtype=np.int32)  # last entry (index -1): null
            lookups[domain][used] = codes
        return _looked_up(relation, lookups), new.additions()

    def known(self, relation: Relation) -> NDArray[np.int32]:
        """Codes of a relation's values, `UNKNOWN_CODE` for a value in no dictionary. int32 (rows, columns)."""
        lookups = {}
        for domain, values in relation.dictionaries.items():
            codes = self._of(domain).codes(keys_of_arrow(domain, values))
            lookups[domain] = np.append(np.where(codes < 0, UNKNOWN_CODE, codes), NULL_CODE).astype(np.int32)
        return _looked_up(relation, lookups)

    def _of(self, domain: Domain) -> DomainCodes:
        if domain not in self._domains:
            self._domains[domain] = DomainCodes.spread(domain, keys_of_plain(domain, []))
        return self._domains[domain]

    def add(self, additions: Additions) -> None:
        """Add new values to the dictionaries."""
        for domain, run in additions.runs.items():
            self._of(domain).add(run)

    def respread(
        self, wanted: Mapping[Domain, Keys] | None = None
    ) -> dict[Domain, tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Assign new codes, spread evenly, so that there is room for the wanted values.

        Parameters
        ----------
        wanted : from `GapsExhausted`; only these domains get new codes. None: all domains

        Returns
        -------
        domain to its old codes (ascending) and its new codes (ascending), int32 (values,) both
        """
        chosen = self._domains if wanted is None else wanted
        return {domain: self._of(domain).respread(None if wanted is None else wanted[domain]) for domain in chosen}

    def values(self, domain: Domain, codes: NDArray[np.int32]) -> pa.Array:
        """Values of codes, in the form of a Relation's dictionary; null for code -1.

        Raises KeyError for a code without a value.
        """
        import pyarrow as pa

        kept = self._of(domain)
        distinct, places = np.unique(codes, return_inverse=True)
        nulls = int(len(distinct) > 0 and distinct[0] == NULL_CODE)
        values = arrow_of_keys(domain, kept.keys(distinct[nulls:]), decimal_type=kept.decimal_type)
        return values.take(pa.array(places - nulls, mask=places < nulls))

    def relation(
        self, columns: Sequence[KeptColumn], codes: NDArray[np.int32], name: str, path: str | None = None
    ) -> Relation:
        """Rows as a Relation: codes become dense ranks, and its dictionaries hold the values of the rows only.

        Parameters
        ----------
        codes : int32 (rows, columns)
        """
        ranks, described, used = rank_codes(columns, codes)
        dictionaries = {
            domain: arrow_of_keys(domain, kept.keys(used[domain]), decimal_type=kept.decimal_type)
            for domain, kept in ((domain, self._of(domain)) for domain in used)
        }
        return Relation(name, path, described, ranks, dictionaries)

    def encode_keys(
        self, domains: Sequence[Domain], columns: Sequence[Sequence[PlainKey | None]]
    ) -> tuple[NDArray[np.int32], Additions]:
        """`encode` for columns of single keys, None for null."""
        rows = len(columns[0])
        if rows > _FEW_ROWS:
            return self._encode_many(domains, columns)
        found = []
        unknown: dict[Domain, dict[PlainKey, tuple[int, int]]] = {}
        missing: list[tuple[Domain, PlainKey, int, int]] = []
        for c, (domain, keys) in enumerate(zip(domains, columns, strict=True)):
            find = self._of(domain).find
            codes = []
            for r, key in enumerate(keys):
                code = NULL_CODE if key is None else find(key)
                if not isinstance(code, int):
                    assert key is not None
                    unknown.setdefault(domain, {})[key] = code
                    missing.append((domain, key, r, c))
                    code = UNKNOWN_CODE
                codes.append(code)
            found.append(codes)
        new = _New()
        given = {domain: new.codes_between(domain, self._of(domain), keys) for domain, keys in unknown.items()}
        for domain, key, r, c in missing:
            found[c][r] = given[domain][key]
        return np.array(found, dtype=np.int32).T.copy(), new.additions()

    def _encode_many(
        self, domains: Sequence[Domain], columns: Sequence[Sequence[PlainKey | None]]
    ) -> tuple[NDArray[np.int32], Additions]:
        """`encode_keys` for all distinct values of a domain at once."""
        found = np.empty((len(columns[0]), len(domains)), dtype=np.int32)
        new = _New()
        for domain in dict.fromkeys(domains):
            members = [c for c, of in enumerate(domains) if of == domain]
            distinct = set().union(*(columns[c] for c in members))
            plain = sorted([key for key in distinct if key is not None])  # type: ignore[type-var]
            codes = new.codes_of(domain, self._of(domain), keys_of_plain(domain, plain)).tolist()
            table: dict[PlainKey | None, int] = {None: NULL_CODE, **dict(zip(plain, codes, strict=True))}
            for c in members:
                found[:, c] = list(map(table.__getitem__, columns[c]))
        return found, new.additions()

    def known_keys(self, domains: Sequence[Domain], columns: Sequence[Sequence[PlainKey | None]]) -> NDArray[np.int32]:
        """`known` for columns of single keys, None for null."""
        found = np.empty((len(columns[0]), len(domains)), dtype=np.int32)
        for c, (domain, keys) in enumerate(zip(domains, columns, strict=True)):
            code = self._of(domain).code
            codes = np.array([0 if key is None else code(key) for key in keys], dtype=np.int32)
            codes[codes < 0] = UNKNOWN_CODE
            codes[[key is None for key in keys]] = NULL_CODE
            found[:, c] = codes
        return found


class _New:
    """New values found in a batch, and the domains without room for them."""

    def __init__(self) -> None:
        self._runs: dict[Domain, CodedKeys] = {}
        self._full: dict[Domain, Keys] = {}

    def codes_of(self, domain: Domain, kept: DomainCodes, keys: Keys) -> NDArray[np.int32]:
        """Codes of ascending keys, including new ones. Meaningless if there is no room."""
        try:
            codes, unknown = kept.codes_between(keys)
        except NoCodeLeft:
            self._full[domain] = keys
            return np.full(len(keys), UNKNOWN_CODE, dtype=np.int32)
        if len(unknown):
            self._take(domain, kept, keys.take(unknown), codes[unknown])
        return codes

    def codes_between(
        self, domain: Domain, kept: DomainCodes, between: Mapping[PlainKey, tuple[int, int]]
    ) -> dict[PlainKey, int]:
        """Codes of new keys, given the codes before and after each."""
        plain = sorted(between)  # type: ignore[type-var]
        keys = keys_of_plain(domain, plain)
        try:
            codes = kept.new_codes([between[key] for key in plain])
        except NoCodeLeft:
            self._full[domain] = keys
            return dict.fromkeys(plain, UNKNOWN_CODE)
        self._take(domain, kept, keys, codes)
        return dict(zip(plain, codes.tolist(), strict=True))

    def _take(self, domain: Domain, kept: DomainCodes, keys: Keys, codes: NDArray[np.int32]) -> None:
        refuse_unlike(kept, keys)
        self._runs[domain] = CodedKeys(keys, codes)

    def additions(self) -> Additions:
        """All new values. Raises GapsExhausted."""
        if self._full:
            raise GapsExhausted(self._full)
        return Additions(self._runs)


def _looked_up(relation: Relation, lookups: Mapping[Domain, NDArray[np.int32]]) -> NDArray[np.int32]:
    """Look up each cell in its domain's table, where the last entry is for null. int32 (rows, columns), C order."""
    found = np.empty((relation.rows, len(relation.columns)), dtype=np.int32)
    for c, column in enumerate(relation.columns):
        found[:, c] = lookups[column.domain][relation.codes[c]]
    return found


def _used(relation: Relation, domain: Domain, values: int) -> NDArray[np.int64]:
    """Indexes of a domain's values that occur in some row."""
    used = np.zeros(values + 1, dtype=np.bool_)
    for column, codes in zip(relation.columns, relation.codes, strict=True):
        if column.domain == domain:
            used[codes] = True
    return np.flatnonzero(used[:-1])


def _arrays_of(name: str, run: CodedKeys) -> list[tuple[str, NDArray[Any]]]:
    """Named arrays of keys and codes, for `_run_of`."""
    keys = run.keys
    if isinstance(keys, Texts):
        ends = keys.ends.astype(np.int32 if len(keys.content) < 1 << 31 else np.int64)
        parts = [("bytes", keys.content), ("ends", ends)]
    else:
        content = keys.values if isinstance(keys, Numbers) else keys.content
        parts = [("numbers", content), ("scale", np.array([keys.scale], dtype=np.int64))]
    return [(f"{name}/{part}", array) for part, array in (*parts, ("codes", run.codes))]


def _run_of(name: str, arrays: Callable[[str], NDArray[Any]], names: Collection[str]) -> CodedKeys:
    keys: Keys
    if f"{name}/ends" in names:
        keys = Texts(np.asarray(arrays(f"{name}/bytes")), np.asarray(arrays(f"{name}/ends")))
    else:
        numbers, scale = np.asarray(arrays(f"{name}/numbers")), int(arrays(f"{name}/scale")[0])
        keys = WideNumbers(numbers, scale) if numbers.ndim == 2 else Numbers(numbers, scale)
    return CodedKeys(keys, np.asarray(arrays(f"{name}/codes")))
