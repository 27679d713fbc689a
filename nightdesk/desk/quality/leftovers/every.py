"""Left-overs that look the same in every language."""

from __future__ import annotations

from nightdesk.desk.quality.leftovers.leftover import Leftover

# fmt: off
#: Elements no page has: they come from a model's reasoning, its tools or its chat format.
TOOL_TAGS = frozenset({
    "thinking", "think", "thought", "reasoning", "reflection", "scratchpad", "inner_monologue",
    "tool_call", "tool_calls", "tool_use", "tool_result", "tool_results", "tool_response",
    "function_call", "function_calls", "function_results", "function_response", "invoke",
    "antartifact", "antthinking", "final_answer", "system_prompt", "system-reminder",
    "search_results", "assistant_response", "user_query",
})
# fmt: on
#: Elements that are a slot written in angle brackets, as in `<insert link>`.
SLOT_TAGS = frozenset({"insert", "your", "todo", "tbd", "placeholder", "add-link", "link-here"})

_TOOL_TAG_NAMES = "|".join(sorted(TOOL_TAGS))

# Constants of PHP and C and variables of Windows that look like slots.
_NOT_SLOTS = "FILE|LINE|DIR|CLASS|FUNCTION|METHOD|NAMESPACE|TRAIT|DATE|TIME|COUNTER|VA_ARGS"
_PERCENT_SLOTS = (
    "NAME|FIRSTNAME|LASTNAME|CITY|TOWN|COUNTRY|STATE|DATE|YEAR|MONTH|COMPANY|BRAND|PRODUCT|EMAIL|"
    "PHONE|ADDRESS|PRICE|TITLE|LINK|URL|KEYWORD|SITENAME|SITE|AUTHOR|TOPIC|LOCATION"
)

LEFTOVERS: tuple[Leftover, ...] = (
    Leftover(
        "placeholder_mustache",
        r"\{\{[^{}\n]{1,120}\}\}|\{%[^{}\n]{1,120}%\}",
        "Fill this template slot or move the example into a code block.",
    ),
    Leftover(
        "placeholder_slot",
        # Not after a letter, backslash or brace: \frac{ab}{cd} is mathematics.
        r"(?<![\\\w}])\$?\{\p{L}[\p{L}\p{M}\p{N}_.\-]{1,40}(?: [\p{L}\p{M}\p{N}_.\-]{1,40}){0,4}\}",
        "Fill this template slot or move the example into a code block.",
    ),
    Leftover(
        "placeholder_percent",
        r"(?-i:%(?!PROCESSOR_)[A-Z][A-Z0-9]{0,20}(?:_[A-Z0-9]{1,20}){1,5}%"
        rf"|%(?:{_PERCENT_SLOTS})%)",
        "Fill this template slot.",
    ),
    Leftover(
        "placeholder_underscore",
        rf"(?-i:(?<!\w)__(?!(?:{_NOT_SLOTS})__)[A-Z][A-Z0-9]{{1,20}}(?:_[A-Z0-9]{{1,20}}){{0,5}}__(?!\w))",
        "Fill this template slot.",
    ),
    Leftover(
        "placeholder_blank",
        r"\[ ?(?:_{2,40}|(?-i:X){2,20}|\.{6,40}) ?\]",
        "Fill this blank.",
    ),
    Leftover(
        "artefact",
        r"\boaicite:\d|\bcontentReference\[oaicite"
        r"|\b(?:cite)?turn\d{1,3}(?:search|view|news|image|fetch|file|forecast|finance)\d{1,3}"
        r"|[\uE200-\uE20F]|【\d[\d:]{0,10}†[^【】]{0,120}】"
        r"|\[cite_(?:start|end)\]|\[cite: ?\d[\d, ]{0,40}\]|<\|[a-z_]{3,30}\|>",
        "Remove what the model's tools left behind and check the statement's source.",
    ),
    Leftover(
        "tool_tag",
        rf"</?(?:antml:\w{{1,30}}|{_TOOL_TAG_NAMES})(?: [^<>\n]{{0,120}})?>",
        "Remove the model's reasoning or tool output.",
    ),
    Leftover(
        "markdown_left",
        r"^#{2,6} ?[^\s#]|^# \S|(?<![*\d])\*\*(?=[^\s*\d])[^*\n]{0,200}[^\s*]\*\*(?![*\d])"
        r"|(?<![*\w])\*\* [^\d*\n][^*\n]{0,200}\*\*(?![*\d])"
        r"|^`{3}|`{3}$|^~{3}|!?\[[^\[\]\n]{1,120}\]\((?:https?://|/|#)[^()\s]{0,300}\)",
        "Render this Markdown or remove its markers.",
    ),
    Leftover(
        # Markdown makes no link of it and shows its source.
        "active_content",
        r"\]\( ?<?(?:javascript|vbscript|data):|<(?:javascript|vbscript|data):[^<>\s]{1,300}>"
        r"|^\[[^\[\]\n]{1,120}\]: ?<?(?:javascript|vbscript|data):",
        "Take out this link: it is a program, not an address.",
    ),
    Leftover(
        "replacement_char",
        r"[^\s\uFFFD]{0,20}\uFFFD",
        "Restore the character that was lost here.",
    ),
)
