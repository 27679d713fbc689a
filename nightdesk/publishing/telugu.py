"""Telugu in Latin letters, for slugs: readable, not reversible.

ISO 15919 without its diacritics, with the spellings that Telugu names have in English (`ch`, `sh`,
`ru`). General transliteration tables drop the vowel every consonant carries ("krtrim" instead of
"krutrima").
"""

from __future__ import annotations

import unicodedata

# fmt: off
_CONSONANTS = {
    "క": "k", "ఖ": "kh", "గ": "g", "ఘ": "gh", "ఙ": "ng",
    "చ": "ch", "ఛ": "chh", "జ": "j", "ఝ": "jh", "ఞ": "ny",
    "ట": "t", "ఠ": "th", "డ": "d", "ఢ": "dh", "ణ": "n",
    "త": "t", "థ": "th", "ద": "d", "ధ": "dh", "న": "n",
    "ప": "p", "ఫ": "ph", "బ": "b", "భ": "bh", "మ": "m",
    "య": "y", "ర": "r", "ఱ": "r", "ల": "l", "ళ": "l",
    "ఴ": "l", "వ": "v", "శ": "sh", "ష": "sh", "స": "s",
    "హ": "h", "ౘ": "ts", "ౙ": "dz", "ౚ": "r",
}
_VOWELS = {
    "అ": "a", "ఆ": "a", "ఇ": "i", "ఈ": "i", "ఉ": "u", "ఊ": "u",
    "ఋ": "ru", "ౠ": "ru", "ఌ": "lu", "ౡ": "lu", "ఎ": "e", "ఏ": "e",
    "ఐ": "ai", "ఒ": "o", "ఓ": "o", "ఔ": "au",
}
# fmt: on
# By code point: a combining sign alone is unreadable in an editor.
_SIGNS = {
    "\u0c3e": "a",
    "\u0c3f": "i",
    "\u0c40": "i",
    "\u0c41": "u",
    "\u0c42": "u",
    "\u0c43": "ru",
    "\u0c44": "ru",
    "\u0c46": "e",
    "\u0c47": "e",
    "\u0c48": "ai",
    "\u0c4a": "o",
    "\u0c4b": "o",
    "\u0c4c": "au",
    "\u0c4d": "",  # virama: no vowel at all
    "\u0c62": "lu",
    "\u0c63": "lu",
}
_CANDRABINDU, _ANUSVARA, _VISARGA = "\u0c01", "\u0c02", "\u0c03"
_LABIALS = frozenset("పఫబభమ")
_JOINERS = {ord("\u200c"): None, ord("\u200d"): None}


def romanise(text: str) -> str:
    """`text` with its Telugu letters in Latin ones; everything else stays as it is."""
    letters = unicodedata.normalize("NFC", text).translate(_JOINERS)
    result: list[str] = []
    for index, letter in enumerate(letters):
        following = letters[index + 1 : index + 2]
        if letter in _CONSONANTS:
            inherent = "" if following in _SIGNS else "a"
            result.append(_CONSONANTS[letter] + inherent)
        elif letter == _ANUSVARA:
            # The nasal of the consonant that follows; a final one is spoken as m.
            result.append("n" if following in _CONSONANTS and following not in _LABIALS else "m")
        elif letter == _CANDRABINDU:
            result.append("n")
        elif letter == _VISARGA:
            result.append("h")
        else:
            result.append(_VOWELS.get(letter, _SIGNS.get(letter, letter)))
    return "".join(result)
