"""The dictionaries of a state: which code each value has, for all columns, and codes for values that are new."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuplewise.engine.dc.incremental.columns import KeptColumn
from tuplewise.engine.dc.incremental.domain_codes import CODES, DomainCodes, Full, Run
from tuplewise.engine.dc.incremental.keys import (
    Keys,
    Numbers,
    PlainKey,
    Texts,
    WideNumbers,
    arrow_of_keys,
    keys_of_arrow,
    keys_of_plain,
)
from tuplewise.engine.relation.relation import DOMAIN_OF_TYPE, NULL_CODE, Column, Domain, Relation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CODES", "UNKNOWN_CODE", "Additions", "Dictionaries", "GapsExhausted"]

UNKNOWN_CODE = -2
_DOMAINS: tuple[Domain, ...] = tuple(dict.fromkeys(DOMAIN_OF_TYPE.values()))


class GapsExhausted(Exception):
    """Between two codes there is no room for all new values: `Dictionaries.respread` makes room.

    Attributes
    ----------
    wanted : domain to new values, of the domains that have no room
    """

    def __init__(self, wanted: Mapping[Domain, Keys]) -> None:
        super().__init__(f"no room for new values: {', '.join(wanted)}")
        self.wanted = wanted


@dataclass(frozen=True, eq=False)
class Additions:
    """New values with their codes.

    Attributes
    ----------
    keys : domain to new values, ascending
    codes : domain to their codes, int32, ascending
    """

    keys: Mapping[Domain, Keys] = field(default_factory=dict)
    codes: Mapping[Domain, NDArray[np.int32]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(codes) for codes in self.codes.values())

    @property
    def values(self) -> dict[Domain, pa.Array]:
        """The new values themselves, by domain."""
        return {domain: arrow_of_keys(domain, keys) for domain, keys in self.keys.items()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As arrays that `of_arrays` takes."""
        found: dict[str, NDArray[Any]] = {}
        for domain, keys in self.keys.items():
            found |= _key_arrays(f"new/{domain}", keys)
            found[f"new/{domain}/codes"] = self.codes[domain]
        return found

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Additions:
        """From `arrays`; others among them are passed over."""
        domains = [domain for domain in _DOMAINS if f"new/{domain}/codes" in arrays]
        return cls(
            {domain: _keys_of(f"new/{domain}", arrays.__getitem__, arrays) for domain in domains},
            {domain: arrays[f"new/{domain}/codes"] for domain in domains},
        )


class Dictionaries:
    """The values of all columns and their codes: int32, at least 0 and less than `CODES`; -1 is null.

    Columns of one domain share a dictionary: equal values have one code, a lower value has a lower code. Values are
    equal as they are in a Relation: -0.0 and 0.0 are one, NaN is one and the last, decimals count by value.
    """

    def __init__(self, domains: Mapping[Domain, DomainCodes]) -> None:
        self._domains = dict(domains)

    @classmethod
    def of_relation(cls, relation: Relation) -> tuple[Dictionaries, NDArray[np.int32]]:
        """The dictionaries of a relation's values, and its codes in them.

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
        codes = np.empty((relation.rows, len(relation.columns)), dtype=np.int32)
        spread = {domain: kept.whole().codes for domain, kept in domains.items()}
        for c, column in enumerate(relation.columns):
            lookup = np.append(spread[column.domain], np.int32(NULL_CODE))  # the last entry is null's: index -1
            codes[:, c] = lookup[relation.codes[c]]
        return dictionaries, codes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All values and codes as arrays that `of_arrays` takes."""
        found: dict[str, NDArray[Any]] = {}
        for domain, kept in self._domains.items():
            run = kept.whole()
            name = f"dictionary/{domain}"
            found |= _key_arrays(name, run.keys)
            found[f"{name}/codes"] = run.codes
            found[f"{name}/decimal"] = np.array([kept.decimal_type])
        return found

    @classmethod
    def of_arrays(cls, arrays: Callable[[str], NDArray[Any]], names: Collection[str]) -> Dictionaries:
        """From `arrays`, without copying them: they may be maps of files.

        Parameters
        ----------
        arrays : gives an array by its name
        names : of all arrays that there are; others among them are passed over
        """
        domains = {}
        for domain in _DOMAINS:
            name = f"dictionary/{domain}"
            if f"{name}/codes" in names:
                run = Run(_keys_of(name, arrays, names), np.asarray(arrays(f"{name}/codes")))
                domains[domain] = DomainCodes(domain, run, decimal_type=bool(arrays(f"{name}/decimal")[0]))
        return cls(domains)

    def encode(self, relation: Relation) -> tuple[NDArray[np.int32], Additions]:
        """The codes of a relation's values; new values get codes in the gaps, which `add` makes known.

        Returns
        -------
        codes : int32 (rows, columns), C order
        additions

        Raises
        ------
        GapsExhausted
            Where new values find no room.
        """
        lookups: dict[Domain, NDArray[np.int32]] = {}
        new_keys: dict[Domain, Keys] = {}
        new_codes: dict[Domain, NDArray[np.int32]] = {}
        full: dict[Domain, Keys] = {}
        for domain, values in relation.dictionaries.items():
            used = _used(relation, domain, len(values))
            keys = keys_of_arrow(domain, values).take(used)
            try:
                codes, unknown = self._of(domain).codes_between(keys)
            except Full:
                full[domain] = keys
                continue
            lookups[domain] = np.full(len(values) + 1, NULL_CODE, dtype=np.int32)  # the last entry is null's: index -1
            lookups[domain][used] = codes
            if len(unknown):
                new_keys[domain], new_codes[domain] = keys.take(unknown), codes[unknown]
        if full:
            raise GapsExhausted(full)
        found = np.empty((relation.rows, len(relation.columns)), dtype=np.int32)
        for c, column in enumerate(relation.columns):
            found[:, c] = lookups[column.domain][relation.codes[c]]
        return found, Additions(new_keys, new_codes)

    def _of(self, domain: Domain) -> DomainCodes:
        if domain not in self._domains:
            self._domains[domain] = DomainCodes.spread(domain, keys_of_plain(domain, []))
        return self._domains[domain]

    def add(self, additions: Additions) -> None:
        """Make new values known."""
        for domain, keys in additions.keys.items():
            self._of(domain).add(keys, additions.codes[domain])

    def respread(
        self, wanted: Mapping[Domain, Keys] | None = None
    ) -> dict[Domain, tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Codes anew, spread evenly, so that there is room for the wanted values.

        Parameters
        ----------
        wanted : what `GapsExhausted` tells; only these domains get other codes. None: all domains

        Returns
        -------
        domain to its old codes (ascending) and the new ones (ascending), int32 (values,) both
        """
        chosen = self._domains if wanted is None else wanted
        return {domain: self._of(domain).respread(None if wanted is None else wanted[domain]) for domain in chosen}

    def values(self, domain: Domain, codes: NDArray[np.int32]) -> pa.Array:
        """The values of codes, as the dictionary of a Relation has them; null where a code is -1.

        Raises KeyError where a code is nobody's.
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
        """Rows as a Relation: codes are dense ranks, and the dictionaries hold the values that rows have.

        Parameters
        ----------
        codes : int32 (rows, columns)
        """
        ranks = np.empty(codes.shape[::-1], dtype=np.int32)
        described: list[Column | None] = [None] * len(columns)
        dictionaries: dict[Domain, pa.Array] = {}
        members: dict[Domain, list[int]] = {}
        for c, column in enumerate(columns):
            members.setdefault(column.domain, []).append(c)
        for domain, chosen in members.items():
            parts = [np.unique(codes[:, c], return_inverse=True) for c in chosen]
            used = np.unique(np.concatenate([distinct for distinct, _ in parts]))
            used = used[used != NULL_CODE]
            kept = self._of(domain)
            dictionaries[domain] = arrow_of_keys(domain, kept.keys(used), decimal_type=kept.decimal_type)
            for c, (distinct, places) in zip(chosen, parts, strict=True):
                rank = np.where(distinct == NULL_CODE, NULL_CODE, used.searchsorted(distinct)).astype(np.int32)
                ranks[c] = rank[places]
                nulls = int(np.count_nonzero(ranks[c] == NULL_CODE))
                column = columns[c]
                described[c] = Column(column.name, column.type, column.why, len(distinct) - (nulls > 0), nulls)
        ranks.setflags(write=False)
        return Relation(name, path, tuple(c for c in described if c is not None), ranks, dictionaries)

    def encode_keys(
        self, domains: Sequence[Domain], rows: Sequence[Sequence[PlainKey | None]]
    ) -> tuple[NDArray[np.int32], Additions]:
        """`encode` of rows of single keys, None for null."""
        found = np.full((len(rows), len(domains)), NULL_CODE, dtype=np.int32)
        unknown: dict[Domain, dict[PlainKey, list[tuple[int, int]]]] = {}
        kept = [self._of(domain) for domain in domains]
        for r, row in enumerate(rows):
            codes = []
            for c, key in enumerate(row):
                if key is None:
                    codes.append(NULL_CODE)
                    continue
                code = kept[c].code(key)
                if code < 0:
                    unknown.setdefault(domains[c], {}).setdefault(key, []).append((r, c))
                codes.append(code)
            found[r] = codes
        new_keys: dict[Domain, Keys] = {}
        new_codes: dict[Domain, NDArray[np.int32]] = {}
        full: dict[Domain, Keys] = {}
        for domain, cells in unknown.items():
            plain = sorted(cells)  # type: ignore[type-var]
            try:
                given = self._of(domain).new_codes(plain)
            except Full:
                full[domain] = keys_of_plain(domain, plain)
                continue
            new_keys[domain], new_codes[domain] = keys_of_plain(domain, plain), np.array(given, dtype=np.int32)
            for key, code in zip(plain, given, strict=True):
                for r, c in cells[key]:
                    found[r, c] = code
        if full:
            raise GapsExhausted(full)
        return found, Additions(new_keys, new_codes)


def _used(relation: Relation, domain: Domain, values: int) -> NDArray[np.int64]:
    """Which of a domain's values some row has."""
    used = np.zeros(values + 1, dtype=np.bool_)
    for column, codes in zip(relation.columns, relation.codes, strict=True):
        if column.domain == domain:
            used[codes] = True
    return np.flatnonzero(used[:-1])


def _key_arrays(name: str, keys: Keys) -> dict[str, NDArray[Any]]:
    if isinstance(keys, Texts):
        small = len(keys.content) < 1 << 31
        return {f"{name}/bytes": keys.content, f"{name}/ends": keys.ends.astype(np.int32 if small else np.int64)}
    content = keys.values if isinstance(keys, Numbers) else keys.content
    return {f"{name}/numbers": content, f"{name}/scale": np.array([keys.scale], dtype=np.int64)}


def _keys_of(name: str, arrays: Callable[[str], NDArray[Any]], names: Collection[str]) -> Keys:
    if f"{name}/ends" in names:
        return Texts(np.asarray(arrays(f"{name}/bytes")), np.asarray(arrays(f"{name}/ends")))
    numbers, scale = np.asarray(arrays(f"{name}/numbers")), int(arrays(f"{name}/scale")[0])
    return WideNumbers(numbers, scale) if numbers.ndim == 2 else Numbers(numbers, scale)
