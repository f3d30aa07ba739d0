"""The heads over many texts: sums against single runs, merged in any order, by any number of
workers, interrupted and gone on with, by a Ray cluster of which one is killed too."""

import json
import os
import random
import re
import signal
import sys
from collections.abc import Iterator
from functools import partial, reduce
from itertools import combinations
from operator import add
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from kit.hf_folders import byte_fallback, byte_level, marian_files, unigram, word_piece
from kit.models import save_model

from transformer import Model, Tokenizer, bundled_names, load
from transformer.analysis.corpus import Summary, over_texts, summary_of
from transformer.analysis.corpus.__main__ import alike_of, main, named_texts, parser
from transformer.analysis.corpus.dossier import FARTHEST, _traits, clusters, dossiers, standardised
from transformer.analysis.corpus.reading import KINDS, MAX_NEW_TOKENS, kinds_of
from transformer.analysis.corpus.summary import HeadSums, MetricSums
from transformer.analysis.corpus.with_ray import LOCAL
from transformer.analysis.head_metrics import head_metrics
from transformer.checkpoint import BUNDLED
from transformer.tokenizer.foreign import SpecialIds
from transformer.tokenizer.hf_tokenizers import FastTokenizer
from transformer.tokenizer.pieces import MarianTokenizer
from transformer.training.data import texts_of
from transformer.views.attention.corpus import heads_over_texts

TEXTS = ["the fox said hello to the bird", "the bird the fox the bird", "no", "One day: 12 moons!"]


def same(one: Summary, other: Summary) -> bool:
    ours, theirs = one.arrays(), other.arrays()
    return ours.keys() == theirs.keys() and all((ours[n] == theirs[n]).all() for n in ours)


def summaries(model: Model, *, ablate: bool = False) -> list[Summary]:
    return [summary_of(model, text, at, ablate=ablate) for at, text in enumerate(TEXTS)]


@pytest.mark.parametrize(("name", "kind"), [("model", "self"), ("encoder_decoder", "cross")])
def test_means_are_those_of_the_single_runs(name, kind, request):
    model = request.getfixturevalue(f"tiny_{name}")
    whole = reduce(add, summaries(model))
    read = model.trace if kind == "self" else partial(model.generate, max_new_tokens=MAX_NEW_TOKENS)
    runs = [read(text) for text in TEXTS]
    singles = [head_metrics(run, "decoder", kind).heads for run in runs]
    for name, sums in whole.kinds[f"decoder.{kind}"].metrics.items():
        numbers = np.array([[head.values[name] for head in heads] for heads in singles])
        assert sums.n.ravel().tolist() == np.isfinite(numbers).sum(axis=0).tolist()
        expected = np.nanmean(numbers, axis=0) if np.isfinite(numbers).any() else np.nan
        np.testing.assert_allclose(sums.mean().ravel(), expected, atol=1e-6)
        ends = {"entropy": (0, 10), "distance": (0, 100), "order": (-1, 1)}.get(name, (0, 1))
        known = np.flatnonzero(np.isfinite(numbers[:, 0]))
        binned, _ = np.histogram(numbers[known, 0], 20, ends)
        assert sums.counts[0, 0].tolist() == binned.tolist()
        order = sorted(known, key=lambda text: (-np.rint(1e6 * numbers[text, 0]), text))
        strongest = sums.strongest[0, 0][: len(known)]
        assert strongest[:, 1].tolist() == order
        np.testing.assert_allclose(strongest[:, 0] / 1e6, numbers[order, 0], atol=1e-6)
    assert whole.n_texts == 4
    assert whole.n_tokens == sum(len(run.source_ids) + len(run.ids) for run in runs)
    never = MetricSums.of("entropy", np.full((2, 3), np.nan), 0)
    assert np.isnan(never.mean()).all()


def test_summaries_can_be_added_in_any_order(tiny_encoder_decoder):
    all_of_them = summaries(tiny_encoder_decoder, ablate=True)
    whole = reduce(add, all_of_them)
    assert set(whole.kinds) == {"encoder.self", "decoder.self", "decoder.cross"}
    assert {int(heads.n_costs) for heads in whole.kinds.values()} == {len(TEXTS)}
    for seed in range(5):
        mixed = random.Random(seed).sample(all_of_them, len(all_of_them))
        assert same(reduce(add, mixed), whole)
        left, right = reduce(add, mixed[:2]), reduce(add, mixed[2:], Summary.nothing())
        assert same(left + right, whole)
    assert (Summary.nothing(1) + Summary.nothing(3)).n_left_out == 4


def kinds_by(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    return [KINDS[kind] for kind in kinds_of(tokenizer, ids)]


def test_kinds_of_tokens_of_characters():
    text = "Tom was 3.\n'é"
    characters = Tokenizer.of_characters([text])
    assert kinds_by(characters, characters.encode(text, special=True)) == [
        "special", "word", *2 * ["inside a word"], "white space", "word", *2 * ["inside a word"],
        "white space", "number", "punctuation", "white space", "punctuation", "word",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [None, byte_level, word_piece, byte_fallback, unigram])
def test_kinds_of_tokens_are_those_of_the_tokenizer(tmp_path, make):
    text = "The black cats are sleeping, and Tommy - 47 naïve foxes - read Привет: 1234!"
    if make is None:
        tokenizer = load("stories").tokenizer
    else:
        made, _ = make()
        made.save(str(tmp_path / "tokenizer.json"))
        size = made.get_vocab_size()
        specials = SpecialIds(start=0, ends=frozenset(), padding=None)
        tokenizer = FastTokenizer(tmp_path / "tokenizer.json", specials, size)
        if make is word_piece:  # which knows few characters
            text = "the foxcat is sleeping, and the dog - 1234 beds: once upon!"
    check_words(tokenizer, tokenizer.encode(text, special=True), text)


def test_kinds_of_tokens_of_sentence_pieces(tmp_path):
    size = len(marian_files(tmp_path))
    ids = SpecialIds(start=size - 1, ends=frozenset({0}), padding=size - 1)
    tokenizer = MarianTokenizer(tmp_path, ids, size)
    check_words(tokenizer, tokenizer.source(tokenizer.encode("the black cat")), "the black cat")


def check_words(tokenizer: Tokenizer, ids: list[int], text: str) -> None:
    """Words are put together from their kinds; numbers, punctuation and spaces are none of them."""
    words: list[bytes] = []
    for index, kind in zip(ids, kinds_by(tokenizer, ids), strict=True):
        raw = tokenizer.to_bytes([index])
        assert (kind == "special") == tokenizer.is_special(index) == (raw == b"")
        if kind == "inside a word":
            words[-1] += raw
        elif kind == "word":
            words.append(raw.lstrip())
        elif kind == "number":
            assert raw.strip().isdigit()
        else:
            assert not any(part.isalnum() for part in raw.decode())
    assert b" ".join(words).decode().split() == re.findall(r"[^\W\d_]+", text)


@pytest.mark.slow
def test_workers_and_interruptions_change_nothing(tiny_model, tmp_path):
    save_model(tiny_model, tmp_path / "tiny", dtype="float32")
    data, name = tmp_path / "data.txt", str(tmp_path / "tiny")
    data.write_text("\n".join(f"{text} {n}" for n in range(12) for text in TEXTS))
    texts, options = partial(texts_of, data), dict(n_ablated=3, part=20)
    alone = over_texts(name, texts, tmp_path / "one", **options)
    assert alone.n_texts == 48
    progress: list[int] = []
    several = over_texts(name, texts, tmp_path / "two", **options, workers=2, told=progress.append)
    assert same(several, alone)
    assert sorted(progress) == [8, 20, 20]
    first, *_ = sorted((tmp_path / "two").glob("part-*.npz"))
    first.unlink()  # as if it had been killed before that
    others = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("part-*.npz")}
    assert same(over_texts(name, texts, tmp_path / "two", **options), alone)
    assert all(path.stat().st_mtime_ns == time for path, time in others.items())


def test_the_command_writes_dossiers_and_the_texts_that_they_name(tiny_model, tmp_path, capsys):
    save_model(tiny_model, tmp_path / "tiny", dtype="float32")
    data = tmp_path / "data.txt"
    data.write_text("\n".join([*TEXTS, "long " * 40]))
    model, out = str(tmp_path / "tiny"), tmp_path / "out"
    main([model, "--data", str(data), "--out", str(out), "--silence", "2"])
    content = json.loads((out / "heads.json").read_text())
    assert (content["n_texts"], content["n_left_out"]) == (4, 1)
    assert all(content["texts"][index] == TEXTS[int(index)] for index in content["texts"])
    assert "most_read" in capsys.readouterr().out
    content["texts"] = dict.fromkeys(content["texts"], "<b>${x}</b>")
    (tmp_path / "tiny" / "heads.json").write_text(json.dumps(content))
    loaded = load(model)
    loaded.save(tmp_path / "again")
    assert load(tmp_path / "again").heads == loaded.heads
    figure = heads_over_texts(loaded.heads, "decoder.self", "previous", "cost", (1, 0))
    table = figure.layout.meta["table"]
    assert table["rows"] == ["0·0", "0·1", "1·0", "1·1"]
    for at, head in enumerate(content["heads"]):
        assert table["cells"][at][:2] == [head["metrics"]["previous"]["mean"], head["cost"]]
    for strongest in heads_over_texts(loaded.heads, "decoder.self", "previous", "largest").data:
        assert all("&lt;b&gt;${x}&lt;/b&gt;" in one for one in strongest.customdata)
    assert not heads_over_texts(None, "decoder.self", "previous", "largest").data


def test_a_command_without_options_ablates_nothing():
    given = parser().parse_args(["tiny", "--data", "data.txt", "--out", "out"])
    assert (given.ablate, given.workers, given.texts) == (0, 1, None)
    assert named_texts([], iter(TEXTS)) == {}


def test_a_dossier_has_the_averages_of_the_sums():
    previous = add(
        MetricSums.of("previous", np.array([[0.25, 0.5]]), 3),
        MetricSums.of("previous", np.array([[1 / 3, np.nan]]), 7),
    )
    kinds = len(KINDS)
    rows, read = np.zeros(kinds, int), np.zeros((1, 2, kinds, kinds), int)
    rows[:2] = 3, 1
    read[0, 0, 0, :2], read[0, 0, 1, 1] = (1_000_000, 2_000_000), 1_000_000
    cost, n_costs = np.array([[2_000_000, 0]]), np.array(3)
    heads = HeadSums({"previous": previous}, read, rows, cost, n_costs)
    first, second = dossiers(Summary(2, 9, 0, {"decoder.self": heads}))
    strongest = [[0.3333, 7], [0.25, 3]]
    counts = [int(n in (5, 6)) for n in range(20)]
    assert first == {
        "kind": "decoder.self", "layer": 0, "head": 0, "alike": [[0, 1]], "cost": 0.666667,
        "metrics": {"previous": {"mean": 0.2917, "n": 2, "counts": counts,
                                 "strongest": strongest, "typical": 3}},
        "reads": {KINDS[0]: {KINDS[0]: 0.3333, KINDS[1]: 0.6667}, KINDS[1]: {KINDS[1]: 1.0}},
    }  # fmt: skip
    assert (second["cost"], second["metrics"]["previous"]["mean"]) == (0.0, 0.5)


def dossier(layer: int, head: int, **means: float) -> dict[str, Any]:
    metrics = {name: {"mean": mean, "strongest": []} for name, mean in means.items()}
    return {"kind": "decoder.self", "layer": layer, "head": head, "metrics": metrics, "cost": None}


def test_similar_heads_are_clustered_and_named_after_what_they_share():
    low = {"entropy": 1.0, "previous": 0.1, "first": 0.1}
    heads = [
        dossier(0, 0, **low | {"previous": 0.9}), dossier(0, 1, **low),
        dossier(0, 2, **low | {"first": 0.8}), dossier(1, 0, **low | {"entropy": 1.02}),
        dossier(1, 1, **low | {"previous": 0.8}), dossier(1, 2, **low | {"entropy": 1.6}),
    ]  # fmt: skip
    assert [(cluster.heads, cluster.traits) for cluster in clusters(heads)] == [
        (((0, 0), (1, 1)), ("previous",)), (((0, 1), (1, 0)), ()),
        (((0, 2),), ("first",)), (((1, 2),), ("entropy",)),
    ]  # fmt: skip
    assert alike_of(heads) == [
        "alike      decoder.self       0·0 1·1: more previous",
        "alike      decoder.self       0·1 1·0: more nothing",
    ]
    assert clusters([]) == []
    assert [one.heads for one in clusters(heads[:1])] == [((0, 0),)]


def test_a_trait_is_high_on_average_and_above_average_in_every_head():
    rows = np.array([[2.0, 6.0, 0.01], [2.0, -0.1, 0.01]])
    assert _traits(rows, ["previous", "first", "entropy"]) == ("previous",)


def test_clusters_are_those_of_a_plain_loop_over_all_pairs():
    for name in bundled_names():
        content = json.loads((BUNDLED / name / "heads.json").read_text(encoding="utf-8"))
        for kind in {head["kind"] for head in content["heads"]}:
            own = [head for head in content["heads"] if head["kind"] == kind]
            names = list(own[0]["metrics"])
            rows = standardised(np.array([[h["metrics"][n]["mean"] for n in names] for h in own]))
            apart = np.sqrt(np.square(rows[:, None] - rows).mean(axis=-1))
            groups = [[place] for place in range(len(own))]
            while True:
                two = list(combinations(groups, 2))
                near = [apart[np.ix_(one, other)].mean() for one, other in two]
                if min(near) > FARTHEST:
                    break
                one, other = two[int(np.argmin(near))]
                groups = [group for group in groups if group not in (one, other)] + [one + other]
            expected = {frozenset((own[p]["layer"], own[p]["head"]) for p in g) for g in groups}
            assert {frozenset(one.heads) for one in clusters(own)} == expected


def test_a_dataset_of_the_hub_is_streamed(tiny_model, tmp_path, monkeypatch):
    save_model(tiny_model, tmp_path / "tiny", dtype="float32")
    read: list[str] = []

    def load_dataset(name: str, **settings: Any) -> Iterator[dict[str, str]]:
        for text in [*TEXTS, " ", *TEXTS]:
            read.append(text)
            yield {"text": text}

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))
    model, out = str(tmp_path / "tiny"), tmp_path / "out"
    options = ["--out", str(out), "--texts", "6", "--workers", "1"]
    main([model, "--data", "hub:someone/texts", *options])
    content = json.loads((out / "heads.json").read_text())
    assert content["n_texts"] == 6
    places = [*TEXTS, *TEXTS]
    assert all(text == places[int(place)] for place, text in content["texts"].items())
    assert len(read) < 2 * 9, "no more is streamed than asked for"


def workers() -> list[psutil.Process]:
    """Ray's workers: it names a process after its task."""
    found = psutil.Process().children(recursive=True)
    return [one for one in found if "MapBatches(Worker)" in " ".join(one.cmdline())]


@pytest.mark.slow
def test_a_cluster_finds_the_same_and_a_killed_worker_costs_only_time(tiny_model, tmp_path):
    save_model(tiny_model, tmp_path / "tiny", dtype="float32")
    data, name = tmp_path / "data.txt", str(tmp_path / "tiny")
    data.write_text("\n".join(f"the fox {n} said hello to the bird" for n in range(275)))
    texts = partial(texts_of, data)
    alone = over_texts(name, texts, tmp_path / "one", n_ablated=2, part=50)
    progress: list[int] = []
    killed: list[int] = []

    def kill_one(done: int) -> None:
        progress.append(done)
        if not killed:
            victim = workers()[0]
            os.kill(victim.pid, signal.SIGKILL)
            killed.append(victim.wait())

    there = sorted((tmp_path / "one").iterdir())[3]
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / there.name).write_bytes(there.read_bytes())  # of an earlier run
    several = over_texts(
        name, texts, tmp_path / "two", n_ablated=2, part=50, workers=2, ray=LOCAL, told=kill_one
    )
    assert len(killed) == 1
    assert sorted(progress) == [25] + 5 * [50]
    assert several.n_texts == alone.n_texts == 275
    for path in (tmp_path / "one").iterdir():
        assert (tmp_path / "two" / path.name).read_bytes() == path.read_bytes()
    assert not workers()
