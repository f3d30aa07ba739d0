"""Training text: reading it, encoding it, and batches."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from transformer.checks import needs_package, shortened
from transformer.model.network import IGNORED
from transformer.tokenizer import END, Tokenizer

Pair = tuple[str, str]  # a sentence and its translation

HUB = "hub:"
TRAIN, VALID = "train.txt", "valid.txt"  # of a folder of documents
HUB_DOCUMENTS = 200_000
TRAIN_SHARE = 0.9  # of a single file
HUB_VALIDATION_DOCUMENTS = 400
INSTEAD = "a folder with train.txt and valid.txt"  # of the hub, where there is no network


def load_texts(source: str) -> tuple[list[str], list[str]]:
    """Documents to train on and to validate with: from a folder with train.txt and valid.txt, or
    streamed from "hub:OWNER/NAME".

    Or from one text file: its first 90 % to train, the rest to validate, cut between documents, or
    at a line's end where there is but one.
    Raises ValueError in one sentence when the source cannot be read.
    """
    if source.startswith(HUB):
        name = source.removeprefix(HUB)
        parts = {"train": HUB_DOCUMENTS, "validation": HUB_VALIDATION_DOCUMENTS}
        train, valid = (
            list(hub_texts(name, split, count=count, instead=INSTEAD))
            for split, count in parts.items()
        )
        return train, valid
    folder = Path(source)
    if not folder.is_file():
        return read_documents(folder / TRAIN), read_documents(folder / VALID)
    documents = read_documents(folder)
    if len(documents) > 1:
        n_train = max(1, int(TRAIN_SHARE * len(documents)))
        return documents[:n_train], documents[n_train:]
    (text,) = documents
    middle = text.find("\n", int(TRAIN_SHARE * len(text)))
    if middle < 0:
        raise ValueError(f"{folder} is too short to train and to validate with; needed: more lines")
    return [text[:middle]], [text[middle + 1 :]]


def check_folder(name: str, path: Path) -> None:
    """Raise ValueError unless path is, or can become, a writable folder."""
    there = next(parent for parent in (path, *path.absolute().parents) if os.path.lexists(parent))
    if not there.is_dir():
        raise ValueError(f"{name} must be a folder; {there} is none")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ValueError(f"{name} must be a folder that can be written to; {there} is not")


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 file, one at a time, without their ends and without a byte-order mark.

    Raises ValueError in one sentence when it cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                _tell_if_plain(line, f"{path}, line {number}")
                yield line.removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read the text {path}: {error}") from error


def _tell_if_plain(line: str, place: str) -> None:
    """Say on stderr, once per place, that an END within a line ends nothing."""
    if END in line and line.strip() != END:
        _tell_plain(place)


@cache
def _tell_plain(place: str) -> None:
    sentence = f"{place}: {END} within a line is read as ordinary text; needed: a line of its own"
    print(sentence, file=sys.stderr)


def documents_of(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Each document with the number of its first line. A line END ends one, whatever white space is
    around it; empty documents are left out."""
    document: list[str] = []
    first = 1
    for number, line in enumerate(chain(lines, [END]), start=1):
        if line.strip() != END:
            document.append(line)
            continue
        text = "\n".join(document)
        if text.strip():
            stripped = text.lstrip("\n")
            yield first + len(text) - len(stripped), stripped.rstrip("\n")
        document, first = [], number + 1


def read_documents(path: Path) -> list[str]:
    """Documents of a UTF-8 file in which a line "<|endoftext|>" ends each; none empty."""
    lines = list(lines_of(path))
    documents = [document for _, document in documents_of(lines)]
    if not documents:
        raise ValueError(f"{path} is empty; needed: text, each document ended by a line {END}")
    if all(line.count("\t") == 1 for line in lines):
        raise ValueError(
            f"{path} holds sentence pairs, a tab in every line; needed: documents, each ended by a "
            f"line {END}"
        )
    return documents


def check_known(tokenizer: Tokenizer, path: Path, texts: Iterable[tuple[int, str]]) -> None:
    """Raise ValueError that names the file and the line of a character without an id.

    texts: each with the number of its first line.
    """
    for first, text in texts:
        if missing := tokenizer.unknown(text):
            at = next(place for place, character in enumerate(text) if character in missing)
            try:
                tokenizer.encode(text[at])
            except ValueError as error:
                line = first + text.count("\n", 0, at)
                raise ValueError(f"{path}, line {line}: {error}") from error


def known_documents(tokenizer: Tokenizer, path: Path) -> list[str]:
    """`read_documents`. Raises ValueError for a character without an id."""
    documents = read_documents(path)
    check_known(tokenizer, path, documents_of(lines_of(path)))
    return documents


def known_pairs(tokenizer: Tokenizer, files: Sequence[Path]) -> list[Pair]:
    """`load_pairs`. Raises ValueError for a character without an id."""
    pairs = load_pairs(files)
    for path, side in zip([*files, *files], (0, 1), strict=False):
        check_known(tokenizer, path, ((n, pair[side]) for n, pair in enumerate(pairs, start=1)))
    return pairs


def texts_of(path: Path) -> Iterator[str]:
    """A file's texts, one at a time: the documents that lines END separate, or else its lines.

    Empty ones are left out. Raises ValueError for what is not UTF-8.
    """
    if any(line.strip() == END for line in lines_of(path)):
        yield from (text for _, text in documents_of(lines_of(path)))
    else:
        yield from (text for line in lines_of(path) if (text := line.strip()))


def pair_files(folder: Path, split: str, data: dict[str, str]) -> list[Path]:
    """The files that hold the sentence pairs of a split: SPLIT.tsv, or two parallel ones.

    data: the recipe's [data] table; with "source" and "target" (file endings such as "en", "fr")
    line n of SPLIT.en and of SPLIT.fr say the same thing, else SPLIT.tsv holds one pair a line.
    """
    endings = [data["source"], data["target"]] if "source" in data else ["tsv"]
    return [folder / f"{split}.{ending}" for ending in endings]


def load_pairs(files: Sequence[Path]) -> list[Pair]:
    """Sentence pairs of one file, a tab between the two sides, or of two parallel ones, whose lines
    n say the same thing. Raises ValueError if their lengths differ."""
    if len(files) == 1:
        return read_pairs(*files)
    sources, targets = map(_pair_lines, files)
    if len(sources) != len(targets):
        raise ValueError(
            f"{files[0]} and {files[1]} must have equally many lines; got {len(sources)} and "
            f"{len(targets)}"
        )
    return list(zip(sources, targets, strict=True))


def read_pairs(path: Path) -> list[Pair]:
    """Lines "source<TAB>target" of a UTF-8 file. Raises ValueError naming the first bad line."""
    pairs = []
    for number, line in enumerate(_pair_lines(path), start=1):
        parts = line.split("\t")
        if len(parts) != 2 or not all(part.strip() for part in parts):
            raise ValueError(
                f"{path}, line {number}: needed: a source, a tab, a target; got {shortened(line)}"
            )
        pairs.append((parts[0], parts[1]))
    return pairs


def _pair_lines(path: Path) -> list[str]:
    lines = list(lines_of(path))
    if not any(line.strip() for line in lines):
        raise ValueError(f"{path} is empty; needed: sentence pairs, one a line")
    return lines


def hub_texts(name: str, split: str, *, count: int | None = None, instead: str) -> Iterator[str]:
    """The documents of a dataset on the hub, one at a time, as they arrive.

    count: how many rows are asked for; None for all. Empty ones are passed over. instead: what
    --data may be without a network. Raises ValueError in one sentence when it cannot be read.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ValueError(needs_package(f"{HUB}{name}", "datasets")) from error
    try:
        stream = load_dataset(name, split=split, streaming=True)
        rows = stream if count is None else stream.take(count)
        for number, row in enumerate(rows, start=1):
            for line in row["text"].split("\n") if END in row["text"] else ():
                _tell_if_plain(line, f"{name}, document {number}")
            if row["text"].strip():
                yield row["text"]
    except Exception as error:  # anything that the network or the Hub raises
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"cannot stream {shortened(name)} ({split}) from the Hugging Face Hub: {reason}; "
            f"with no network, give --data {instead}"
        ) from error


def encode_documents(tokenizer: Tokenizer, documents: Sequence[str]) -> list[list[int]]:
    """Ids of each document as `Tokenizer.document` has them: each but the first is predicted."""
    return [tokenizer.document(ids) for ids in tokenizer.encode_batch(list(documents))]


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[Example]:
    """Each target, its end token included, to be predicted from its source."""
    sources = tokenizer.encode_batch([source for source, _ in pairs])
    targets = tokenizer.encode_targets([target for _, target in pairs])
    start, end = tokenizer.target_start, tokenizer.end_id
    return [
        Example([*start, *target, end], source=tokenizer.source(source))
        for source, target in zip(sources, targets, strict=True)
    ]


class Example(NamedTuple):
    """read: the ids that a network reads. wanted: for each place, the id that it is to predict
    there, IGNORED where it is asked for none; None: the next one, the last of `read` being only
    asked for. source: what the encoder of an encoder-decoder reads."""

    read: list[int]
    wanted: list[int] | None = None
    source: Sequence[int] = ()

    @property
    def whole(self) -> Example:
        """The batch with the wanted id of each position."""
        if self.wanted is not None:
            return self
        return Example(self.read[:-1], self.read[1:], self.source)

    @property
    def width(self) -> int:
        """Its columns in a batch."""
        return max(len(self.read) - (self.wanted is None), len(self.source))

    @property
    def n_wanted(self) -> int:
        """The number of predicted tokens."""
        targets = self.wanted
        return len(self.read) - 1 if targets is None else len(targets) - targets.count(IGNORED)


def windows_of(ids: list[int], max_len: int, rng: random.Random) -> list[list[int]]:
    """A document as rows of at most max_len predictions; a longer one is first cut at random."""
    if len(ids) <= max_len + 1:
        return [ids]
    stop = rng.randint(max_len // 2, max_len)
    windows = [ids[: stop + 1]]
    while stop < len(ids) - 1:
        windows.append(ids[stop : stop + max_len + 1])
        stop += max_len
    return windows


class Batches:
    """Endless batches, a pure function of (seed, epoch): resuming needs no state.

    Each epoch: take the epoch's examples, shuffle, sort by width within pools so that little is
    padded, shuffle the batches.

    rows: an epoch's examples, from a random generator. batch_tokens: rows times the widest of them,
    at most (a wider row is a batch by itself).
    """

    POOL = 50  # batches' worth of rows sorted together: enough to pad little, few enough to mix

    def __init__(
        self, rows: Callable[[random.Random], list[Example]], *, batch_tokens: int, seed: int
    ) -> None:
        self.rows, self.batch_tokens, self.seed = rows, batch_tokens, seed

    def epoch(self, number: int) -> list[list[Example]]:
        """All batches of an epoch."""
        rng = random.Random(f"{self.seed} {number}")
        rows = self.rows(rng)
        rng.shuffle(rows)
        mean_width = sum(row.width for row in rows) / max(1, len(rows))
        pool = max(1, int(self.POOL * self.batch_tokens / max(1.0, mean_width)))
        batches: list[list[Example]] = []
        for start in range(0, len(rows), pool):
            batches += by_width(rows[start : start + pool], self.batch_tokens)
        rng.shuffle(batches)
        return batches

    def starting_at(self, epoch: int, index: int) -> Iterator[tuple[int, int, list[Example]]]:
        """(epoch, index, batch) from a batch on, endlessly."""
        while True:
            batches = self.epoch(epoch)
            for place in range(index, len(batches)):
                yield epoch, place, batches[place]
            epoch, index = epoch + 1, 0


def by_width(rows: Iterable[Example], batch_tokens: int) -> list[list[Example]]:
    """Rows, narrowest first, in batches of at most batch_tokens with padding."""
    batches: list[list[Example]] = []
    for row in sorted(rows, key=lambda row: row.width):
        if not batches or (len(batches[-1]) + 1) * row.width > batch_tokens:
            batches.append([])
        batches[-1].append(row)
    return batches
