"""The service: one model, many memories, over HTTP; and its page."""
