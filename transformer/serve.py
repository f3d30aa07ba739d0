"""The page from a command line: transformer-page, python -m transformer.serve, or app.py."""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

# Gradio's import would fail with a proxy of SOCKS; `serve` lets models be fetched through it again.
os.environ["no_proxy"] = f"{os.environ.get('no_proxy', os.environ.get('NO_PROXY', ''))},*"
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # before Gradio is imported
if "GRADIO_TEMP_DIR" not in os.environ:  # else Gradio shares one with everybody on the machine
    for left in Path(tempfile.gettempdir()).glob("transformer-page-*"):  # by one that was killed
        pid = left.name.split("-")[2]
        if pid.isdigit() and Path("/proc/self").exists() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    os.environ["GRADIO_TEMP_DIR"] = tempfile.mkdtemp(prefix=f"transformer-page-{os.getpid()}-")
    atexit.register(shutil.rmtree, os.environ["GRADIO_TEMP_DIR"], ignore_errors=True)

import torch

from transformer.checkpoint import MAX_LEN, bundled_names
from transformer.command_line import Parser
from transformer.inference.engines.compiled import AUTO, ENGINES
from transformer.inference.model import Model, load
from transformer.lessons import add_lessons
from transformer.server import launch
from transformer.server.http.http_server import listen
from transformer.server.http.limits import AT_ONCE, MAX_TRAININGS
from transformer.server.kept.service import check_distinct, tell_refused, why_refused
from transformer.server.page.pages import policy_for
from transformer.server.programs.api import check_tools
from transformer.views.registry import add_views

# How long a thread waits awake for more work. A token's products are short: sleeping between them
# costs more than they do, waiting too long starves a busy machine.
SPINCOUNT = "20000"


def arguments() -> argparse.Namespace:
    """The command-line options."""
    parser = Parser(
        needs_output=False,
        description="Serve the page until interrupted.",
        epilog="Behind a proxy, the variable FORWARDED_ALLOW_IPS names its addresses or networks, "
        "with commas between them: their X-Forwarded-For is believed, and nobody else's.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--host", default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        help="address to listen on: 0.0.0.0 or :: for all networks, ::1 for IPv6 on this machine",
    )  # fmt: skip
    parser.add_argument("--port", type=int, help="default: the first free one from 7860 up")
    parser.add_argument("--device", help="cpu, cuda, ...; default: cuda if there is one")
    parser.add_argument(
        "--checkpoints", nargs="+", metavar="NAME_FOLDER_OR_HUB", default=bundled_names(),
        help="models to offer, the first one chosen at the start: a bundled name, a folder of "
        "ours or another project's, or hub:OWNER/NAME[@REVISION]",
    )  # fmt: skip
    parser.add_argument(
        "--max-len", type=int, default=MAX_LEN, metavar="TOKENS",
        help="read at once by another project's network, where it would read more",
    )  # fmt: skip
    parser.add_argument(
        "--engine", choices=ENGINES, default=AUTO,
        help="what generates one text: the step compiled here by the C compiler, or the network "
        "itself; auto: the first that works",
    )  # fmt: skip
    parser.add_argument(
        "--views", nargs="+", metavar="FOLDER", default=[],
        help="folders with views of your own, see transformer/views/declaration.py",
    )  # fmt: skip
    parser.add_argument(
        "--debug", action="store_true",
        help="show the traceback of a view that fails in place of its figure",
    )  # fmt: skip
    parser.add_argument(
        "--lessons", nargs="+", metavar="FOLDER", default=[],
        help="folders with lessons of your own, see transformer/lessons",
    )  # fmt: skip
    parser.add_argument(
        "--mcp", action="store_true",
        help="serve the API's endpoints as tools over the Model Context Protocol too",
    )  # fmt: skip
    parser.add_argument(
        "--trainings", type=int, default=MAX_TRAININGS, metavar="NUMBER", choices=range(9),
        help="small networks that visitors may train at the same time, on a core each; 0: none",
    )  # fmt: skip
    parser.add_argument(
        "--embed-on", nargs="+", metavar="ORIGIN", default=os.environ.get("EMBED_ON", "").split(),
        help="other pages that may show this one inside them, as https://courses.example; a Space "
        "is told by its variable EMBED_ON, with spaces between them",
    )  # fmt: skip
    parser.add_argument(
        "--trusted-hosts", nargs="+", metavar="NAME",
        default=os.environ.get("TRUSTED_HOSTS", "").split(),
        help="names under which a proxy passes requests on to a server that listens on this "
        "machine alone, as viz.example; '*': any; the variable TRUSTED_HOSTS says the same",
    )  # fmt: skip
    return parser.parse_args()


def load_all(
    names: Sequence[str], device: str, engine: str = AUTO, max_len: int = MAX_LEN
) -> list[Model]:
    """The models that can be loaded; the others are reported on stderr.

    Raises ValueError if none can, or if two have the same name.
    """
    models, origins, refused = [], [], []
    for name in names:
        try:
            model = load(name, device, engine, max_len)
        except Exception as error:  # one bad folder is no reason to serve none
            refused.append(why_refused(name, error))
            continue
        models.append(model)
        origins.append((model.name, name))
        check_distinct(origins)
    if not models:
        reasons = "\n".join(refused) or "no checkpoint to offer; allowed: --checkpoints NAME"
        raise ValueError(reasons)
    tell_refused(refused)
    return models


def share_cores() -> None:
    """As many threads for one request as cores are left when AT_ONCE run, unless told otherwise.

    More would make OpenMP put its threads to sleep at every product: measured on two cores, forty
    tokens took 150 ms with two threads for each request, and 84 ms with one.
    """
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() // AT_ONCE))


def main() -> None:
    """`serve`, and a clean exit whatever is running then.

    Python's own exit would stop the network's threads while they compute, and abort.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    # A shell has it ignored by what it starts in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = 0
    try:
        serve()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def serve() -> None:
    """Load the models and serve the page until interrupted."""
    options = arguments()
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        bound = listen(options.host, options.port)  # before anything is loaded
        if options.mcp:
            check_tools()
        policy_for(options.embed_on)  # told before anything is loaded
        share_cores()
        add_views(options.views)
        add_lessons(options.lessons)
        os.environ["no_proxy"] = os.environ["no_proxy"].removesuffix(",*")
        models = load_all(options.checkpoints, device, options.engine, options.max_len)
        launch(
            models, bound, mcp=options.mcp, trainings=options.trainings, debug=options.debug,
            embed_on=options.embed_on, trusted_hosts=options.trusted_hosts,
        )  # fmt: skip
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"{error}")


def command() -> None:
    """`main`, the program started once more: OpenMP reads its setting when torch is imported."""
    if sys.platform == "linux" and "GOMP_SPINCOUNT" not in os.environ:
        os.environ["GOMP_SPINCOUNT"] = SPINCOUNT
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    main()


if __name__ == "__main__":
    command()
