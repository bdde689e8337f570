"""States and neighbors → distributions: each expert is one opinion about the next word."""

from unbounded.experts.cache import Cache as Cache
from unbounded.experts.counts import Uniform as Uniform
from unbounded.experts.counts import Unigram as Unigram
from unbounded.experts.distribution import Distribution as Distribution
from unbounded.experts.expert import Expert as Expert
from unbounded.experts.expert import stepwise as stepwise
from unbounded.experts.kernels import Kernel as Kernel
from unbounded.experts.networks import Adapted as Adapted
from unbounded.experts.networks import Dynamic as Dynamic
from unbounded.experts.networks import DynamicHead as DynamicHead
from unbounded.experts.networks import Static as Static
from unbounded.experts.ngram import NGram as NGram
from unbounded.experts.offline import Offline as Offline
from unbounded.experts.spelling import Spelling as Spelling
