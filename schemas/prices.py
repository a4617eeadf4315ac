"""What tokens cost, as the operator configured it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

EVERY_OTHER = "*"
"""Matches the models that are not named."""


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens of the prompt, and of the completion."""

    prompt: Decimal
    completion: Decimal


@dataclass(frozen=True, slots=True)
class Prices:
    """The price of each model, in one ``currency``, whose name may be empty. The cost of a model without one is
    unknown; ``EVERY_OTHER`` may name a price for those.
    """

    models: Mapping[str, Price] = field(default_factory=lambda: MappingProxyType({}))
    currency: str = ""
