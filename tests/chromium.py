"""Where the tests' browser is; run as a script, makes sure that there is one.

Tried in this order: $CHROMIUM, one on the PATH, Playwright's own; then installed: Debian's packages
(as root, or with sudo that asks no password), else Playwright's download. The headless shell is the
same browser without its window: pages take a fifth less processor time in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = ("chromium-headless-shell", "chromium")  # Debian's
NAMES = (*PACKAGES, "chromium-browser", "google-chrome", "google-chrome-stable")

# No machine but this one has an address: nothing is asked of the browser maker's servers, nor of
# any other. --no-sandbox because CI often runs as root.
ARGUMENTS = [
    "--no-sandbox",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find(*, whole: bool = False) -> str | None:
    """Path of a Chromium, or None. whole: rather one with its window, as a visitor has it."""
    given = os.environ.get("CHROMIUM")
    if given:
        return given
    for name in (*NAMES[1:], *NAMES[:1]) if whole else NAMES:
        if path := shutil.which(name):
            return path
    return _playwrights_own()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _install() -> bool:
    prefix = [] if os.name == "posix" and os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get"):
        subprocess.run([*prefix, "apt-get", "update", "-qq"], check=False)
        for package in PACKAGES:
            install = [*prefix, "apt-get", "install", "-y", "-qq", package]
            if subprocess.run(install, check=False).returncode == 0:
                return True
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    """Exit status 0 if there is a browser in the end."""
    path = find() or (_install() and find())
    if not path:
        print("no Chromium found or installed; set CHROMIUM to the path of one", file=sys.stderr)
        return 1
    print(f"browser for the tests: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
