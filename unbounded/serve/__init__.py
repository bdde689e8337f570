"""The service: one model, many memories, over HTTP; and its page.

What a request goes through, each in the module of its name but for the pool, which is in `session`:

    guard ─▶ routes ─▶ registry ─▶ session ─▶ pool ─▶ Memory
    host,    what is   which       one writer  a thread
    key,     asked     memory      at a time   does it
    size
"""
