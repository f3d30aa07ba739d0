"""python -m transformer.checkpoint convert SOURCE FOLDER: another project's model in our format."""

from __future__ import annotations

import sys

from transformer import checkpoint
from transformer.command_line import Parser
from transformer.messages import say


def main() -> None:
    """Read a model and write it as a checkpoint folder of ours."""
    parser = Parser(description=__doc__)
    convert = parser.add_subparsers(dest="command", required=True).add_parser("convert")
    convert.add_argument("source", help="a folder, or hub:OWNER/NAME[@REVISION]")
    convert.add_argument("folder", help="where to write; what is there is replaced")
    convert.add_argument(
        "--max-len", type=int, default=checkpoint.MAX_LEN,
        help="tokens that are read at once, where the network would read more",
    )  # fmt: skip
    asked = parser.parse_args()
    try:
        found = checkpoint.read(asked.source, asked.max_len)
        stored = str(found.metadata.get("stored_in", "float32"))
        dtype = stored if stored in checkpoint.DTYPES else "float32"
        checkpoint.save(
            asked.folder,
            found.network,
            found.config,
            found.tokenizer,
            dtype=dtype,
            card=found.card or None,
            metadata=found.metadata,
            sample=found.sample,
            heads=found.heads,
        )
    except (ValueError, OSError) as error:
        sys.exit(str(error))
    print(say("{folder}: {name}, in {dtype}", folder=asked.folder, name=found.name, dtype=dtype))


if __name__ == "__main__":
    main()
