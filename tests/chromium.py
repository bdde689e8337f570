"""A real browser for pages, where there is one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
NO_CHROMIUM = "no Chromium here; Debian has it: apt-get install chromium"


@contextmanager
def browsing() -> Iterator[Browser]:
    """One that runs."""
    with sync_playwright() as playwright:
        # Chromium refuses to put itself into a sandbox when it runs as root.
        quiet = ["--disable-gpu", "--disable-dev-shm-usage"]
        launched = playwright.chromium.launch(
            executable_path=CHROMIUM, args=quiet + (["--no-sandbox"] if os.getuid() == 0 else [])
        )
        yield launched
        launched.close()
