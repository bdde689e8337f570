"""Distributions → one probability: whom to believe, fixed, learned as it reads, or by context."""

from unbounded.mixture.mixture import Fixed as Fixed
from unbounded.mixture.mixture import Gated as Gated
from unbounded.mixture.mixture import Mixture as Mixture
from unbounded.mixture.mixture import Online as Online
from unbounded.mixture.mixture import Scored as Scored
from unbounded.mixture.mixture import fit_weights as fit_weights
