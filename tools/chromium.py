"""Where the tests' browser is; run as a script, makes sure that there is one, and installs what
single tests would be skipped without, where it can.

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
# A program that a test runs, and Debian's packages that bring it.
OTHERS = {
    "nginx": ["nginx-light"],
    "qemu-aarch64": ["qemu-user", "gcc-aarch64-linux-gnu"],
}
NAMES = (*PACKAGES, "chromium-browser", "google-chrome", "google-chrome-stable")

# Only this machine has an address: no request reaches the browser maker's servers, nor
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
# Each window has two pages of its own for the list under its address, which take half a second of
# processor time. The last list of a command line counts, so that Playwright's is said again.
WITHOUT = [
    "WebUIOmniboxPopup", "WebUIOmniboxAimPopup",
    "AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades",
    "LensOverlay", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints",
    "PaintHolding", "PreconnectToSearch", "ThirdPartyStoragePartitioning",
]  # fmt: skip
# A heap that is large (MB) from the start is collected less often while a page opens, which takes a
# tenth less processor time. What measures the page goes without.
TEST_ARGUMENTS = [
    *ARGUMENTS,
    "--js-flags=--initial-heap-size=512",
    f"--disable-features={','.join(WITHOUT)}",
]
# Adds up, as browsers measure it (CLS), how far what is seen moves by itself while a page opens.
LAYOUT_SHIFT = """window.layoutShift = 0;
new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries())
        if (!hadRecentInput) window.layoutShift += value;
}).observe({ type: "layout-shift", buffered: true });"""


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


def _apt(*packages: str) -> bool:
    """Install Debian packages without starting their services; whether that worked."""
    if not shutil.which("apt-get"):
        return False
    prefix = [] if os.name == "posix" and os.geteuid() == 0 else ["sudo", "-n"]
    command = [*prefix, "env", "RUNLEVEL=1", "apt-get", "install", "-y", "-qq", *packages]
    if subprocess.run(command, check=False).returncode == 0:
        return True
    subprocess.run([*prefix, "apt-get", "update", "-qq"], check=False)
    return subprocess.run(command, check=False).returncode == 0


def _install() -> bool:
    if any(_apt(package) for package in PACKAGES):
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
    for program, packages in OTHERS.items():
        if not shutil.which(program) and not _apt(*packages):
            print(f"no {program}: the test that runs it is skipped", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
