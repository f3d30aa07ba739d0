"""Translate many sentences, and score them against references."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from transformer.inference.beam import beam_search
from transformer.inference.model import Model
from transformer.model.transformer import EncoderDecoder
from transformer.training.data import Pair

ROWS_AT_ONCE = 256  # sentences times beams: their logits fit a CPU's cache
LONGER = 50  # a translation may have this many tokens more than its source


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
    sources = [[*ids, tokenizer.end_id] for ids in tokenizer.encode_batch(read)]
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
        found = beam_search(
            network,
            [sources[index] for index in part],
            start_id=tokenizer.start_id,
            end_id=tokenizer.end_id,
            beams=beams,
            max_new_tokens=len(sources[part[-1]]) + LONGER,
            length_penalty=length_penalty,
        )
        for index, beam in zip(part, found, strict=True):
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
    found = translate(model, sources, beams=beams, length_penalty=length_penalty)
    seconds = time.perf_counter() - started
    references = [target for _, target in pairs]
    bleu, chrf = BLEU(lowercase=lowercase), CHRF(lowercase=lowercase)
    words = bleu.corpus_score(found, [references])
    tokenised, signature = (
        (None, "") if language is None else tokenised_bleu(found, references, language)
    )
    return TranslationScore(
        bleu=words.score,
        bleu_signature=str(bleu.get_signature()),
        chrf=chrf.corpus_score(found, [references]).score,
        chrf_signature=str(chrf.get_signature()),
        length_ratio=words.ratio,
        tokenised_bleu=tokenised,
        tokenised_signature=signature,
        sentences=len(pairs),
        seconds=seconds,
    )


def tokenised_bleu(
    found: Sequence[str], references: Sequence[str], language: str
) -> tuple[float, str]:
    """BLEU as in published Multi30k results: (score, signature with how the text was tokenised)."""
    import sacremoses  # type: ignore[import-untyped]
    from sacrebleu.metrics.bleu import BLEU

    bleu = BLEU(tokenize="none", force=True)
    score = bleu.corpus_score(moses(found, language), [moses(references, language)]).score
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

    known = sorted(set(NonbreakingPrefixes().available_langs.values()))
    if language not in known:
        raise ValueError(
            f"the language must be one that has Moses rules; got {language!r}; allowed: {known}"
        )
