"""The page's entry, on a Space and anywhere else: python app.py [--help]."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before Gradio is imported
# Nothing is reckoned over past requests, and who asked is not remembered.
os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "1"
os.environ["GRADIO_ANALYTICS_CACHE_FREQUENCY"] = str(2**62)
# How long a thread waits awake for more work, before torch is imported. A token's products are
# short: sleeping between them costs more than they do, waiting too long starves a busy machine.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

try:
    from spaces import GPU  # a Space with a lent accelerator; must come before torch uses CUDA
except ImportError:
    GPU = None

import torch

import transformer
from transformer.inference.engine import AUTO, ENGINES
from transformer.ui import launch
from transformer.ui.examples import example_of
from transformer.ui.limits import AT_ONCE
from transformer.ui.service import check_names
from transformer.ui.tools import check_tools


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
    parser.add_argument(
        "--engine", choices=ENGINES, default=AUTO,
        help="what generates one text: the step compiled here by the C compiler, PyTorch's "
        "operations on packed weights, or the network itself; auto: the first that works",
    )  # fmt: skip
    parser.add_argument(
        "--mcp", action="store_true",
        help="serve the API's endpoints as tools over the Model Context Protocol too",
    )  # fmt: skip
    return parser.parse_args()


def load_all(names: Sequence[str], device: str, engine: str = AUTO) -> list[transformer.Model]:
    """Those that can be used; each of the others is told on stderr.

    Raises ValueError if none can, or if two have the same name.
    """
    models, origins, refused = [], [], []
    for name in names:
        try:
            model = transformer.load(name, device, engine)
            example_of(model)  # a model that reads no text at all is refused
        except ValueError as error:
            refused.append(str(error))
            continue
        models.append(model)
        origins.append((model.name, name))
        check_names(origins)
    if not models:
        raise ValueError(
            "\n".join(refused) or "no checkpoint to offer; allowed: --checkpoints NAME"
        )
    for sentence in refused:
        print(f"not offered: {sentence}", file=sys.stderr, flush=True)
    return models


def share_cores() -> None:
    """As many threads for one request as cores are left when AT_ONCE run, unless told otherwise.

    More would make OpenMP put its threads to sleep at every product: measured on two cores, forty
    tokens took 150 ms with two threads for each request, and 84 ms with one.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // AT_ONCE))


def check_port(host: str | None, port: int | None) -> None:
    """Raise OSError if a port that was asked for is taken, before anything is loaded."""
    if port is None:
        return
    address = host or os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1")
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except (OSError, OverflowError) as error:
            raise OSError(
                f"cannot listen on {address} port {port}: {error}; "
                "allowed: a free port from 1 to 65535, or no --port for the first free one"
            ) from error


def main() -> None:
    """Load the models and serve the page until interrupted."""
    asked = arguments()
    device = asked.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        check_port(asked.host, asked.port)
        if asked.mcp:
            check_tools()
        share_cores()
        models = load_all(asked.checkpoints, device, asked.engine)
        print(f"models {', '.join(model.name for model in models)} on {device}", flush=True)
        launch(models, host=asked.host, port=asked.port, gpu=GPU, mcp=asked.mcp)
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
