"""Text to ids: reader, tokenizer, and a vocabulary that grows."""

from unbounded.corpus.reader import Line as Line
from unbounded.corpus.reader import Reader as Reader
from unbounded.corpus.reader import Text as Text
from unbounded.corpus.reader import as_lines as as_lines
from unbounded.corpus.reader import lines_of as lines_of
from unbounded.corpus.reader import placed_lines as placed_lines
from unbounded.corpus.sentences import Block as Block
from unbounded.corpus.sentences import Sentence as Sentence
from unbounded.corpus.sentences import Splitter as Splitter
from unbounded.corpus.sentences import TrainingText as TrainingText
from unbounded.corpus.sentences import blocks as blocks
from unbounded.corpus.sentences import read_sentences as read_sentences
from unbounded.corpus.sentences import training_text as training_text
from unbounded.corpus.sentences import words_between as words_between
from unbounded.corpus.sentences import write_lines as write_lines
from unbounded.corpus.tokenizer import Pretokenized as Pretokenized
from unbounded.corpus.tokenizer import Tokenizer as Tokenizer
from unbounded.corpus.tokenizer import WordSplitter as WordSplitter
from unbounded.corpus.tokenizer import detokenize as detokenize
from unbounded.corpus.tokenizer import tokenizer_named as tokenizer_named
from unbounded.corpus.tokenizer import tokenizer_of as tokenizer_of
from unbounded.corpus.vocabulary import SENTENCE_END as SENTENCE_END
from unbounded.corpus.vocabulary import Vocabulary as Vocabulary
