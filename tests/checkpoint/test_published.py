"""Models as they are published, served by the command line beside one of ours."""

from __future__ import annotations

import httpx
import pytest
import serving
import torch
from gradio_client import Client
from published import PUBLISHED, publish

import transformer
from transformer.inference.engines.choice import ENGINES

pytestmark = pytest.mark.filterwarnings("ignore")
TEXTS = ["The black cat is sleeping on the bed", "The cat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return publish(tmp_path_factory.mktemp("published"))


def attentions(theirs, ids, **told):
    """What transformers says of a text, with all its attention."""
    theirs.set_attn_implementation("eager")
    with torch.no_grad():
        return theirs(ids, attention_mask=torch.ones_like(ids), output_attentions=True, **told)


@pytest.fixture(scope="module")
def served(folders, tmp_path_factory):
    """(a client, what the server wrote) of one server with all of them, and one that is damaged."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    damaged = log.parent / "damaged"
    damaged.mkdir()
    (damaged / "config.json").write_text('{"model_type": "gpt2"}')
    names = [str(folder) for folder, _ in folders.values()]
    port = serving.free_port()
    process = serving.started(port, ["stories", str(damaged), *names], log)
    client = Client(f"http://127.0.0.1:{port}/", verbose=False, analytics_enabled=False)
    yield client, log
    client.close()
    serving.stop(process)


def test_the_page_offers_all_that_can_be_used(served):
    client, log = served
    health = httpx.get(f"{client.src}health").json()
    assert health["models"] == ["stories", *PUBLISHED]
    page = httpx.get(client.src).text
    assert all(f'"{name}"' in page for name in PUBLISHED)
    told = [line for line in log.read_text().splitlines() if "not offered" in line]
    assert len(told) == 1
    assert "damaged cannot be read: its config.json has no vocab_size" in told[0]


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_is_read_and_continued_over_the_api(name, served, folders):
    client, _ = served
    theirs = folders[name][1]
    kind = transformer.load(folders[name][0]).config.family
    batch = client.predict(TEXTS, name, api_name="/batch")
    lengths = [sum(row) for row in batch["is_token"]]
    assert lengths[0] != lengths[1]
    short = lengths.index(min(lengths))
    assert all("pad" in label.lower() for label in batch["tokens"][short][min(lengths) :])
    stack = "decoder" if kind == "decoder" else "encoder"
    for row, (ids, length) in enumerate(zip(batch["ids"], lengths, strict=True)):
        read = torch.tensor([ids[:length]])
        told = {"decoder_input_ids": read[:, :1]} if name == "marian" else {}
        said = attentions(theirs, read, **told)
        wanted = (said.encoder_attentions if name == "marian" else said.attentions)[0][0, 1]
        found = client.predict(batch["run"], f"{stack}.0.self", 1, row, api_name="/attention")
        weights = torch.tensor(found["weights"])
        close(weights[:length, :length], wanted)
        assert (weights[:length, length:] == 0).all()
    if kind == "encoder":
        filled = client.predict("The [MASK] is sleeping", name, 3, api_name="/fill")
        assert filled
        return
    run = client.predict(TEXTS[1], name, 5, api_name="/generate")
    assert 1 <= len(run["steps"]) <= 5


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["llama-3", "mistral", "qwen2", "qwen3", "gemma"])
def test_stored_attention_of_grouped_queries_is_that_of_transformers(name, engine, folders):
    folder, theirs = folders[name]
    model = transformer.load(folder, engine=engine)
    assert model.config.key_heads > 1
    assert model.config.heads_per_key > 1
    together = model.trace(TEXTS)
    for row, text in enumerate(TEXTS):
        made = [model.trace(text), model.generate(text, max_new_tokens=4)]
        made.append(model.generate_batch(TEXTS, max_new_tokens=4)[row])
        for run in made:
            said = attentions(theirs, torch.tensor([run.ids])).attentions
            close(run.trace.weights("decoder"), torch.stack(said))
        length = len(made[0].ids)
        said = attentions(theirs, torch.tensor([made[0].ids])).attentions
        close(together.trace.weights("decoder")[:, [row], :, :length, :length], torch.stack(said))


def close(found, wanted):
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)
