"""`/tokenize`, `/detokenize` and `/tokenizer_info`, as evaluation harnesses ask for them."""

from typing import Any

from fastapi import APIRouter

from unbounded.corpus import SENTENCE_END
from unbounded.serve import schemas
from unbounded.serve.access import Asked, Holder
from unbounded.serve.documented import refusals
from unbounded.serve.places import place
from unbounded.serve.refusals import Refused

router = APIRouter(tags=["tokens"])


@router.get("/tokenizer_info", response_model=schemas.TokenizerInfo, responses=refusals())
async def tokenizer_info(service: Asked, key: Holder) -> Any:
    """What tokens there are: the network's words, and bytes to spell others if there are any."""
    return {
        "tokenizer_class": "pieces" if service.model.lm.closed else "words",
        "eos_token": SENTENCE_END,
        "vocab_size": service.spelling.size,
        "model_max_length": service.limits.explained,
    }


@router.post(
    "/tokenize", response_model=schemas.TokenizeAnswer, responses=refusals(413, 415, body=True)
)
async def tokenize(asked: schemas.TokenizeRequest, service: Asked, key: Holder) -> Any:
    """A text as tokens; a line feed is the end of a sentence."""
    if len(asked.prompt) > service.limits.ask:
        raise Refused(413, "too_long", f"more than {service.limits.ask:,} characters")
    if asked.prompt == SENTENCE_END:
        words = [SENTENCE_END]
    else:
        words = place(asked.prompt, service.model.tokenizer, ended=False).words
    tokens = service.spelling.tokens(words)
    return {
        "tokens": tokens,
        "count": len(tokens),
        "max_model_len": service.limits.explained,
    }


@router.post(
    "/detokenize", response_model=schemas.DetokenizeAnswer, responses=refusals(413, 415, body=True)
)
async def to_text(asked: schemas.DetokenizeRequest, service: Asked, key: Holder) -> Any:
    """Tokens as text that is pleasant to read."""
    return {"prompt": service.model.tokenizer.text(service.spelling.read(asked.tokens).words)}
