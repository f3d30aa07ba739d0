"""Typed text normalised like training text, split into sentences, and checked for unseen input.

A translator that learned plain English has never met ’ for ', a doubled space or a line break, and
translates them badly: what is typed is made plain first.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from transformer.checks import InvalidRequest
from transformer.messages import mark, say

# What a checkpoint's metadata says of its "source_text"
PLAIN_ENGLISH, ENGLISH_STORIES = "plain English", "English stories"
_PLAIN = str.maketrans(
    dict.fromkeys("‘’‚‛ʼ′", "'")
    | dict.fromkeys("“”„‟″", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    | {"…": "...", "\u00ad": None, "\u200b": None, "\ufeff": None}
)
# An end, closing quotes, white space, and what can begin a sentence; or a line break.
_BETWEEN = re.compile(r"""(?<=[.!?])(["')]*)\s+(?=["'(]*[^\W_a-z])|\s*\n\s*""")
_NO_END = re.compile(r"(?:^|[\s(\"'.])(?:Mr|Mrs|Ms|Dr|Mt|St|Prof|Jr|Sr|vs|[A-HJ-Z])\.$")

# The commonest words of English sentences, and of some other languages' that English lacks.
_ENGLISH_WORDS = """
a about all am an and are as at be been but by can come could did do does for from get go going good
had has have he her here him his how i if in is it just know like me mine more my no not now of on
one or our out she should so some than that the their them there they think this time to too up us
very want was we were what when where who why will with would you your
"""
_OTHER_WORDS = """
je de pas est vous que il à ne le la tu ce un nous en une les suis elle faire ça dans qui moi être
étais était êtes fait avec du mon et sont avez ils cette très peux lui cela votre été pourquoi où
mais ou aux des sur plus se
ich nicht ist sie das zu der dass ein wir habe mir sich mit auf mich wie eine und ihr haben kann
sind einen von für dem dich bin dir hast aus nach im wird sehr wenn mein bist er es
el los las una por para pero como está esto muy yo ella y del al lo con mi su qué más
che non di sono per ho hai ha sei questo questa della gli lei anche perché
het een niet ik jij zijn hij dat voor van naar maar ook wat dit wij
não um uma eu você ele ela isso muito meu minha são dos com
"""
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
_OTHERS = frozenset(_OTHER_WORDS.split()) - _ENGLISH
# For the browser, which says the same of a text (browser/doubts.js).
COMMON_WORDS = {"english": sorted(_ENGLISH), "others": sorted(_OTHERS)}
_WORD = re.compile(r"[^\W\d_]+")
_BRACKETED = re.compile(r"\[\w+\]")  # [MASK], which is no word in capitals

IN_CAPITALS = mark(
    "The text is in capitals, which this model did not learn: write it as in a book."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reader:
    """How a model cleans typed text. source_text: PLAIN_ENGLISH, which is made plain;
    ENGLISH_STORIES, which is read as it is; or None: unknown.

    A checkpoint's metadata has it as "source_text".
    """

    source_text: str | None = None

    def read_as(self, text: str) -> str:
        """The normalised text. Raises ValueError if it is empty."""
        if self.source_text != PLAIN_ENGLISH:
            return text
        if not plain(text):
            raise InvalidRequest("empty_text", "the text is empty: write something in it first")
        return plain(text)

    def sentences(self, text: str) -> list[str]:
        """The parts to translate separately, at least one."""
        parts = sentences(text) if self.source_text == PLAIN_ENGLISH else []
        return parts or [text]

    def warnings(self, text: str) -> tuple[str, ...]:
        """Warnings on parts of the text that this model never saw."""
        return warnings(text) if self.source_text else ()


def plain(text: str) -> str:
    """NFC with plain quotes, dashes and spaces."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_PLAIN).split())


def sentences(text: str) -> list[str]:
    """The normalised sentences of an English text; a line break ends one too."""
    parts, begun = [], 0
    for cut in _BETWEEN.finditer(text):
        if "\n" not in cut[0] and _NO_END.search(text[: cut.start()]):
            continue
        parts.append(text[begun : cut.end(1) if cut[1] else cut.start()])
        begun = cut.end()
    return [sentence for part in [*parts, text[begun:]] if (sentence := plain(part))]


def is_in_capitals(text: str) -> bool:
    """Whether nearly all letters of two words or more are capital ones."""
    words = _WORD.findall(_BRACKETED.sub(" ", text))
    letters = [letter for word in words for letter in word]
    long = [word for word in words if len(word) > 1]
    return len(long) > 1 and sum(map(str.isupper, letters)) > 0.8 * len(letters)


def warnings(text: str) -> tuple[str, ...]:
    """A sentence for each thing that a model of English never saw: capitals, other languages.

    Simple and sometimes wrong: of all words that are common in English or elsewhere, most are not
    English; or most letters, and signs such as emoji, are not Latin ones.
    """
    problems = [say(IN_CAPITALS)] if is_in_capitals(text) else []
    words = _WORD.findall(text)
    letters = [letter for word in words for letter in word]
    lower = [word.lower() for word in words]
    english = sum(word in _ENGLISH for word in lower)
    latin = sum("LATIN" in unicodedata.name(letter, "") for letter in letters)
    n_signs = len(letters) + sum(unicodedata.category(character) == "So" for character in text)
    if sum(word in _OTHERS for word in lower) > english or 2 * latin < n_signs:
        problems.append(
            say("This does not look like English, and this model learned English alone.")
        )
    return tuple(problems)
