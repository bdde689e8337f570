"""Requests and answers as the official client has them; the OpenAPI page is made of this too."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from unbounded.serve.schemas import TEXT, Name, Seed, Token

WRITTEN = 16
"""Words that are written where nobody says how many."""

# The first mistake in a list is enough: a hundred thousand of them take seconds to be told.
Prompts = Annotated[
    list[Annotated[str, Field(pattern=TEXT)]], Field(min_length=1, max_length=64, fail_fast=True)
]
TokenPrompt = Annotated[list[Token], Field(min_length=1, max_length=100_000, fail_fast=True)]
TokenPrompts = Annotated[list[TokenPrompt], Field(min_length=1, max_length=64, fail_fast=True)]


Stop = (
    Annotated[str, Field(min_length=1, max_length=200)]
    | Annotated[list[Annotated[str, Field(min_length=1, max_length=200)]], Field(max_length=16)]
    | None
)


def _only_text(value: Any) -> None:
    if value and value != {"type": "text"}:
        _unsupported(value)


def _unsupported(value: Any) -> None:
    if value:
        raise PydanticCustomError("unsupported", "not supported here; leave it out")


Unsupported = Annotated[
    None,
    BeforeValidator(_unsupported),
    Field(description="Not supported: anything but its default is refused."),
]


class Request(BaseModel):
    """What both kinds of request have; a memory is a model."""

    model: Name
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = 1.0
    n: Annotated[int, Field(ge=1, le=8)] | None = 1
    stop: Stop = None
    seed: Seed | None = None
    stream: bool | None = False
    stream_options: dict[str, Any] | None = None
    user: str | None = None
    presence_penalty: Unsupported = None
    frequency_penalty: Unsupported = None
    logit_bias: Unsupported = None

    @property
    def tells_usage(self) -> bool:
        """Whether the last chunk is to say how many tokens there were."""
        return bool((self.stream_options or {}).get("include_usage"))


class CompletionRequest(Request):
    """As the official client sends it; a memory is a model."""

    prompt: (
        Annotated[str, Field(pattern=TEXT, examples=["The zorble"])]
        | Prompts
        | TokenPrompt
        | TokenPrompts
    ) = ""
    max_tokens: Annotated[int, Field(ge=0, le=256)] | None = WRITTEN
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    echo: bool | None = False
    best_of: Annotated[int, Field(ge=1, le=8)] | None = Field(
        None, description="So many are written, and the `n` likeliest a word are answered."
    )
    suffix: Unsupported = None

    @model_validator(mode="after")
    def _check_best_of(self) -> "CompletionRequest":
        if self.best_of is not None and (self.best_of < (self.n or 1) or self.stream):
            raise PydanticCustomError(
                "best_of", "best_of must be at least n, and cannot be streamed; leave it out"
            )
        return self

    @property
    def prompts(self) -> list[Any]:
        """Each prompt, as it was sent."""
        given: Any = self.prompt
        return [given] if isinstance(given, str) or isinstance(given[0], int) else given

    @property
    def words(self) -> int:
        """How many to write at most."""
        return WRITTEN if self.max_tokens is None else self.max_tokens


class LogProbs(BaseModel):
    """Of each token: a word as it stands in the text, with the space before it."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]] | None
    text_offset: list[int]


class Choice(BaseModel):
    """One completion."""

    text: str
    index: int
    logprobs: LogProbs | None
    finish_reason: str | None


class Usage(BaseModel):
    """Words are the tokens."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Completion(BaseModel):
    """As the official client reads it."""

    id: str
    object: str = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


class Model(BaseModel):
    """A memory, as a model."""

    id: str
    object: str = "model"
    created: int
    owned_by: str = "unbounded"


class Models(BaseModel):
    """All that a key may see."""

    object: str = "list"
    data: list[Model]


class TextPart(BaseModel):
    """Text, as one part of a message."""

    type: Literal["text"]
    text: Annotated[str, Field(pattern=TEXT)]


class Message(BaseModel):
    """Who says what."""

    role: Annotated[str, Field(pattern="^[a-z]+$", max_length=20, examples=["user"])]
    content: (
        Annotated[str, Field(pattern=TEXT, examples=["What did the zorble eat?"])]
        | Annotated[list[TextPart], Field(max_length=64, fail_fast=True)]
    )

    @property
    def text(self) -> str:
        """All that it says."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class ChatRequest(Request):
    """A conversation, as the official client sends it; a memory is a model."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=256, fail_fast=True)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=256)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=256)] | None = Field(None, description="Older name.")
    logprobs: bool | None = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: Unsupported = None
    functions: Unsupported = None
    response_format: Annotated[None, BeforeValidator(_only_text)] = Field(
        None, description='Not supported, but for {"type": "text"}.'
    )


class ChatReply(BaseModel):
    """What is said in answer."""

    role: str = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    """One answer."""

    index: int
    message: ChatReply
    logprobs: dict[str, Any] | None
    finish_reason: str


class ChatCompletion(BaseModel):
    """As the official client reads it."""

    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
