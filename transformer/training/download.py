"""Sentence pairs from a public archive, cleaned and split so that no sentence leaks.

A recipe names the archive, [data] download = "https://www.manythings.org/anki/fra-eng.zip": one
text file of English, tab, translation (and in newer ones a tab and the authors), from Tatoeba.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import re
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from transformer.checks import shortened
from transformer.plain_text import plain
from transformer.training.data import HUB, Pair
from transformer.training.recipe import Recipe

DOWNLOAD = "download"
FOLDER = Path("runs/data")
AGENT = "Mozilla/5.0 (compatible; transformer-attention-visualizer)"  # Python's own is turned away
TIMEOUT_S = 60.0
LARGEST_BYTES = 100_000_000  # of the archive
LARGEST_TEXT_BYTES = 500_000_000  # unpacked
N_VALID, N_TEST = 2000, 1000
SMALL_GROUP = 4  # pairs
MOST_WORDS = (25, 30)  # English, translation
LONGEST_RATIO, RATIO_FROM = 2.5, 6  # words of one side over the other's, where one has so many

_PUNCTUATION = frozenset(" !\"$%&'()+,-./:;?«»°€")


def pairs_folder(source: str, recipe: Recipe) -> Path:
    """The folder that `--data` means for a translation recipe: one that is there, or a download.

    Raises ValueError for a Hub name, or for a download where the recipe names none or it fails.
    """
    if source.startswith(HUB):
        raise ValueError(
            "a translation recipe needs sentence pairs, and the Hub is read for documents alone; "
            f"got --data {source}; allowed: a folder with train.tsv and valid.tsv, or {DOWNLOAD}"
        )
    if source != DOWNLOAD:
        return Path(source)
    if not recipe.data.get(DOWNLOAD):
        raise ValueError(
            f"--data {DOWNLOAD} needs a recipe with a [data] {DOWNLOAD} address; {recipe.name} "
            "names none; allowed: a folder"
        )
    return download_pairs(recipe.data[DOWNLOAD])


def download_pairs(url: str, folder: Path | None = None) -> Path:
    """Fetch a zip of sentence pairs and write train.tsv, valid.tsv and test.tsv beside it.

    folder: the cache, by default one named after the archive in FOLDER. What is there already is
    not fetched or made again. The archive stays: it names the authors. Returns the folder.
    Raises ValueError in one sentence when there is no network, no zip, or too little text.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"a download must be an http or https address; got {shortened(url)}")
    name = Path(urlsplit(url).path).stem or DOWNLOAD
    folder = FOLDER / name if folder is None else folder
    if all((folder / f"{split}.tsv").is_file() for split in ("train", "valid", "test")):
        return folder
    archive = folder / f"{name}.zip"
    if not archive.is_file():
        _replace(archive, _fetch(url))
    language, lines = _read(archive)
    try:
        pairs = clean_pairs(lines, french=language == "fra")
        splits = split_pairs(pairs, n_valid=N_VALID, n_test=N_TEST)
    except ValueError as error:
        raise ValueError(f"{archive}: {error}") from error
    for split in ("test", "valid", "train"):  # train last: where it is, all are
        text = "".join(f"{source}\t{target}\n" for source, target in splits[split])
        _replace(folder / f"{split}.tsv", text.encode())
    counts = ", ".join(f"{len(part):,} {split}" for split, part in splits.items())
    print(f"{url}: {len(pairs):,} different pairs; wrote {counts} to {folder}")
    return folder


def clean_pairs(lines: Iterable[str], *, french: bool = False) -> list[Pair]:
    """Lines "English<TAB>translation[<TAB>authors]" as plain, different pairs, in their order.

    Dropped: repeated pairs, characters other than letters, digits and common punctuation, long
    sentences, and lengths that do not fit together. Raises ValueError naming the first bad line.
    """
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        columns = line.split("\t")
        if len(columns) not in (2, 3):
            raise ValueError(
                f"line {number} must hold English, a tab, a translation and at most one column "
                f"more; got {shortened(line)}"
            )
        pair = plain(columns[0]), plain(columns[1], french=french)
        if _usable(pair):
            pairs[pair] = None
    return list(pairs)


def split_pairs(pairs: list[Pair], *, n_valid: int, n_test: int) -> dict[str, list[Pair]]:
    """Pairs for train, valid and test, of which no two share a sentence.

    Pairs that share either side, in lower case without punctuation, form a group, and a group goes
    to one split. Valid and test take one pair each, of at least three English words, from groups
    of at most SMALL_GROUP pairs, in the order of a hash: the same for every order of the pairs. The
    other pairs of those groups are left out. Raises ValueError for too few groups.
    """
    chosen: dict[Pair, list[Pair]] = {}
    for group in _groups(pairs):
        long = [pair for pair in group if len(pair[0].split()) >= 3]
        if long and len(group) <= SMALL_GROUP:
            chosen[min(long, key=_hash)] = group
    held_out = sorted(chosen, key=_hash)[: n_valid + n_test]
    away = {pair for one in held_out for pair in chosen[one]}
    train = [pair for pair in pairs if pair not in away]
    if len(held_out) < n_valid + n_test or not train:
        raise ValueError(
            f"{n_valid + n_test:,} sentences to validate and test with, and some to train, are "
            f"needed; {len(pairs):,} usable pairs give {len(chosen):,}"
        )
    return {"train": train, "valid": held_out[:n_valid], "test": held_out[n_valid:]}


def _usable(pair: Pair) -> bool:
    counts = [len(side.split()) for side in pair]
    if min(counts) == 0 or any(n > most for n, most in zip(counts, MOST_WORDS, strict=True)):
        return False
    if max(counts) >= RATIO_FROM and max(counts) > LONGEST_RATIO * min(counts):
        return False
    return all(_key(side) for side in pair) and all(
        character.isalnum() or character in _PUNCTUATION for side in pair for character in side
    )


def _key(text: str) -> str:
    """A key that is equal for sentences that differ only in case and punctuation."""
    return " ".join(re.findall(r"\w+", text.lower()))


def _hash(pair: Pair) -> bytes:
    return hashlib.blake2b("\t".join(pair).encode(), digest_size=16).digest()


def _groups(pairs: list[Pair]) -> list[list[Pair]]:
    """Pairs connected by equal sides, however long the chain (union-find over sentences)."""
    parents: dict[tuple[int, str], tuple[int, str]] = {}

    def root(node: tuple[int, str]) -> tuple[int, str]:
        while parents.setdefault(node, node) != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for source, target in pairs:
        parents[root((0, _key(source)))] = root((1, _key(target)))
    groups: dict[tuple[int, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[root((0, _key(pair[0])))].append(pair)
    return list(groups.values())


def _fetch(url: str) -> bytes:
    """The body of a zip. Raises ValueError for anything else."""
    try:
        request = Request(url, headers={"User-Agent": AGENT})
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            body: bytes = answer.read(LARGEST_BYTES + 1)
        if len(body) > LARGEST_BYTES:
            raise ValueError(f"{url} is larger than the allowed {LARGEST_BYTES:,} bytes")
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, HTTPError):
            error.close()
        reason = error.reason if type(error) is URLError else error
        raise ValueError(
            f"cannot download {url}: {reason}; with no network, give --data a folder with "
            "train.tsv and valid.tsv"
        ) from error
    if not zipfile.is_zipfile(io.BytesIO(body)):  # an HTML page, or a truncated archive
        raise ValueError(f"{url} must answer with a zip archive; got {shortened(body)}")
    return body


def _read(archive: Path) -> tuple[str, list[str]]:
    """(the language as the text file is named, such as "fra"; its lines)."""
    try:
        with zipfile.ZipFile(archive) as file:
            texts = [
                one for one in file.infolist()
                if one.filename.endswith(".txt") and not one.filename.startswith("_")
            ]  # fmt: skip
            if len(texts) != 1:
                raise ValueError(f"it must hold one text file; got {file.namelist()[:5]}")
            if texts[0].file_size > LARGEST_TEXT_BYTES:
                raise ValueError(f"its text exceeds the allowed {LARGEST_TEXT_BYTES:,} bytes")
            text = file.read(texts[0]).decode("utf-8-sig")
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"{archive} is no usable archive of sentences ({error}); delete it to fetch it again"
        ) from error
    return Path(texts[0].filename).stem, text.split("\n")


def _replace(path: Path, content: bytes) -> None:
    """Write a file that is either there in full or not; several processes may do so at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)
