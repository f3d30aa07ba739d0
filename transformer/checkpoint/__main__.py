"""python -m transformer.checkpoint convert SOURCE FOLDER: convert another project's model."""

from __future__ import annotations

import sys

from transformer import checkpoint
from transformer.command_line import Parser


def main() -> None:
    """Read a model and write it as a checkpoint folder."""
    parser = Parser(description=__doc__)
    convert = parser.add_subparsers(dest="command", required=True).add_parser("convert")
    convert.add_argument("source", help="a folder, or hub:OWNER/NAME[@REVISION]")
    convert.add_argument("folder", help="where to write; replaces a checkpoint there")
    convert.add_argument(
        "--max-len", type=int, default=checkpoint.MAX_LEN,
        help="the most tokens that the network reads at once",
    )  # fmt: skip
    options = parser.parse_args()
    try:
        model = checkpoint.read(options.source, options.max_len)
        stored = str(model.metadata.get("stored_in", "float32"))
        dtype = stored if stored in checkpoint.DTYPES else "float32"
        checkpoint.save(
            options.folder,
            model.network,
            model.config,
            model.tokenizer,
            dtype=dtype,
            card=model.card or None,
            metadata=model.metadata,
            sample=model.sample,
            heads=model.heads,
        )
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    print(f"{options.folder}: {model.name}, in {dtype}")


if __name__ == "__main__":
    main()
