"""A conversation as the words of a prompt, by the chat template that a model's tokenizer has."""

import re
import secrets
from collections.abc import Mapping, Sequence

from unbounded.corpus import SENTENCE_END, Splitter
from unbounded.errors import CorpusError, ModelError
from unbounded.lm.subwords import PieceTokenizer

NONE = (
    "this model has no chat template, which a conversation needs; ask for a completion of a text "
    "(/v1/completions), or take a model of transformers that was trained to chat"
)


def chat_words(splitter: Splitter, messages: Sequence[Mapping[str, str]]) -> list[str]:
    """The words after which the reply comes; each message has a `role` and a `content`.

    The template is rendered by transformers, in its sandbox. What a message says is text: the name
    of a special piece in it, such as "<|im_end|>", ends nothing.
    """
    if not isinstance(splitter, PieceTokenizer) or not has_chat(splitter):
        raise ModelError(NONE)
    # Nobody can write what stands for a message: the template sees that in its place.
    stands = f"⟦{secrets.token_hex(8)}:{{}}⟧"
    shown = [{**one, "content": stands.format(i)} for i, one in enumerate(messages)]
    try:
        text = splitter.tokenizer.apply_chat_template(
            shown, tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # Whatever a template does, or refuses.
        raise CorpusError(
            "the model's chat template does not take these messages; give roles system, user and "
            "assistant by turns, the last of them user"
        ) from error
    special = sorted(_special(splitter), key=len, reverse=True)
    cut = "|".join(map(re.escape, special)) or "$^"
    words: list[str] = []
    for number, part in enumerate(re.split(stands.format("([0-9]+)"), text)):
        if number % 2:
            words += _lines(splitter, messages[int(part)]["content"])
            continue
        for place, piece in enumerate(re.split(f"({cut})", part)):
            words += [_named(splitter, piece)] if place % 2 else _lines(splitter, piece)
    return words


def has_chat(splitter: Splitter) -> bool:
    """Whether it has a chat template."""
    return bool(getattr(getattr(splitter, "tokenizer", None), "chat_template", None))


def chat_ends(splitter: Splitter) -> tuple[str, ...]:
    """What ends a reply: any special piece, as it is written."""
    return tuple(_special(splitter)) if isinstance(splitter, PieceTokenizer) else ()


def _special(splitter: PieceTokenizer) -> list[str]:
    return list(splitter.tokenizer.all_special_tokens)


def _named(splitter: PieceTokenizer, piece: str) -> str:
    number = splitter.tokenizer.convert_tokens_to_ids(piece)
    return splitter.vocabulary.decode([number])[0]


def _lines(splitter: PieceTokenizer, text: str) -> list[str]:
    """The pieces of a text, each line feed a sentence end."""
    first, *others = map(splitter.words, text.split("\n"))
    return [*first, *(word for line in others for word in (SENTENCE_END, *line))]
