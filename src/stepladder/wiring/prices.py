"""Reads the configured prices."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from stepladder.schemas.errors import BadInputError
from stepladder.schemas.pointer import pointer
from stepladder.schemas.prices import Price, Prices

CURRENCY = "currency"
KINDS = ("prompt", "completion")
LONGEST_CURRENCY = 12
LONGEST_MODEL = 500
MOST = 1_000_000_000

_REMEDY = (
    'write {"currency": "EUR", "MODEL": {"prompt": 0.15, "completion": 0.6}}, the prices per million tokens, into the'
    ' variable, or as `prices` into stepladder.toml; "*" in place of MODEL covers every other model'
)


def parse_prices(given: object) -> Prices:
    """``{"MODEL": {"prompt", "completion"}, "currency"?}``, as JSON text or as a table of ``stepladder.toml``.

    Raises ``BadInputError`` naming the place of the first error. ``{}`` sets no price at all.
    """
    table = _from_json(given) if isinstance(given, str) else given
    if not isinstance(table, Mapping):
        raise _bad(what="must be an object that names models")
    currency = table.get(CURRENCY, "")
    if not isinstance(currency, str) or len(currency) > LONGEST_CURRENCY or not currency.isprintable():
        raise _bad(CURRENCY, what=f"must be a word of up to {LONGEST_CURRENCY} characters, such as EUR")
    models = {name: _price(name, price) for name, price in table.items() if name != CURRENCY}
    if currency and not models:
        raise _bad(what="names a currency but no model")
    return Prices(models, currency)


def _from_json(text: str) -> object:
    from stepladder.validation.parse import NotJson, parse  # most commands have no prices to read

    parsed = parse(text.encode("utf-8", "surrogateescape"))
    if isinstance(parsed, NotJson):
        raise _bad(what=f"is not JSON ({parsed.cause} at character {parsed.offset})")
    return parsed.value


def _price(name: str, given: object) -> Price:
    if not name or len(name) > LONGEST_MODEL or not name.isprintable():
        raise _bad(name[:LONGEST_MODEL], what=f"is not a model name: those have 1 to {LONGEST_MODEL} characters")
    if not isinstance(given, Mapping):
        raise _bad(name, what="must be an object with prompt and completion")
    for word in (*given, *KINDS):
        if word not in KINDS:
            raise _bad(name, word, what="is not a price: use prompt and completion")
        if word not in given:
            raise _bad(name, what=f"lacks the price of {word}")
    return Price(*(_amount(name, kind, given[kind]) for kind in KINDS))


def _amount(name: str, kind: str, given: object) -> Decimal:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= MOST:
        raise _bad(name, kind, what=f"must be a number from 0 to {MOST:,}")
    return Decimal(repr(given))


def _bad(*path: str, what: str) -> BadInputError:
    where = f"{pointer(path)} in it" if path else "it"
    return BadInputError(f"STEPLADDER_PRICES cannot be used: {where} {what}", remedy=_REMEDY)
