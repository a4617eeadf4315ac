"""Every code that a finding can have. Programs may rely on the list; the documentation shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepladder.schemas.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping

ERROR, WARNING, HINT = Severity.ERROR, Severity.WARNING, Severity.HINT


@dataclass(frozen=True, slots=True)
class Code:
    """``what`` is wrong, and what to write ``instead``. With two severities, ``what`` says which applies when."""

    severities: tuple[Severity, ...]
    what: str
    instead: str


def _of(*severities: Severity, **codes: tuple[str, str]) -> dict[str, Code]:
    return {name: Code(severities, what, instead) for name, (what, instead) in codes.items()}


TEXT = _of(
    ERROR,
    syntax=("the text is neither YAML nor JSON", "the text at the line, fixed"),
    empty=("the document is empty", "name, version, start and states"),
    too_large=("more characters than the limit", "JSON, which has a higher limit, or two documents"),
    too_deep=("more levels or values than allowed, counting aliases", "less nesting"),
    duplicate_key=("a key occurs twice in one map", "one of the two"),
    key_not_text=("a key that is a number, a list or a map", "the key in quotes"),
    foreign_tag=("a YAML tag such as `!!python`", "plain YAML or JSON"),
    bad_unicode=("an unpaired surrogate", "a whole character"),
    not_finite=("infinity or NaN", "a finite number"),
    not_json=("a line of `judge` that is not JSON", "one JSON object per line"),
    not_text=("a line of `judge` that is not UTF-8", "UTF-8"),
    not_a_map=("a document, or a line of `judge`, that is not a map", "a map of fields"),
)
SHAPE = _of(
    ERROR,
    missing_field=("a required field is missing", "the field"),
    unknown_field=("an unknown field", "the intended field; the remedy names a similar one"),
    bad_value=("a value of the wrong type for its field", "what the remedy says"),
    bad_name=("a name with characters that are not allowed", "a name that fits the pattern"),
    bad_path=("a path in a replay's `set` that the document does not have", "an existing path"),
    state_kind=("a state of no kind, or of several", "exactly one of `ask`, `tool`, `wait`, `call` and `end`"),
)
MACHINE = _of(
    ERROR,
    unknown_state=("an edge or `start` leads to no state", "an existing state"),
    unreachable_state=("no path leads to the state", "an edge to it, or nothing"),
    no_end=("no path leads from the state to an end", "an edge to a state with `end`"),
    no_edge=("no transition from an answer, a result, a timeout or the last visit", "the edge"),
    no_action=(
        "edges keyed by action, and an output without `action`",
        "a required `action` with an enum, or one edge",
    ),
    unconditional=("one edge for all answers, and an output with an `action`", "an edge for each action"),
    optional_action=("`action` may be missing, and then no edge can be taken", "`action` in `required`"),
    open_action=("`action` may be any string, including a tool's action", "an enum"),
    action_twice=("one action for both a tool and something else", "a different action for one of them"),
    reserved_action=("an action that is reserved for the machine", "another action"),
    reserved_signal=("a signal that is reserved for the machine", "another name"),
    unconfirmed=("an irreversible tool without prior human approval", "a `wait` before it, and its own action"),
    retry_irreversible=("`retry` on an irreversible tool", "no `retry`"),
    degrade_before_tool=("`degrade` on a turn that leads to a tool", "no `degrade`"),
    each_with_tools=("`each` on a turn that chooses a tool", "two turns"),
    unknown_member=("`each.unique` names a field that no element can have", "a member of the output"),
    no_output=("a turn with neither `output` nor `tools`", "`output`"),
    no_choice=("`tool: {from: STATE}` of a state that chooses no tool", "a state with `ask` and `tools`"),
    effect_differs=("the document and the code disagree about a tool's effect", "the same effect"),
    unknown_tool=("no tool is registered under the name", "a registered tool, or `--app` with its module"),
    bad_tool=("the schema of a tool's arguments or result is unusable", "other annotations in its signature"),
) | _of(
    ERROR,
    WARNING,
    impossible_word=(
        "an edge that can never be taken: no output, tool or signal has its action; a warning under `on_failure`",
        "a possible action, or no edge",
    ),
)
MACHINE |= _of(
    WARNING,
    list_beyond_max_turns=("a list may take more turns than `limits.max_turns` allows", "a higher `limits.max_turns`"),
    nobody_else=(
        "a wait with `by: other`, published without API keys: no other principal exists to answer it",
        "`STEPLADDER_API_KEYS`, with a key for each person who confirms",
    ),
    word_without_edge=("an action that ends the job as `transition_denied`", "an edge for it, or no such action"),
)
EXPRESSIONS = _of(
    ERROR,
    bad_template=("an invalid template", "what the message says"),
    bad_expression=("an invalid CEL expression", "what the message says"),
    unknown_rule=("no rule is registered under the name", "a registered rule, or `--app` with its module"),
    rule_twice=("two rules of a turn with the same id", "an id for each"),
) | _of(
    ERROR,
    WARNING,
    unknown_name=("a name that can never exist; a warning if an open schema has a similar one", "another name"),
)
EXPRESSIONS |= _of(
    WARNING,
    too_early=("a state's result is read in a state that it has no path to", "an edge, or another name"),
)
SCHEMAS = (
    _of(
        ERROR,
        bad_schema=(
            "a schema that the draft in its `$schema` does not allow; without one, 2020-12",
            "what the message says",
        ),
        remote_reference=("a reference to another document; nothing is fetched", "a copy under `$defs`"),
        dangling_reference=("a reference to nothing", "a schema under `$defs`"),
        endless_reference=("circular references without a base case: no document matches", "a branch that ends it"),
        no_value=("keywords that no value can satisfy together", "bounds with something between them"),
    )
    | _of(
        ERROR,
        WARNING,
        not_enforced=(
            "a keyword that no known engine enforces in this form; a warning under `decoding: prompt`",
            "another form, or a rule",
        ),
    )
    | _of(
        WARNING,
        untyped_constraint=(
            "a keyword without its `type`; `enum` and `const` need none",
            "the `type`",
        ),
        idle_keyword=("a keyword without effect next to this `type` or `$ref`", "the intended type, or nothing"),
        unknown_keyword=(
            "a keyword that JSON Schema, or the draft in `$schema`, does not have",
            "the intended keyword, or `x-NAME`",
        ),
        unknown_format=("an unknown format", "an anchored `pattern`"),
        unchecked_content=("`contentEncoding` and similar keywords; they are not checked", "a rule in Python"),
        unanchored_pattern=("a pattern that matches anywhere in a string", "`^...$`"),
        no_max_length=("a string of unlimited length", "`maxLength`, an `enum`, or a pattern with bounded repetitions"),
        no_range=("a number without a lower or an upper bound", "`minimum` and `maximum`"),
        no_max_items=("a list of unlimited length", "`maxItems`"),
        no_max_properties=("a map with an unlimited number of names", "`maxProperties`, or named `properties`"),
        no_depth_bound=("a schema that contains itself", "the levels written out, or one level per turn"),
        any_value=("a place where any value of any size is valid", "a `type`, and its bounds"),
        open_object=("an object to which anything may be added", "`additionalProperties: false`"),
        loose_one_of=("branches of `oneOf` that can match the same value", "`anyOf`, or a `const` in each branch"),
        answer_first=("the answer is written before its reasons", "the reasons first"),
        too_nested=("fields deeper than the prompt describes", "fewer levels, or two turns"),
        large_enum=("more values than a prompt should contain", "two turns, or a tool that looks the value up"),
    )
    | _of(
        HINT,
        no_unknown=("a required value that cannot be given as unknown", "`type: [string, 'null']`"),
        mostly_free=("an output that is mostly free text", "enums, patterns and rules"),
    )
)
BUDGETS = _of(
    WARNING,
    budget_too_small=("a matching answer may be cut off by `max_completion_tokens`", "the suggested budget"),
) | _of(
    HINT,
    budget_unbounded=("no budget is enough for every matching answer", "bounds in the schema"),
)
ENGINES = _of(
    ERROR,
    engine_refuses=("with `--backend`: the engine refuses a schema with it", "what the remedy says"),
) | _of(
    WARNING,
    engine_ignores=("with `--backend`: the engine ignores it, and the ladder catches it", "what the remedy says"),
    engine_narrows=("with `--backend`: the engine allows less than the schema", "what the remedy says"),
)

GROUPS: Mapping[str, Mapping[str, Code]] = {
    "The text": TEXT,
    "The shape of the document": SHAPE,
    "The machine": MACHINE,
    "Templates, expressions and rules": EXPRESSIONS,
    "Schemas": SCHEMAS,
    "Budgets": BUDGETS,
    "Engines": ENGINES,
}
CODES: Mapping[str, Code] = {name: code for group in GROUPS.values() for name, code in group.items()}
