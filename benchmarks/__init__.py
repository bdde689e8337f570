"""How fast it reads and finds, beside alternatives in the same run, on real states of real text."""
