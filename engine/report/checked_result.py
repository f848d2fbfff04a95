"""What the results of all checks have in common: whether all holds, what is undecided, what was said of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn

from tuplewise.engine.errors import Face, python_option
from tuplewise.engine.report import model


class CheckedResult(ABC):
    """A check that was done.

    Parameters
    ----------
    found : what the check gave: its `options`, whether it is `partial`
    options : as results state them; None: those of `found`
    notes : what is to be said beside what `found` says
    total_seconds : what all took, loading included
    face : spells the options that notes name
    """

    _NO_TRUTH: ClassVar[str]

    def __init__(
        self,
        found: Any,
        *,
        options: Mapping[str, Any] | None = None,
        notes: Sequence[str] = (),
        total_seconds: float = 0.0,
        face: Face = python_option,
    ) -> None:
        self._found = found
        self._options = dict(options or model.options_record(found.options))
        self._more_notes = list(notes)
        self._total_seconds = total_seconds
        self._face = face

    def __bool__(self) -> NoReturn:
        raise TypeError(self._NO_TRUTH)

    @property
    @abstractmethod
    def _verdicts(self) -> list[bool | None]:
        """Whether each holds; None: undecided."""

    @property
    def holds(self) -> bool | None:
        """Whether all hold. None: none is known not to hold, but some are undecided."""
        verdicts = self._verdicts
        return False if False in verdicts else None if None in verdicts else True

    @property
    def failed(self) -> bool:
        """Whether some do not hold."""
        return self.holds is False

    @property
    def partial(self) -> bool:
        return bool(self._found.partial)
