"""Evaluate models: language models in bits per byte, which do not depend on the tokenizer,
translators by BLEU."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from transformer.checks import shortened
from transformer.inference.beam import beam_search
from transformer.inference.model import Model
from transformer.model.network import IGNORED
from transformer.model.transformer import EncoderDecoder
from transformer.training.data import Example, Pair, by_width, encode_documents, encode_pairs
from transformer.training.updates import predictions, summed_nats

BATCH_TOKENS = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """Total nats over a text. An end token that the model learned to predict counts in nats and
    tokens. right: the tokens that were the network's likeliest prediction. bytes: those of the
    tokens that were predicted."""

    nats: float
    tokens: int
    right: int
    bytes: int
    documents: int
    seconds: float

    @property
    def loss(self) -> float:
        """Nats per token."""
        return self.nats / self.tokens

    @property
    def perplexity(self) -> float:
        """exp(loss)."""
        return math.exp(self.loss)

    @property
    def bits_per_byte(self) -> float:
        """Total nats over the documents' UTF-8 bytes, in bits."""
        return self.nats / math.log(2) / self.bytes

    @property
    def top_1(self) -> float:
        """The share of tokens predicted correctly, 0 to 1."""
        return self.right / self.tokens

    def numbers(self) -> dict[str, float]:
        """A language model's scores, rounded, for JSON."""
        names = ["nats", "tokens", "bytes", "documents", "seconds"]
        names += ("loss", "perplexity", "bits_per_byte")
        return {name: round(getattr(self, name), 5) for name in names}


def score_documents(model: Model, documents: Sequence[str]) -> Score:
    """Each document alone, with the special tokens that the model reads around it, in sliding
    windows.

    A first token that nothing comes before has no prediction, and its bytes do not count. Raises
    ValueError for a model that is not decoder-only.
    """
    if model.config.family != "decoder":
        raise ValueError(
            f"bits per byte need a decoder-only model; {model.name} is {model.config.family}"
        )
    encoded = encode_documents(model.tokenizer, documents)
    rows = (
        Example(row[start:stop], [IGNORED] * (scored - start) + row[scored + 1 : stop + 1])
        for row in encoded
        for start, scored, stop in windows(len(row) - 1, model.config.max_len)
        if len(row) > 1
    )
    return scored(model, rows, documents, [row[:1] for row in encoded])


def score_pairs(model: Model, pairs: Sequence[Pair]) -> Score:
    """Each target given its source, end token included; bytes and nats are the targets'.

    Raises ValueError for a model that is not an encoder-decoder.
    """
    model.check_translator()
    read = [(model.reader.read_as(source), target) for source, target in pairs]
    rows = encode_pairs(model.tokenizer, read)
    for number, row in enumerate(rows, start=1):
        if row.width > model.config.max_len:
            raise ValueError(
                f"pair {number} is {row.width} tokens long; {model.name} reads at most "
                f"{model.config.max_len}"
            )
    return scored(model, rows, [target for _, target in pairs])


@torch.inference_mode()
def scored(
    model: Model,
    rows: Iterable[Example],
    texts: Sequence[str],
    free: Iterable[Sequence[int]] = (),
) -> Score:
    """The score of the rows' wanted tokens. texts: the text that they encode. free: its ids that
    are not predicted. Raises ValueError if no token is wanted."""
    started, nats, tokens, right = time.perf_counter(), 0.0, 0, 0
    for batch in by_width(rows, BATCH_TOKENS):
        logits, wanted, _ = predictions(model.network, batch, model.tokenizer.padding_id)
        nats += summed_nats(logits, wanted).item()
        tokens += len(wanted)
        right += int((logits.argmax(dim=1) == wanted).sum())
    if not tokens:
        raise ValueError("the text is too short: it has no token that is predicted from others")
    n_bytes = sum(len(text.encode()) for text in texts)
    return Score(
        nats=nats,
        tokens=tokens,
        right=right,
        bytes=max(1, n_bytes - sum(len(model.tokenizer.whole(ids)) for ids in free)),
        documents=len(texts),
        seconds=time.perf_counter() - started,
    )


def windows(length: int, max_len: int) -> list[tuple[int, int, int]]:
    """Cut `length` predictions into (start, first_scored, stop), at most max_len wide.

    Every prediction is scored once; after the first window each has at least half of max_len
    behind it.
    """
    result = [(0, 0, min(length, max_len))]
    while result[-1][2] < length:
        scored = result[-1][2]
        stop = min(length, scored + max_len - max_len // 2)
        result.append((max(0, stop - max_len), scored, stop))
    return result


OPENINGS = ("Once upon a time", "One day", "There was a", "Lily", "Tom and his")
BATCH_SAMPLES = 20
SAMPLE_TOKENS = 300


def sample_stories(model: Model, count: int) -> list[str]:
    """Texts sampled at temperature 1, without filters, from a few openings; seeds 0, 1, 2, ..."""
    stories = []
    for start in range(0, count, BATCH_SAMPLES):
        seeds = list(range(start, min(count, start + BATCH_SAMPLES)))
        texts = [model.tokenizer.readable(OPENINGS[seed % len(OPENINGS)]) for seed in seeds]
        runs = model.generate_batch(
            texts, seeds=seeds, temperature=1.0, max_new_tokens=SAMPLE_TOKENS
        )
        stories += [run.text for run in runs]
    return stories


def longest_shared_passage(samples: Sequence[str], documents: Iterable[str]) -> tuple[int, str]:
    """(number of words, the words) of the longest run that a sample and a document share.

    Words are separated by white space and compared exactly.
    """
    sample_words = [sample.split() for sample in samples]
    document_words = [document.split() for document in documents]
    best: tuple[int, str] = (0, "")
    length = 1
    while True:
        wanted = {
            tuple(words[i : i + length]) for words in sample_words
            for i in range(len(words) - length + 1)
        }  # fmt: skip
        passage = next(
            (
                gram for words in document_words for i in range(len(words) - length + 1)
                if (gram := tuple(words[i : i + length])) in wanted
            ),
            None,
        )  # fmt: skip
        if passage is None:
            return best
        best = (length, " ".join(passage))
        length += 1


ROWS_AT_ONCE = 256  # sentences times beams: their logits fit a CPU's cache
MAX_EXTRA_TOKENS = 50  # a translation may have this many tokens more than its source


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslationScore:
    """sacreBLEU's measures, each 0 to 100, with the signatures that make them comparable.

    length_ratio: tokens of all translations over those of all references (13a tokens).
    tokenised_bleu: of lower-cased, tokenised text, as many papers score; None if not asked for.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    length_ratio: float
    tokenised_bleu: float | None = None
    tokenised_signature: str = ""
    sentences: int
    seconds: float  # of translating alone


def translate(
    model: Model, sentences: Sequence[str], *, beams: int = 1, length_penalty: float = 1.0
) -> list[str]:
    """The best translation of each sentence; one beam is greedy decoding.

    Sentences of similar length are translated together. Raises ValueError for a model that is
    not an encoder-decoder, or for a sentence that is too long for it.
    """
    network, tokenizer = model.network, model.tokenizer
    model.check_translator()
    assert isinstance(network, EncoderDecoder)
    read = [model.reader.read_as(sentence) for sentence in sentences]
    sources = [tokenizer.source(ids) for ids in tokenizer.encode_batch(read)]
    longest = max(map(len, sources), default=0)
    if longest > model.config.max_len:
        raise ValueError(
            f"a sentence is {longest} tokens long; {model.name} reads at most "
            f"{model.config.max_len}"
        )
    order = sorted(range(len(sources)), key=lambda index: len(sources[index]))
    result = [""] * len(sources)
    size = max(1, ROWS_AT_ONCE // beams)
    for start in range(0, len(order), size):
        part = order[start : start + size]
        hypotheses = beam_search(
            network,
            [sources[index] for index in part],
            start=tokenizer.target_start,
            end_ids=tokenizer.end_ids,
            forced_end=tokenizer.forced_end,
            beams=beams,
            max_new_tokens=[len(sources[index]) + MAX_EXTRA_TOKENS for index in part],
            length_penalty=length_penalty,
        )
        for index, beam in zip(part, hypotheses, strict=True):
            result[index] = tokenizer.decode(beam.hypotheses[0].ids)
    return result


def score_translations(
    model: Model,
    pairs: Sequence[Pair],
    *,
    beams: int = 1,
    length_penalty: float = 1.0,
    lowercase: bool = False,
    language: str | None = None,
) -> TranslationScore:
    """Translate the sources and compare with the targets, one reference each (sacreBLEU, 13a).

    language: that of the targets, such as "fr"; with it, BLEU of lower-cased, tokenised text too.
    Raises ValueError for a language without Moses rules.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if language is not None:
        _check_language(language)
    started = time.perf_counter()
    sources = [source for source, _ in pairs]
    translations = translate(model, sources, beams=beams, length_penalty=length_penalty)
    seconds = time.perf_counter() - started
    references = [target for _, target in pairs]
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    words = bleu.corpus_score(translations, [references])
    tokenised, signature = (
        (None, "") if language is None else tokenised_bleu(translations, references, language)
    )
    return TranslationScore(
        bleu=words.score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(translations, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        length_ratio=words.ratio,
        tokenised_bleu=tokenised,
        tokenised_signature=signature,
        sentences=len(pairs),
        seconds=seconds,
    )


def tokenised_bleu(
    translations: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, str]:
    """BLEU as in published Multi30k results: (score, signature with how the text was tokenised)."""
    import sacremoses  # type: ignore[import-untyped]
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(tokenize="none", force=True)
    score = bleu.corpus_score(moses(translations, language), [moses(references, language)]).score
    how = f"lower-cased, Moses rules for {language} (sacremoses {sacremoses.__version__})"
    return score, f"{bleu.get_signature()} on text {how}"


def moses(lines: Sequence[str], language: str) -> list[str]:
    """Lower-case, normalise punctuation and tokenise, in this order, by Moses rules.

    Raises ValueError for a language without rules.
    Source: the "lc.norm.tok" files of Multi30k (Elliott et al. 2016). Departure: characters are not
    escaped as XML, which is the same on both sides and splits nothing.
    """
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    _check_language(language)
    normaliser, tokeniser = MosesPunctNormalizer(lang=language), MosesTokenizer(lang=language)
    return [
        tokeniser.tokenize(normaliser.normalize(line.lower()), escape=False, return_str=True)
        for line in lines
    ]


def _check_language(language: str) -> None:
    from sacremoses.corpus import NonbreakingPrefixes  # type: ignore[import-untyped]

    languages = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in languages:
        raise ValueError(
            f"the language must be one that has Moses rules; got {shortened(language)}; "
            f"allowed: {languages}"
        )
