"""Write the page as files that need no server: a folder for any web server, or one HTML file.

python -m transformer.static build/static
python -m transformer.static --one-file build/page.html
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from transformer.checkpoint import MAX_LEN, bundled_names
from transformer.command_line import Parser
from transformer.serve import load_all
from transformer.server.page.static_page import Page


def arguments() -> argparse.Namespace:
    """The command-line options."""
    parser = Parser(
        description="Write the page as files that need no server.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("out", type=Path, help="the folder, or the file")
    parser.add_argument(
        "--one-file", action="store_true", help="one HTML file, which opens from a disk, too"
    )
    parser.add_argument(
        "--checkpoints", nargs="+", metavar="NAME_FOLDER_OR_HUB",
        help="models to offer, as of app.py; by default the bundled ones, in one file the first",
    )  # fmt: skip
    parser.add_argument(
        "--max-len", type=int, default=MAX_LEN, metavar="TOKENS",
        help="read at once by another project's network, where it would read more",
    )  # fmt: skip
    options = parser.parse_args()
    options.checkpoints = options.checkpoints or bundled_names()[: 1 if options.one_file else None]
    return options


def main() -> None:
    """Write what the command line asks for."""
    options = arguments()
    try:
        page = Page(load_all(options.checkpoints, "cpu", max_len=options.max_len))
        size = (page.write_file if options.one_file else page.write_folder)(options.out)
    except (ValueError, OSError) as error:
        sys.exit(f"python -m transformer.static: {error}")
    print(f"{options.out}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
