"""The model in the shapes of others: evaluation harness, `generate` of transformers."""
