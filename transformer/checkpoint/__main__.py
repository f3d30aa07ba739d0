"""Convert a model to this project's format, or export it for transformers.

python -m transformer.checkpoint convert SOURCE FOLDER
python -m transformer.checkpoint export SOURCE FOLDER
python -m transformer.checkpoint families   # the model_types of transformers that are read
"""

from __future__ import annotations

import argparse
import sys

from transformer import checkpoint
from transformer.checkpoint.adapters import families as adapters
from transformer.command_line import Parser


def main() -> None:
    """Read a model and write it as a folder."""
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("convert", "export"):
        command = commands.add_parser(name)
        command.add_argument(
            "source", help="a folder, hub:OWNER/NAME[@REVISION], or a bundled model's name"
        )
        command.add_argument("folder", help="where to write; replaces a model there")
        command.add_argument(
            "--max-len", type=int, default=checkpoint.MAX_LEN,
            help="the most tokens that the network reads at once",
        )  # fmt: skip
    commands.add_parser("families", help="list the model_types that are read")
    options = parser.parse_args()
    if options.command == "families":
        print("\n".join(adapters.listed()))
        return
    try:
        model = checkpoint.read(options.source, options.max_len)
        if options.command == "export":
            parts = (model.network, model.config, model.tokenizer)
            written = f"as {checkpoint.export(options.folder, *parts)}"
        else:
            written = f"in {_convert(options.folder, model)}"
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    print(f"{options.folder}: {model.name}, {written}")


def _convert(folder: str, model: checkpoint.Checkpoint) -> str:
    """Write a model in this project's format; returns the type of the weights."""
    stored = str(model.metadata.get("stored_in", "float32"))
    dtype = stored if stored in checkpoint.DTYPES else "float32"
    checkpoint.save(
        folder,
        model.network,
        model.config,
        model.tokenizer,
        dtype=dtype,
        card=model.card or None,
        metadata=model.metadata,
        sample=model.sample,
        heads=model.heads,
        neurons=model.neurons,
    )
    return dtype


if __name__ == "__main__":
    main()
