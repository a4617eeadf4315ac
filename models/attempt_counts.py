"""What is counted of attempts, for metrics, statistics, the trend and experiments."""

from __future__ import annotations

from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
"""Labels and numbers, by the columns of a statement."""

COUNTS = """
    count(*) AS attempts,
    count(*) FILTER (WHERE outcome <> 'transport') AS answers,
    count(*) FILTER (WHERE outcome = 'valid') AS usable,
    count(*) FILTER (WHERE outcome = 'transport') AS lost,
    count(*) FILTER (WHERE outcome = 'truncation') AS truncated,
    count(*) FILTER (WHERE outcome = 'empty' AND cause = 'no_content') AS zero_token,
    count(*) FILTER (WHERE first_answer) AS first_answers,
    count(*) FILTER (WHERE first_answer AND in_format) AS first_answers_in_format,
    count(*) FILTER (WHERE in_format) AS answers_in_format,
    count(*) FILTER (WHERE rules_kept) AS answers_semantic_valid
"""
"""Everything that is counted of rows of ``judged_attempts``; ``schemas.stats.RATES`` divides them."""
