"""Choices that several tasks have."""

from __future__ import annotations

from typing import Literal

Nulls = Literal["unknown", "value"]
RunOn = Literal["auto", "driver", "spark"]
ErrorMeasure = Literal["g1", "g3", "lift", "mu"]
