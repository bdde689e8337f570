"""Words back to text that is pleasant to read on a page."""

from collections.abc import Iterable

from unbounded.corpus.vocabulary import SENTENCE_END

# English abbreviations whose period belongs to them, as the Europarl and Moses tools know them.
_INITIALS = "A B C D E F G H I J K L M N O P Q R S T U V W X Y Z"
_TITLES = """
    Adj Adm Adv Asst Bart Brig Bros Capt Cmdr Col Comdr Con Cpl DR Dr Drs Ens Gen Gov Hon Hr Insp
    Lt MM MR MRS MS Maj Messrs Mlle Mme Mr Mrs Ms Msgr Pfc Ph Prof Pvt Rep Reps Res Rev Rt Sen Sens
    Sfc Sgt Sr St Supt Surg
"""
_OTHERS = "Bldg Corp Hosp Nos Nr Op Ord Rs e.g i.e rev v vs"
_MONTHS = "Jan Feb Mar Apr Jun Jul Aug Sep Oct Nov Dec"

ALWAYS = frozenset(f"{_INITIALS} {_TITLES} {_OTHERS} {_MONTHS}".split())
"""A period after one of these never ends a sentence."""

BEFORE_NUMBERS = frozenset(["Art", "No", "pp"])
"""A period after one of these does not end a sentence if a number follows."""

_TO_THE_LEFT = frozenset([*".,;:!?%)]}»”…°/_@", "..", "...", "...."])
_TO_THE_RIGHT = frozenset("([{«“$£€#/_@")
_QUOTES = frozenset("\"'")
# Sorted, so that of two spellings the one with more small letters wins: Mr and not MR, v and not V.
_ABBREVIATIONS = {f"{stem.lower()}.": f"{stem}." for stem in sorted(ALWAYS | BEFORE_NUMBERS)}


def detokenize(words: Iterable[str]) -> str:
    """Write words as text: punctuation attached, quotes paired, each sentence on its own line.

    A period that was parted from its word is never followed by a small letter in the text, nor is
    "Mr." ever "mr.": these capitals are put back, so that the text splits into the same words.

    >>> detokenize(["mr.", "smith", "doesn", "'t", "pay", "(", "yet", ")", ".", "why", "?", "</s>"])
    "Mr. smith doesn't pay (yet). Why?\\n"
    """
    text: list[str] = []
    open_quotes: set[str] = set()
    glue, previous = True, ""
    for word in words:
        if word == SENTENCE_END:
            text.append("\n")
            open_quotes.clear()
            glue, previous = True, ""
            continue
        # One that opens nothing: the dogs' bowl.
        owns = word == "'" and previous.endswith("s") and word not in open_quotes
        closes = word in open_quotes or owns
        attached = (
            closes
            or (word in _TO_THE_LEFT and not word == previous == ".")
            or (len(word) > 1 and word[0] == "'" and previous[-1:].isalnum())
        )
        if text and not glue and not attached:
            text.append(" ")
        text.append(_with_capital(word, previous))
        glue = word in _TO_THE_RIGHT or (word in _QUOTES and not closes)
        if word in _QUOTES and not owns:
            open_quotes ^= {word}
        previous = word
    return "".join(text)


def _with_capital(word: str, previous: str) -> str:
    if word in _ABBREVIATIONS:
        return _ABBREVIATIONS[word]
    return word[:1].upper() + word[1:] if previous in {".", "!", "?"} else word
