"""What tokens cost, by the operator's word."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

EVERY_OTHER = "*"
"""Stands for the models that are not named."""


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens of the prompt, and of the completion."""

    prompt: Decimal
    completion: Decimal


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of each model, in one ``currency``, whose word may be empty. A model without one costs nobody knows
    what; ``EVERY_OTHER`` may name a price for those.
    """

    models: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    currency: str = ""
