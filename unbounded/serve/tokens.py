"""`/tokenize`, `/detokenize` and `/tokenizer_info`, as evaluation harnesses ask for them."""

from typing import Any

from fastapi import APIRouter

from unbounded.corpus import SENTENCE_END
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder
from unbounded.serve.documented import refusals
from unbounded.serve.events import answer
from unbounded.serve.places import place
from unbounded.serve.refusals import Refused
from unbounded.serve.state import Service

router = APIRouter(tags=["tokens"])

END = "\x03"
"""How a client writes a sentence end by name: the character for the end of a text, which no text
has. Its name among words, `</s>`, is four words of a text like any other."""


@router.get("/tokenizer_info", response_model=schemas.TokenizerInfo, responses=refusals())
async def tokenizer_info(service: Asked, key: Holder) -> Any:
    """What tokens there are: the network's words, and bytes to spell others if there are any."""
    return {
        "tokenizer_class": "pieces" if service.model.lm.closed else "words",
        "eos_token": END,
        "vocab_size": service.spelling.size,
        "model_max_length": service.limits.explained,
    }


@router.post(
    "/tokenize", response_model=schemas.TokenizeAnswer, responses=refusals(413, 415, body=True)
)
async def tokenize(asked: schemas.TokenizeRequest, service: Asked, key: Holder) -> Any:
    """A text as tokens; a line feed is the end of a sentence."""
    _check(service, asked.prompt)

    def work() -> list[int]:
        if asked.prompt == END:
            return service.spelling.tokens([SENTENCE_END])
        placed = place(asked.prompt, service.model.tokenizer, ended=False)
        return service.spelling.tokens(placed.words)

    tokens = await service.workers.run(work)
    found = {"tokens": tokens, "count": len(tokens), "max_model_len": service.limits.explained}
    return await answer(service.workers, found)


@router.post(
    "/detokenize", response_model=schemas.DetokenizeAnswer, responses=refusals(413, 415, body=True)
)
async def to_text(asked: schemas.DetokenizeRequest, service: Asked, key: Holder) -> Any:
    """Tokens as text that is pleasant to read."""
    _check(service, asked.tokens)

    def work() -> str:
        return service.model.tokenizer.text(service.spelling.read(asked.tokens).words)

    return {"prompt": await service.workers.run(work)}


def _check(service: Service, given: str | list[int]) -> None:
    if len(given) > service.limits.ask:
        raise Refused(413, "too_long", f"more than {service.limits.ask:,} characters or tokens")
