"""The sentence of a corpus at which each neuron of a network's feed-forwards fires most."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer.analysis.corpus.parts import one_thread
from transformer.analysis.corpus.reading import read
from transformer.analysis.corpus.summary import write_whole
from transformer.inference.model import Model
from transformer.model.hooks import Point
from transformer.model.transformer import EncoderDecoder

PART = 64  # sentences that are read at once
CHARACTERS = range(16, 55)  # of a sentence: a line of a card
ENDS = re.compile(r"(?<=[.!?])[\"'”»]*\s+")
FEWEST_WORDS = 3
NEVER = -1
FIELDS = ("sentence", "start", "length", "activation")  # of a neuron, in the file
LEAST = 0.05  # of an activation: a neuron that stays below never fires


def sentences(texts: Iterable[str]) -> Iterator[str]:
    """The sentences of texts that fit a line, each once."""
    seen = set()
    for text in texts:
        for sentence in ENDS.split(" ".join(text.split())):
            whole = sentence.count('"') % 2 == 0
            fits = len(sentence) in CHARACTERS and sentence.count(" ") >= FEWEST_WORDS - 1
            if whole and fits and sentence not in seen:
                seen.add(sentence)
                yield sentence


@dataclass(slots=True, eq=False)
class Peaks:
    """Where each neuron fires most, over the sentences read so far. L layers, F neurons.

    activation: (L, F), the one farthest from 0. sentence: (L, F), its number, NEVER = none. token:
    (L, F), its place in the ids. n_read: sentences. mark: of the model and of those sentences.
    """

    activation: NDArray[np.float32]
    sentence: NDArray[np.int32]
    token: NDArray[np.int32]
    n_read: int = 0
    mark: str = ""

    @classmethod
    def none(cls, model: Model) -> Peaks:
        """Before any sentence."""
        shape = len(model.network.last_stack.layers), model.config.d_ff
        never = np.full(shape, NEVER, dtype=np.int32)
        return cls(np.zeros(shape, dtype=np.float32), never, never.copy(), 0, model.name)

    def add(self, sentence: str, activation: Any, token: Any) -> None:
        """Take the next sentence's peaks, (L, F) each."""
        more = np.abs(activation) > np.abs(self.activation)
        self.activation[more] = activation[more]
        self.sentence[more] = self.n_read
        self.token[more] = token[more]
        self.n_read += 1
        self.mark = marked(self.mark, sentence)

    def save(self, path: Path) -> None:
        """Write an NPZ file atomically."""
        file = BytesIO()
        np.savez_compressed(file, **{each.name: getattr(self, each.name) for each in fields(self)})
        write_whole(path, file.getvalue())

    @classmethod
    def load(cls, path: Path) -> Peaks:
        """Load the NPZ file of `save`."""
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        n_read, mark = int(arrays.pop("n_read")), str(arrays.pop("mark"))
        return cls(**arrays, n_read=n_read, mark=mark)


def marked(mark: str, sentence: str) -> str:
    """A mark that says which sentences were read, in their order."""
    return hashlib.sha256(f"{mark} {sentence}".encode()).hexdigest()[:16]


@dataclass(slots=True, eq=False)
class _MostActive:
    """A hook that keeps each neuron's activation farthest from 0 in each text, and at which token.

    counts: (B, T) bool; other tokens count as 0. layers: two tensors (B, F) each.
    """

    fused: ClassVar[bool] = True
    stack: str
    counts: Tensor
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __call__(self, point: Point, value: Any, **context: Any) -> Any:
        """See Hook."""
        if point.name == "mlp_post" and point.stack == self.stack:
            rows = value.float() * self.counts[..., None]
            at = rows.abs().argmax(dim=1)
            self.layers[point.layer] = rows.gather(1, at[:, None])[:, 0], at
        return value


def ids_of(model: Model, sentence: str) -> tuple[list[int], list[int]]:
    """What the network reads of a sentence: its ids, and before them an encoder's source. A
    translator writes its own translation. Raises ValueError for what it cannot read whole."""
    if model.config.family == "encoder-decoder":
        run = read(model, sentence)
        return list(run.source_ids), list(run.ids[: model.config.output_max_len])
    ids = model.tokenizer.encode(sentence, special=True)
    if len(ids) > model.config.max_len:
        raise ValueError("the sentence is longer than the network reads")
    return [], ids


@torch.no_grad()
def peaks_of(model: Model, some: Sequence[str]) -> tuple[Any, Any]:
    """Each neuron's activation farthest from 0 and its token in some sentences, (B, L, F) each; 0
    in a sentence that the network cannot read."""
    network, tokenizer = model.network, model.tokenizer
    read = {row: both for row, text in enumerate(some) if (both := _readable(model, text))}
    shape = len(some), len(network.last_stack.layers), model.config.d_ff
    activation, token = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.int32)
    if not read:
        return activation, token
    sources, targets = zip(*read.values(), strict=True)
    ids, is_there = _padded(targets, model)
    counts = is_there.clone()
    for row, target in enumerate(targets):
        for place, neuron in enumerate(target):
            counts[row, place] = not tokenizer.is_special(neuron)
    hook = _MostActive(network.last_stack.name, counts)
    if isinstance(network, EncoderDecoder):
        source, is_source = _padded(sources, model)
        network(source, ids, src_is_text=is_source, tgt_is_text=is_there, hooks=[hook])
    else:
        network(ids, is_text=is_there, hooks=[hook])
    for layer, (value, at) in hook.layers.items():
        activation[[*read], layer] = value.cpu().numpy()
        token[[*read], layer] = at.cpu().numpy()
    return activation, token


def _readable(model: Model, sentence: str) -> tuple[list[int], list[int]] | None:
    try:
        return ids_of(model, sentence)
    except ValueError:
        return None


def _padded(rows: Sequence[Sequence[int]], model: Model) -> tuple[Tensor, Tensor]:
    """(B, T) ids, filled up on the right, and (B, T) bool, where they are those of the rows."""
    longest = max(map(len, rows))
    filled = [[*row, *[row[-1]] * (longest - len(row))] for row in rows]
    is_there = [[place < len(row) for place in range(longest)] for row in rows]
    device = model.device
    return torch.tensor(filled, device=device), torch.tensor(is_there, device=device)


def over_sentences(
    model: Model,
    texts: Callable[[], Iterable[str]],
    folder: Path,
    *,
    told: Callable[[int], None] = lambda done: None,
) -> Peaks:
    """Read every sentence of the texts; an interrupted reading goes on where it was saved.

    told(n): n more sentences are done.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "neurons.npz"
    peaks = _saved(path, model, sentences(texts()))
    told(peaks.n_read)
    rest = islice(sentences(texts()), peaks.n_read, None)
    with one_thread():
        while some := tuple(islice(rest, PART)):
            found = zip(some, *peaks_of(model, some), strict=True)
            for sentence, activation, token in found:
                peaks.add(sentence, activation, token)
            told(len(some))
            peaks.save(path)
    return peaks


def _saved(path: Path, model: Model, known: Iterator[str]) -> Peaks:
    """The peaks of an earlier, interrupted reading of the same sentences by the same model."""
    nothing = Peaks.none(model)
    if not path.is_file():
        return nothing
    peaks, mark = Peaks.load(path), nothing.mark
    for _, sentence in zip(range(peaks.n_read), known, strict=False):
        mark = marked(mark, sentence)
    fits = peaks.activation.shape == nothing.activation.shape
    return peaks if fits and mark == peaks.mark else nothing


def recorded(model: Model, peaks: Peaks, texts: Iterable[str]) -> dict[str, Any]:
    """What neurons.json says.

    sentences: [[text]], or [[source, translation]]. neurons: by "stack.layer", a list each with a
    number for every neuron: sentence, NEVER for a neuron that is never active; start and length,
    the place of the token in the sentence's last text by characters; activation.
    """
    is_active = np.abs(peaks.activation) >= LEAST
    wanted = {int(number) for number in peaks.sentence[is_active]}
    sentences_at = {at: text for at, text in enumerate(sentences(texts)) if at in wanted}
    numbers = {at: number for number, at in enumerate(sentences_at)}
    with one_thread():
        read_ids = {at: ids_of(model, text)[1] for at, text in sentences_at.items()}
    whole = {at: _text(model, ids) for at, ids in read_ids.items()}

    def neuron(layer: int, index: int) -> tuple[float, ...]:
        if not is_active[layer, index]:
            return NEVER, 0, 0, 0
        at, token = int(peaks.sentence[layer, index]), int(peaks.token[layer, index])
        start, end = (len(_text(model, read_ids[at][:to])) for to in (token, token + 1))
        start += len(whole[at][start:end]) - len(whole[at][start:end].lstrip())
        return numbers[at], start, end - start, round(float(peaks.activation[layer, index]), 1)

    translates = model.config.family == "encoder-decoder"
    n_layers, n_neurons = peaks.activation.shape
    layers = [[neuron(layer, at) for at in range(n_neurons)] for layer in range(n_layers)]
    return {
        "model": model.name,
        "n_sentences": peaks.n_read,
        "sentences": [
            [text, whole[at]] if translates else [text] for at, text in sentences_at.items()
        ],
        "neurons": {
            f"{model.network.last_stack.name}.{layer}": dict(
                zip(FIELDS, map(list, zip(*neurons, strict=True)), strict=True)
            )
            for layer, neurons in enumerate(layers)
        },
    }


def _text(model: Model, ids: list[int]) -> str:
    """Ids as text, without a space at its beginning and without half characters."""
    return model.tokenizer.to_bytes(ids).decode("utf-8", errors="ignore").lstrip(" ")
