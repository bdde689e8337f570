"""Neighbors → distributions → mixture: kernels, experts, mixtures, the online model."""

from unbounded.predict.adapted import Adapted as Adapted
from unbounded.predict.distribution import Distribution as Distribution
from unbounded.predict.dynamic import Dynamic as Dynamic
from unbounded.predict.experts import Cache as Cache
from unbounded.predict.experts import Expert as Expert
from unbounded.predict.experts import Static as Static
from unbounded.predict.experts import Uniform as Uniform
from unbounded.predict.experts import Unigram as Unigram
from unbounded.predict.experts import stepwise as stepwise
from unbounded.predict.gated import Gated as Gated
from unbounded.predict.kernels import Kernel as Kernel
from unbounded.predict.mixture import Fixed as Fixed
from unbounded.predict.mixture import Mixture as Mixture
from unbounded.predict.mixture import Online as Online
from unbounded.predict.mixture import Scored as Scored
from unbounded.predict.mixture import fit_weights as fit_weights
from unbounded.predict.ngram import NGram as NGram
from unbounded.predict.offline import Offline as Offline
from unbounded.predict.online import OnlineModel as OnlineModel
from unbounded.predict.online import Reading as Reading
from unbounded.predict.spelling import Spelling as Spelling
