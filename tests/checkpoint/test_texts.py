"""Texts of other projects' networks, to their last token those that transformers generates."""

import random

import pytest
import torch
from kit.hf_folders import byte_level, change, write
from kit.hf_models import SEQ2SEQ

import transformer

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = ["The black cat is sleeping.", "Once upon a time there was a fox", "def f(x): return 1"]
OPTIONS = ("eos_token_id", "forced_bos_token_id", "forced_eos_token_id")


@pytest.mark.parametrize("family", ["bart", "mbart", "m2m_100", "t5", "llama", "gpt2"])
def test_texts_end_and_are_ranked_as_in_transformers(family, tmp_path):
    """With several ends or none, and forced tokens at the beginning and at the limit."""
    draw, both = random.Random(family), family in SEQ2SEQ
    for size in range(3):
        theirs = write(tmp_path, family, size, byte_level, seed=size)
        config, n_ids = theirs.generation_config, theirs.config.vocab_size
        for _ in range(4):
            ids = draw.sample(range(4, n_ids), 9)
            ends = draw.choice([None, ids[0], ids[:7]])
            forced = [draw.choice([None, ids[7]]) if both else None, draw.choice([None, ids[8]])]
            values = dict(zip(OPTIONS, (ends, *forced), strict=True))
            config.update(**values)
            change(tmp_path / "generation_config.json", **values)
            change(tmp_path / "config.json", eos_token_id=ends)
            model = transformer.load(tmp_path)
            n_new, beams = draw.randint(1, 9), draw.choice([1, 2, 4]) if both else 1
            penalty, text = draw.choice([0.0, 1.0, 2.0]), draw.choice(TEXTS)
            run = model.generate(
                text, max_new_tokens=n_new, beams=beams, **_only_with(beams, length_penalty=penalty)
            )
            read = torch.tensor([run.source_ids or run.ids[: run.n_prompt]])
            more = run.n_prompt - 1 if both else 0
            with torch.no_grad():
                said = theirs.generate(
                    read, attention_mask=torch.ones_like(read), max_new_tokens=n_new + more,
                    do_sample=False, bad_words_ids=[[theirs.config.pad_token_id]], num_beams=beams,
                    num_return_sequences=beams,
                    **_only_with(beams, length_penalty=penalty, early_stopping=True),
                )  # fmt: skip
            rows = [run.ids]
            if beams > 1:
                start = run.ids[: run.n_prompt]
                rows = [(*start, *hypothesis.ids) for hypothesis in run.search.hypotheses]
            nothing = {theirs.config.pad_token_id, -1}
            # Where there are fewer hypotheses than beams, transformers repeats, pads or has -1; it
            # fills the rest of a row that has ended with the padding or, where that is 0, with an
            # end.
            wanted = dict.fromkeys(
                tuple(_to_the_end(row, run.n_prompt, model.tokenizer.end_ids))
                for row in said.tolist()
                if not nothing.issuperset(row[1:])
            )
            assert [*map(tuple, rows)] == [*wanted], (size, values, n_new, beams, penalty)
            last = run.ids[-1] if len(run.ids) > run.n_prompt else None
            assert (run.stopped == "end") == (last in model.tokenizer.end_ids)


def _only_with(beams, **settings):
    return settings if beams > 1 else {}


def _to_the_end(row, n_prompt, ends):
    stop = next((at for at in range(n_prompt, len(row)) if row[at] in ends), len(row))
    return row[: stop + 1]
