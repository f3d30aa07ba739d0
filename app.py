"""The page's entry, on a Space and anywhere else: python app.py [--help]."""

from __future__ import annotations

import argparse
import os
import sys

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before Gradio is imported
# How long a thread waits awake for more work, before torch is imported. A token's products are
# short: sleeping between them costs more than they do, waiting too long starves a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

try:
    from spaces import GPU  # a Space with a lent accelerator; must come before torch uses CUDA
except ImportError:
    GPU = None

import torch

import transformer
from transformer.ui import launch


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--host", help="address to listen on; default: this machine only")
    parser.add_argument("--port", type=int, help="default: the first free one from 7860 up")
    parser.add_argument("--device", help="cpu, cuda, ...; default: cuda if there is one")
    parser.add_argument(
        "--checkpoints", nargs="+", metavar="NAME_OR_FOLDER", default=transformer.bundled_names(),
        help="models to offer, the first one chosen at the start",
    )  # fmt: skip
    return parser.parse_args()


def main() -> None:
    """Load the models and serve the page until interrupted."""
    asked = arguments()
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        models = [transformer.load(name, device) for name in asked.checkpoints]
        print(f"models {', '.join(asked.checkpoints)} on {device}", flush=True)
        launch(models, host=asked.host, port=asked.port, gpu=GPU)
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
