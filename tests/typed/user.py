"""A program of somebody who uses the library, held to `mypy --strict`; a test runs it."""

from collections.abc import Mapping
from typing import Any, assert_type

import numpy as np
import torch
from torch import Tensor

import transformer
from transformer import Ablate, Add, Batch, Break, EditMask, Model, Patch, Run, Stream
from transformer.analysis.ablation import head_importance
from transformer.analysis.head_metrics import head_metrics
from transformer.analysis.journey import journey, without_head
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.patching import PatchEffect, patch_effect

model = transformer.load("stories", dtype="bfloat16", device="auto", max_len=64)
assert_type(model, Model)
text, other = "Once upon a time, a boy", "Once upon a time, a girl"

# Prompts
run = model.trace(text)
assert_type(run, Run)
assert_type(model(text), Run)
assert_type(model.trace([text, other]), Batch)
assert_type(model.trace([3, 4, 5]), Run)
assert_type(model.trace([[3, 4], [5]]), Batch)
read: Run = model.trace(torch.tensor([3, 4, 5]))
several: Batch = model.trace(np.array([[3, 4], [5, 6]]))
encoded: Batch = model.trace(model.tokenizer([text, other]))
assert_type(model.generate(text, max_new_tokens=8, stop="."), Run)
assert_type(model.generate([text, other]), list[Run])
assert_type(model.generate([3, 4, 5]), Run)
assert_type(model.samples(text, 3, temperature=0.8), list[Run])
assert_type(model.stream(text), Stream)
# What a run has
assert_type(run.attentions, tuple[Tensor, ...])
batch = model.trace([text, other])
assert_type(batch[-1], Run)
assert_type(batch[:2], list[Run])
assert_type(batch.hidden_states, tuple[Tensor, ...])
assert_type(run.trace[2].pattern, Tensor)
html: str = run.embed(height=600, theme="dark")
run.attention(1), run.attention("decoder.2.self", 3), run.heads()
written: str = run.new_text
for step in model.stream(text, max_new_tokens=3):
    print(step.new_text, end="")


# Hooks, as the documents write them
def louder(point: transformer.Point, value: Tensor) -> Tensor:
    return 2 * value


def seen(point: Any, value: Any, **context: Any) -> None:
    print(point)


model.trace(text, hooks=[("z", lambda point, value: 2 * value)])
model.trace(text, hooks=[("decoder.3.mlp_out", louder), seen])
model.generate(text, hooks=[("z", lambda point, value: None)], max_new_tokens=2)

# Interventions, of lists, arrays and tensors
vector = run.hidden_states[3][0, -1]
heads = head_importance(model, run, 4).change["decoder", "self"][1].topk(2).indices
model.trace(text, [Ablate("decoder", 3, [1, 2]), Ablate("decoder", 3, heads)])
model.trace(text, [Add("decoder", 2, vector), Add("decoder", 2, vector.tolist())])
model.trace(text, [Add("decoder", 2, np.zeros(256), positions=np.array([1]))])
model.trace(text, [Patch("decoder", 3, [4], other), Break("no-scale"), EditMask("decoder")])
model.trace(text, [Patch("decoder", 3, torch.tensor([4]), values=run.hidden_states[4][0, [4]])])
model.generate(text, interventions=[Ablate("decoder", 3, part="mlp_out")])


# Analyses
def difference(logits: Tensor) -> Tensor:
    return logits[:, 7] - logits[:, 9]


effect = patch_effect(model, run, other, 4, metric=difference, progress=False)
assert_type(effect, PatchEffect)
shares: Mapping[str, Tensor] = logit_contribution(model, run, 4, target=7, minus=9).heads
probabilities: Tensor = journey(model, run).probabilities
logits: Tensor = without_head(model, run, 2, 3)
label = head_metrics(run).heads[3].label


def of_a_chat_model(model: Model) -> None:
    chat = [{"role": "user", "content": "Hello"}]
    assert_type(model.generate(messages=chat, max_new_tokens=8), Run)
    assert_type(model.generate(messages=[chat, chat]), list[Run])
    assert_type(model.trace(messages=chat), Run)
    assert_type(model.trace(messages=[chat, chat]), Batch)


def of_an_encoder(model: Model) -> None:
    pair = model.trace("A text.", text_pair="Another.")
    assert_type(pair, Run)
    pairs = model.trace(["A text."], text_pair=["Another."])
    assert_type(pairs, Batch)
