"""What requests and answers look like; the OpenAPI page is made of this."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from unbounded.errors import SettingError
from unbounded.memory import Document, Guess
from unbounded.memory.integrity import timestamp
from unbounded.memory.opening import LONGEST, PATTERN
from unbounded.serve.limits import STATUSES

TEXT = r"^[^\x00]*$"
LABEL = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"

Name = Annotated[str, Field(pattern=PATTERN, max_length=LONGEST, examples=["notes"])]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
Token = Annotated[int, Field(ge=0, lt=2**31, strict=True)]


def _in_calendar(time: datetime) -> datetime:
    """The time, if it is one everywhere: a zone can move it before the first year or behind the
    last, and then no day has it."""
    try:
        return datetime.fromtimestamp(timestamp(time), UTC)
    except SettingError:
        raise ValueError("a time outside of the years 1 to 9999, as UTC has them") from None


Time = Annotated[AwareDatetime, AfterValidator(_in_calendar)]


class Body(BaseModel):
    """A request: a member that nobody knows is refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few(cls, given: Any) -> Any:
        # Each would be a complaint of its own.
        if isinstance(given, dict) and len(given) > 64:
            raise ValueError("more members than anybody knows")
        return given


class ErrorDetail(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None
    code: str


class Error(BaseModel):
    """Every answer that is an error has this body."""

    error: ErrorDetail


EVENT = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
"""One server-sent event, its data a JSON object or `[DONE]`."""


def refusals(
    *more: int, named: bool = False, body: bool = False, streams: bool = False
) -> dict[int | str, dict[str, Any]]:
    """The answers of a route beside the good one."""
    more += (408, 413, 415, 422) if body else ()
    more += (404, 422) if named else ()
    found: dict[int | str, dict[str, Any]] = {
        status: {"model": Error, "description": STATUSES[status][1]}
        for status in sorted({400, 401, 403, 405, 429, 500, 503, *more})
    }
    if streams:
        found[200] = {
            "description": "the answer; with `stream`, events of a JSON object each",
            "content": {"text/event-stream": {"schema": EVENT}},
        }
    return found


class NewMemory(Body):
    """A memory to be made."""

    name: Name
    max_entries: Annotated[int, Field(ge=1024, le=10**9)] | None = Field(
        None, description="Entries that it may have at most; none is no limit."
    )
    policy: Literal["age", "surprise"] = Field("age", description="What goes first when full.")


class Listed(BaseModel):
    """A memory in the list; how much it holds is known of those that are open."""

    name: str
    entries: int | None


class Memories(BaseModel):
    """The memories that a key may see."""

    memories: list[Listed]


class Stats(BaseModel):
    """What a memory holds."""

    name: str
    entries: int
    words: int
    oov: int = Field(description="Words that the network never knew.")
    documents: int
    forgotten: int
    bytes: int
    words_by_day: dict[str, int]


class Documents(BaseModel):
    """In the order of their first words, so many at most; the answer to `before` = `first` has
    those that came before."""

    documents: list[Document]
    first: int = Field(description="How many came before these.")


class Deleted(BaseModel):
    """A memory that is no more."""

    deleted: str


class ReadRequest(Body):
    """A text to be read: a sentence a line. It is on disk before the answer."""

    text: Annotated[str, Field(examples=["The zorble ate the grass."])]
    document: Annotated[
        str, Field(pattern=LABEL, min_length=1, max_length=200, examples=["diary"])
    ] = "text"
    again: bool = Field(
        False,
        description="Read it even if a document of that name was read before. Otherwise what is "
        "there already is passed over, and if the text has changed, the old one is forgotten; "
        "a text without a document's name is always read.",
    )
    time: Time | None = Field(None, description="When it was written; none is now.")
    stream: bool = Field(False, description="Tell how far it is, as server-sent events.")
    per_word: bool = Field(False, description="Give the surprise of every word, in nats.")


class ReadAnswer(BaseModel):
    """What was read; durable."""

    words: int
    new_words: int
    entries: int
    perplexity: float | None
    static_perplexity: float | None
    weights: dict[str, float]
    nats: list[float] | None = None
    static_nats: list[float] | None = None


class ScoreRequest(Body):
    """A text to be scored, which teaches nothing."""

    text: Annotated[str, Field(pattern=TEXT, examples=["The zorble ate the grass."])]
    shares: bool = Field(False, description="Give each expert's share in each probability.")


class ScoredWord(BaseModel):
    """A word, where it stands (in characters), and how likely it was."""

    word: str
    start: int
    end: int
    prob: float
    static: float
    shares: list[float] | None = None


class ScoreAnswer(BaseModel):
    """Each word of a text, to the network alone and with the memory."""

    experts: list[str]
    words: list[ScoredWord]
    entries: int
    perplexity: float | None
    static_perplexity: float | None


class PredictRequest(Body):
    """What comes next, after a text that goes on."""

    text: Annotated[str, Field(pattern=TEXT, examples=["The zorble"])] = ""
    n: Annotated[int, Field(ge=1, le=100)] = 10
    prefix: Annotated[
        str,
        Field(
            pattern=r"^[^\s\x00]*$",
            max_length=1000,
            examples=["s"],
            description="Letters that the word begins with.",
        ),
    ] = ""
    sources: Annotated[int, Field(ge=0, le=20)] = 3
    word: (
        Annotated[str, Field(pattern=r"^[^\s\x00]+$", max_length=1000, examples=["ate"])] | None
    ) = Field(None, description="A word to explain beside the likeliest.")


class PredictAnswer(BaseModel):
    """The likeliest next words."""

    words: list[Guess]
    asked: Guess | None
    oov: float = Field(description="A word that was never seen.")
    rest: float = Field(description="All other words together; with `words` and `oov`, one.")
    weights: dict[str, float]
    entries: int


class CompleteRequest(Body):
    """Go on writing after a text."""

    text: Annotated[str, Field(pattern=TEXT, examples=["The zorble"])] = ""
    words: Annotated[int, Field(ge=1, le=256)] = 20
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Seed | None = None
    stream: bool = False


class CompleteAnswer(BaseModel):
    """What was written."""

    text: str
    words: int


class ForgetRequest(Body):
    """What to forget: exactly one of these. `matching` is text to be found in a line."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"document": "diary"}],
            "oneOf": [
                {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
                for name in ("document", "before", "matching", "last")
            ],
        },
    )

    document: Annotated[str, Field(pattern=LABEL, min_length=1, max_length=200)] | None = None
    before: Time | None = None
    matching: Annotated[str, Field(pattern=TEXT, min_length=1, max_length=1000)] | None = None
    last: Annotated[int, Field(ge=1, le=10**12)] | None = None
    compact: bool = Field(True, description="Take it out of the files too.")


class Forgotten(BaseModel):
    """How many words are no more, and how many are left."""

    forgotten: int
    entries: int
