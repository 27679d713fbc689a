"""English left-overs: only what a model says to its user, or a slot says to its author.

Phrases that people write too (a third-person "as an AI model scales", a bare "[the mayor]") need a
first person, a verb or a slot word beside them before they count.
"""

from __future__ import annotations

from nightdesk.desk.quality.leftovers.leftover import Leftover
from nightdesk.desk.quality.verdict import Severity

_OWNER = (
    r"(?:(?:your|company|brand|product|client|customer|site|website|business|first|last|full|"
    r"author|city|store|team|project|recipient|organi[sz]ation|event|contact|target|main|"
    r"phone|email|e-mail|zip|street|current|specific|relevant|publication) ){0,3}"
)
_SLOT_NOUN = (
    r"(?:names?|city|date|year|price|number|phone|email|e-mail|address|url|link|keyword|"
    r"company|brand|website|location|amount|statistic|percentage|topic|job title|code)"
)
_AI = (
    r"(?:(?:AI|artificial intelligence|large|generative|virtual|language|text-based|digital|"
    r"machine learning|AI-powered) ){0,3}(?:AI|artificial intelligence|LLM|language model|"
    r"(?:AI|language|virtual) (?:model|assistant|chatbot|system|program|tool)|chatbot)"
)
_MADE_BY = r"(?:,? (?:trained|developed|created|built|made|designed) (?:by|to) [^.!?,\n]{1,60})?"
_WRITTEN = (
    r"(?:article|blog|post|draft|outline|version|rewrite|copy|text|content|guide|piece|"
    r"section|introduction|summary)"
)
_YES = (
    r"(?:sure|certainly|absolutely|of course|understood|got it|no problem|okay|great|perfect)"
    r"(?: thing)?[!,.:–—] ?"
)
_UNIT = (
    r"(?:hours?|minutes?|seconds?|days?|weeks?|months?|years?|percent|kilomet(?:er|re)s?|"
    r"met(?:er|re)s?|miles?|dollars?|euros?|pounds?|degrees|watts?|km|kg|cm|mm|GB|MB|TB|kWh|kW|"
    r"MW|mAh|USD|EUR|GBP)"
)

_PLACEHOLDERS = (
    Leftover(
        "placeholder_todo",
        # Lower case only alone or before a colon: "[todo el mundo]" is Spanish.
        r"[\[【] ?(?:(?-i:TODO|FIXME|TBD|TBC|TK|XXX|PLACEHOLDER)\b(?! ?,)[^\[\]【】\n]{0,200}"
        r"|(?:todo|to-do|fixme|tbd|tbc|placeholder)(?: ?:[^\[\]【】\n]{0,200})?) ?[\]】]"
        r"|\((?-i:TODO|FIXME|TBD|TBC)\)"
        r"|(?<![\w/])(?-i:TODO|FIXME)(?:\(\w{1,40}\))?:(?= |$)",
        "Do what this note says and delete it.",
    ),
    Leftover(
        "placeholder_insert",
        r"\[ ?(?:please )?(?:insert|fill in|replace with|replace this|specify|to be (?:added|"
        r"determined|confirmed|filled|completed|decided|announced))\b[^\[\]\n]{0,200}\]"
        r"|\[ ?(?:please )?(?:add|enter|include|provide|describe|attach|mention|put|link to|choose|"
        r"list|write|give|details? (?:of|about))(?: (?:a|an|the|quote|your|some|more|any|one|two|"
        r"three|here|of|current|relevant|specific|name|link|image|source|price|date|number|example|"
        r"examples|details|company|product|data|city))[^\[\]\n]{0,200}\]"
        r"|\[[^\[\]\n]{1,80} (?:goes here|here|placeholder) ?\]"
        r"|\[ ?placeholder\b[^\[\]\n]{0,120}\]"
        r"|\[ ?(?:link|names?|quote|number|title|text|statistics?|examples?) (?:of|to|from|for) "
        r"[^\[\]\n]{1,120}\]|\[ ?(?:internal|external) link\b[^\[\]\n]{0,120}\]"
        r"|\[ ?note to (?:the )?(?:editor|writer|author|self|client)\b[^\[\]\n]{0,200}\]"
        r"|\[ ?(?:verify|check|confirm|fact-check) (?:this|that|these|the|with)\b[^\[\]\n]{0,120}\]"
        rf"|\( ?insert [^()\n]{{1,80}}\)|\binsert (?:your |the )?{_OWNER}{_SLOT_NOUN} here\b",
        "Put in what this note asks for and delete the brackets.",
    ),
    Leftover(
        "placeholder_slot",
        rf"\[ ?{_OWNER}{_SLOT_NOUN}(?: ?[/,] ?{_OWNER}{_SLOT_NOUN}){{0,3}} ?\]"
        r"|\[ ?your [^\[\]\n]{1,60} ?\]",
        "Fill this slot.",
    ),
    Leftover(
        "placeholder_angle",
        r"<(?:insert|your|add|enter|todo|tbd|placeholder|replace)\b[^<>\n]{0,120}>",
        "Fill this slot.",
    ),
    Leftover(
        "placeholder_citation",
        r"\[ ?(?:needs? (?:a )?(?:citation|source)|"
        r"(?:citations?|sources?|references?|refs?|link) (?:needed|required|missing|tbd|here|"
        r"to be added)) ?\]|\[ ?(?:citation|source|reference|cite|ref|stat|statistic) ?\??\]",
        "Name the source or take the statement out.",
    ),
    Leftover(
        "placeholder_xx",
        rf"(?<!Bowl )\b(?-i:X{{2,4}}) ?-?(?:{_UNIT}\b|%)"
        r"|[$€£] ?(?-i:X{1,4}(?:[,.]X{1,4}){0,3})(?!\w)|\b(?-i:X{1,3},XXX)\b",
        "Put in the number.",
    ),
    Leftover(
        "placeholder_tbd",
        r"^[\[( ]{0,2}(?-i:TBD|TBC|TODO|TK)[\]).! ]{0,2}$|: (?-i:TBD|TBC)\.?$",
        "Put in the value or take the line out.",
    ),
    Leftover(
        "placeholder_image",
        r"\[ ?(?:insert )?(?:featured |hero |stock )?(?:image|photo|picture|screenshot|infographic|"
        r"chart|graph|diagram|illustration|graphic|video|gif|embed)"
        r"(?: (?:\d{1,2}|of|showing|here|placeholder|suggestion|description|idea)[^\[\]\n:]{0,120}"
        r"\]| ?[:–—-] [^\[\]\n]{1,300}\])|\[ ?(?:image|screenshot|infographic) ?\]",
        "Put in the picture or take the note out.",
    ),
    Leftover(
        "placeholder_lorem",
        r"\blorem ipsum dolor\b",
        "Replace the filler text.",
    ),
    Leftover(
        "placeholder_omitted",
        rf"[\[(](?:\.\.\. ?)?(?:the )?(?:(?:rest|remainder) of (?:the |this |your )?{_WRITTEN}\b"
        r"|remaining (?:sections|content|text|paragraphs)\b"
        rf"|(?:the )?{_WRITTEN} (?:continues|truncated|omitted|goes on)\b"
        r"|continue (?:with|in) (?:the|this|more|similar)\b"
        r"|(?:to be )?continued in (?:the |my )?next (?:message|response|reply))"
        r"[^\[\]()\n]{0,160}[\])]|\(continue\)",
        "Write the part that was left out.",
    ),
)

_TALK = (
    Leftover(
        "ai_disclosure",
        rf"\bas an? {_AI}{_MADE_BY},? (?:I|my)\b"
        rf"|\bI(?: am|'m) (?:just |only |merely |simply )?an? {_AI}\b(?!['-]| (?!and\b)\w)"
        r"|\b(?:as of )?my (?:last |latest |current )?(?:knowledge|training)(?: data)? "
        r"(?:cut-?off|update|only goes|goes (?:up )?to|ends in|extends)"
        r"|\bas of my last (?:knowledge |training )?update\b"
        r"|\bmy training data (?:only|goes|ends|includes|does|is|was|may|extends)\b"
        r"|\bI (?:do not|don't|cannot|can't) have (?:any )?(?:access to )?"
        r"(?:personal (?:experiences|opinions|feelings|beliefs|preferences)"
        r"|real[- ]time (?:data|information|access|prices))"
        r"|\bI (?:do not|don't) have the ability to (?:browse|access)\b"
        r"|\bI (?:cannot|can't) browse the (?:internet|web)\b",
        "Remove what the model says about itself.",
    ),
    Leftover(
        "refusal",
        r"\bI(?:'m| am) (?:very |really |so )?(?:sorry|afraid),? (?:but |that )?"
        r"(?:as [^.!?\n]{1,60}, )?"
        r"I (?:can't|cannot|can not|am unable to|am not able to|won't be able to) "
        r"(?:assist|help|provide|write|create|generate|comply|fulfill?|produce|do that|continue|"
        r"answer|discuss|complete|share|offer)\b"
        r"|\bI (?:can't|cannot|can not|won't|am unable to|am not able to|'m unable to) "
        r"(?:assist|help|comply|continue) (?:you )?with (?:that|this|your)(?: request)?\b"
        r"|\bI(?: am|'m) (?:unable|not able) to (?:fulfill?|comply|assist|generate|complete) "
        r"(?:with )?(?:this|that|your)\b"
        r"|\bI apologi[sz]e, but I (?:can't|cannot|am unable to|won't) "
        r"(?:assist|help|provide|write|create|generate|comply|fulfill?|discuss)\b"
        r"|\bunfortunately, I (?:can't|cannot|am unable to|am not able to) (?:provide|write|create|"
        r"generate|assist|fulfill?) (?:with )?(?:this|that|your|content|an article|articles)\b"
        r"|\bI must decline\b|\b(?:goes )?against my (?:guidelines|programming)\b"
        r"|\bI (?:can't|cannot) (?:fulfil|fulfill|complete) (?:this|that|your) request\b",
        "The model refused: write the article or take the passage out.",
    ),
    Leftover(
        "chat_preamble",
        rf"^{_YES}(?:here(?:'s| is| are)|below is|please find) [^.!?\n]{{0,100}}\b{_WRITTEN}\b"
        rf"|^{_YES}I(?:'ve| have) (?:written|drafted|created|prepared|rewritten|revised|updated)\b"
        rf"|^{_YES}I(?:'ll|'d| will| would) (?:gladly|be happy to|be glad to)\b"
        r"|^(?:here(?:'s| is)|below is) (?:your|the|a|an) (?:[\w,-]{1,30} ){0,6}"
        r"(?:article|blog post|draft|version|rewrite|outline|text|post)\b[^.!?:\n]{0,120}"
        r"(?::$|\byou (?:asked|requested|wanted)|\bas requested|\bthat (?:meets|follows)\b)"
        r"|^here(?:'s| is) your\b[^.!?\n]{0,60}\b(?:article|blog post|draft|rewrite)\b"
        r"|^(?:great|excellent|good) question!",
        "Remove what the model says to its user before the text.",
    ),
    Leftover(
        "chat_closing",
        r"\bI hope (?:this|that) helps\b"
        r"|\bI hope this (?:article |draft |text )?(?:meets|works for|fits|is what you)\b"
        r"|\blet me know if (?:you(?:'d| would) like|you want|you need|you have|there's|there is)"
        r"[^.!?\n]{0,60}\b(?:me to|adjust|adjustments|changes?|revis\w{1,8}|edits?|modif\w{1,12}|"
        r"expand|tweaks?|shorter|longer|the tone|anything else)\b"
        r"|\bwould you like me to\b|\bis there anything else (?:I can|you(?:'d| would) like)\b"
        r"|\bif you(?:'d| would)? (?:like|want|prefer), I can (?:also )?(?:write|expand|add|adjust|"
        r"create|provide|rewrite|shorten|tailor|draft|turn)\b"
        r"|\bfeel free to (?:ask|let me know|reach out) if you(?: need|'d like| would like| want) "
        r"(?:any |me |further |more )?(?:to|changes|revisions|adjustments|edits|modifications)\b"
        r"|\bfeel free to ask if you have any (?:other|further|more) (?:requests|questions)\b"
        r"|\bif you need (?:any )?(?:further|more|other) (?:adjustments|changes|revisions|edits)\b",
        "Remove what the model says to its user after the text.",
    ),
    Leftover(
        "chat_closing",
        r"\blet me know if you have any (?:other |further |more )?questions\b",
        "Check who is speaking here: a model often ends like this.",
        severity=Severity.WARN,
    ),
)

_PROMPTS = (
    Leftover(
        "prompt_echo",
        r"^(?:meta description|meta title|seo title|title tag|"
        r"(?:primary |secondary |focus |target |main )?keywords?|focus keyphrase|url slug|slug|"
        r"target audience|search intent|target word count|H[1-6]) ?: ?\S"
        r"|^(?:write|create|generate) (?:a|an|the|me) [^.!?\n]{0,60}(?:article|blog post)\b"
        r"[^.!?\n]{0,120}\b(?:\d{2,5} words|keywords?|tone)\b",
        "Remove the part of the prompt that is repeated here.",
        paragraphs_only=True,
    ),
    Leftover(
        "prompt_echo",
        r"[\[(](?:approx(?:imate|\.)? |total )?word count ?[:=] ?[~≈]?\d[^\[\]()\n]{0,30}[\])]"
        r"|^(?:approx(?:imate|\.)? |total )?word count ?[:=] ?[~≈]?\d[\d,. ]{0,12}(?:words)?$"
        r"|[\[(]\d[\d,.]{0,8} words[\])]$",
        "Remove the word count.",
        paragraphs_only=True,
    ),
    Leftover(
        "injected_instruction",
        r"\b(?:ignore|disregard|forget|override) (?:all |any |everything )?(?:of )?"
        r"(?:the |your |my |these |those )?"
        r"(?:previous|prior|above|earlier|preceding|foregoing|existing) "
        r"(?:\w{1,20} ){0,2}(?:instructions?|prompts?|rules|directions|guidelines|directives)\b"
        r"|\b(?:ignore|disregard|forget) (?:all|your|the|any) (?:system )?(?:instructions|prompts?|"
        r"guidelines)\b"
        r"|\b(?:reveal|print|repeat|output|show me) (?:me )?your "
        r"(?:system|hidden|initial|original) (?:prompt|instructions)\b"
        r"|\byou are now (?:in )?(?:DAN\b|developer mode|jailbroken|unrestricted)"
        r"|\b(?:new|updated) (?:system )?instructions? (?:for|to) "
        r"(?:the )?(?:AI|assistant|model|LLM)\b"
        r"|\b(?:AI|LLM) (?:assistants?|models?|agents?) reading this\b",
        "A source's instruction to the model got into the text: take it out and check the source.",
    ),
)

LEFTOVERS: tuple[Leftover, ...] = _PLACEHOLDERS + _TALK + _PROMPTS
