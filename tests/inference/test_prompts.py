"""Conversations, ids and pairs of texts, read as transformers reads them."""

import json

import numpy as np
import pytest
import torch
from kit.hf_folders import byte_fallback, byte_level, change, roberta, word_piece, write
from tokenizers import AddedToken, processors

import transformer

pytestmark = pytest.mark.filterwarnings("ignore")
TEXT, OTHER = "The black cat is sleeping.", "Is the dog on the bed?"

# Templates as chat models publish them, with the special tokens that they name.
CHATML = """\
{%- if messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- else %}
    {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- generation %}{{- '\\n' + message.content }}{%- endgeneration %}
        {{- '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
LLAMA_2 = (
    "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}"
    "{% set system_message = messages[0]['content'] %}{% else %}"
    "{% set loop_messages = messages %}{% set system_message = false %}{% endif %}"
    "{% for message in loop_messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/...') }}{% endif %}"
    "{% if loop.index0 == 0 and system_message != false %}"
    "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
    "{% else %}{% set content = message['content'] %}{% endif %}"
    "{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}"
    "{% endif %}{% endfor %}"
)
MISTRAL = (
    "{%- set ns = namespace(system='') %}"
    "{%- for message in messages if message.role == 'system' %}"
    "{%- set ns.system = message.content + '\\n\\n' %}{%- endfor %}{{- bos_token }}"
    "{%- for message in messages %}{%- if message['role'] == 'system' %}{%- continue %}"
    "{%- elif message['role'] == 'user' %}"
    "{{- ' [INST] ' + ns.system + message['content'] + ' [/INST]' }}{%- set ns.system = '' %}"
    "{%- else %}{{- ' ' + message['content'] + eos_token }}{%- endif %}{%- endfor %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
    "{% if (message['role'] == 'assistant') %}{% set role = 'model' %}"
    "{% else %}{% set role = message['role'] %}{% endif %}"
    "{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"
)
TEMPLATES = {
    "ChatML": (CHATML, byte_level, ["<|im_start|>", "<|im_end|>"]),
    "Llama 2": (LLAMA_2, byte_fallback, []),
    "Mistral": (MISTRAL, byte_fallback, []),
    "Gemma": (GEMMA, byte_fallback, ["<start_of_turn>", "<end_of_turn>"]),
}
USER = {"role": "user", "content": "Who is the black cat? 🦊 <|im_end|> "}
SYSTEM = {"role": "system", "content": "Speak like a fox."}
ANSWER = {"role": "assistant", "content": "It is me,\n the cat. "}


@pytest.fixture(scope="module", params=TEMPLATES)
def chat(request, tmp_path_factory):
    """(our model, AutoTokenizer, transformers' network)."""
    return chat_of(request.param, tmp_path_factory.mktemp("chat"))


def chat_of(name, folder):
    import transformers

    template, kind, specials = TEMPLATES[name]

    def tokenizer():
        made_of, special = kind()
        made_of.add_special_tokens([AddedToken(name, special=True) for name in specials])
        return made_of, special

    theirs = write(folder, "llama", 1, tokenizer)
    if name == "Mistral":  # in a file of its own, and one that is not read beside it
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        change(folder / "tokenizer_config.json", chat_template="{{ wrong }}")
    elif name == "Gemma":
        named = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": template}]
        change(folder / "tokenizer_config.json", chat_template=named)
    else:
        change(folder / "tokenizer_config.json", chat_template=template)
    return transformer.load(folder), transformers.AutoTokenizer.from_pretrained(folder), theirs


def theirs_of(tokenizer, messages):
    continued = messages[-1]["role"] == "assistant"
    settings = {"add_generation_prompt": not continued, "continue_final_message": continued}
    return tokenizer.apply_chat_template(messages, return_dict=True, **settings)["input_ids"]


def test_conversations_have_the_ids_of_apply_chat_template(chat):
    model, tokenizer, theirs = chat
    for messages in ([USER], [USER, ANSWER, USER], [USER, ANSWER], [SYSTEM, USER]):
        if SYSTEM in messages and "System role not supported" in tokenizer.get_chat_template():
            with pytest.raises(ValueError, match="refuses these messages: System role not supp"):
                model.trace(messages=messages)
            continue
        wanted = theirs_of(tokenizer, messages)
        run = model.trace(messages=messages)
        assert list(run.ids) == wanted
        assert not run.warnings
        written = model.generate(messages=messages, max_new_tokens=3)
        assert written.ids[: written.n_prompt] == run.ids
        assert transformer.from_json(written.to_json()).request == written.request
        ids = torch.tensor([wanted])
        with torch.no_grad():
            assert (theirs(ids).logits - run.logits).abs().max() < 1e-4
            reply = theirs.generate(ids, do_sample=False, max_new_tokens=3)[0].tolist()
        assert list(written.ids)[: len(reply)] == reply[: len(written.ids)]
        assert written.text == written.request.text + written.new_text


def test_a_batch_of_conversations_is_each_alone(chat, tmp_path):
    model, _, _ = chat
    both = [[USER], [USER, ANSWER, USER]]
    batch, runs = model.trace(messages=both), model.generate(messages=both, max_new_tokens=2)
    for messages, row, run in zip(both, batch, runs, strict=True):
        alone = model.trace(messages=messages)
        assert row.request == alone.request
        assert (row.logits - alone.logits).abs().max() < 1e-4
        assert run.ids == model.generate(messages=messages, max_new_tokens=2).ids
    model.save(tmp_path / "again")
    assert transformer.load(tmp_path / "again").trace(messages=both[1]).ids == alone.ids


WRONG = [
    ({"messages": []}, r"messages are a list such as \[\{"),
    ({"messages": "hello"}, r"messages are a list such as \[\{"),
    ({"messages": [{"role": "user"}]}, 'each message has a "role" and a "content", both texts'),
    ({"messages": [[USER], ["x"]]}, "text 1 of 2, counted from 0: each message has"),
    ({"messages": [USER], "texts": "a"}, "a prompt is a text or messages; got both"),
    ({"texts": [USER]}, r"text 0 of 1, .*: a conversation is given by its name: messages="),
    ({"texts": ["a", [3, 4]]}, "a batch is of texts or of ids; got both"),
    ({"texts": [3, 1000]}, "ids must be from 0 to 457; got 1000"),
    ({"texts": [3, -1]}, "ids must be from 0 to 457; got -1"),
    ({"texts": torch.tensor([0.5])}, r"ids must be whole numbers, a list.*; got Tensor of shape"),
    ({"texts": torch.tensor([True])}, r"ids must be whole numbers"),
    ({"texts": torch.zeros(1, 2, 3).long()}, r"ids must be whole numbers.* shape \(2, 3\)"),
    ({"texts": torch.zeros(0).long()}, "at least one id is needed"),
    ({"texts": [[]]}, "at least one id is needed"),
    ({"texts": "a", "text_pair": "b"}, "a pair of texts is for an encoder alone; "),
]


@pytest.fixture(scope="module")
def chatml(tmp_path_factory):
    return chat_of("ChatML", tmp_path_factory.mktemp("chatml"))[0]


@pytest.mark.parametrize(("given", "sentence"), WRONG)
def test_a_wrong_prompt_is_answered_in_a_sentence(given, sentence, chatml):
    with pytest.raises(ValueError, match=sentence):
        chatml.trace(**given)


def test_a_model_without_a_template_refuses_conversations(tiny_model):
    with pytest.raises(ValueError, match=r"tiny has no chat template: .*; allowed: a text"):
        tiny_model.generate(messages=[USER])


@pytest.mark.parametrize("name", ["tiny_model", "tiny_encoder", "tiny_encoder_decoder"])
def test_ids_are_read_wherever_a_text_is(name, request):
    model = request.getfixturevalue(name)
    run, batch = model.trace("the fox said"), model.trace(["the fox said", "hello"])
    rows = [list(row.source_ids or row.ids) for row in batch]
    (ids, _) = rows
    kinds = (ids, tuple(ids), torch.tensor(ids), np.array(ids, np.int32), [*map(np.int64, ids)])
    for given in kinds:
        same = model.trace(given)
        assert (same.ids, same.source_ids, same.labels) == (run.ids, run.source_ids, run.labels)
        assert same.logits.equal(run.logits)
    mask = [[1] * len(rows[0]), [1] * len(rows[1]) + [0] * (len(rows[0]) - len(rows[1]))]
    padded = [rows[0], rows[1] + [0] * (len(rows[0]) - len(rows[1]))]
    encoding = {"input_ids": torch.tensor(padded), "attention_mask": torch.tensor(mask)}
    for several in (rows, [torch.tensor(row) for row in rows], encoding):
        again = model.trace(several)
        assert again.ids.equal(batch.ids)
        assert again.logits.equal(batch.logits)
        assert [one.ids for one in again] == [one.ids for one in batch]
    assert model.trace(torch.tensor([ids])).ids.tolist() == [ids]
    with pytest.raises(ValueError, match="row 1 of the ids has padding, 0, which would be read"):
        model.trace(torch.tensor(padded))
    if name != "tiny_encoder":
        written = model.generate(ids, max_new_tokens=4)
        assert written.ids == model.generate("the fox said", max_new_tokens=4).ids
        both = model.generate(rows, max_new_tokens=4)
        assert [one.ids for one in both] == [
            model.generate(row, max_new_tokens=4).ids for row in rows
        ]
        assert model.generate(ids, interventions=[], max_new_tokens=2).request.input_ids == tuple(
            ids
        )


PAIRED = {
    "BERT": ("bert", word_piece),
    "BERT, from its vocabulary": ("bert", word_piece),
    "RoBERTa": ("roberta", roberta),
}


@pytest.mark.parametrize("name", PAIRED)
def test_pairs_of_texts_are_those_of_transformers(name, tmp_path):
    """With the second text's token type, of which BERT has its own vectors."""
    import transformers

    family, kind = PAIRED[name]

    def tokenizer():
        made_of, special = kind()
        if family == "bert":
            ends = [(each, made_of.token_to_id(each)) for each in ("[CLS]", "[SEP]")]
            made_of.post_processor = processors.TemplateProcessing(
                single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
            )
        return made_of, special

    theirs = write(tmp_path, family, 1, tokenizer)
    if "vocabulary" in name:
        content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
        words = sorted(content["model"]["vocab"], key=content["model"]["vocab"].get)
        (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
        (tmp_path / "tokenizer.json").unlink()
    if family == "bert":
        change(tmp_path / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    else:
        change(tmp_path / "tokenizer_config.json", pad_token="<pad>")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = transformer.load(tmp_path)
    wanted = auto(TEXT, OTHER)
    run = model.trace(TEXT, text_pair=OTHER)
    assert list(run.ids) == wanted["input_ids"]
    ours = model.tokenizer(TEXT, OTHER)
    assert ours["input_ids"] == wanted["input_ids"]
    if family == "bert":
        assert (
            list(run.request.token_type_ids) == wanted["token_type_ids"] == ours["token_type_ids"]
        )
    with torch.no_grad():
        logits = theirs(**auto(TEXT, OTHER, return_tensors="pt")).logits
        pairs = auto([TEXT, "A"], [OTHER, TEXT], return_tensors="pt", padding=True)
        of_both = theirs(**pairs).logits
    assert (run.logits - logits).abs().max() < 1e-4
    batch = model.trace([TEXT, "A"], text_pair=[OTHER, TEXT])
    for row, theirs_row, mask in zip(batch, of_both, pairs["attention_mask"], strict=True):
        assert (row.logits[0] - theirs_row[mask.bool()]).abs().max() < 1e-4
    assert model.trace(pairs).logits.equal(batch.logits)
    batch.to_npz(tmp_path / "batch.npz")
    assert transformer.read_batch(tmp_path / "batch.npz")[1].request == batch[1].request
    text = f"{TEXT}{model.tokenizer.label(model.tokenizer.mask_id)}"
    hidden = model.trace(text, text_pair=OTHER)
    assert list(hidden.ids) == auto(text, OTHER)["input_ids"]
    again = transformer.analysis.ablation.log_probabilities_at(model, batch[0], 3)
    assert (again - batch[0].logits[0, 3].log_softmax(-1)).abs().max() < 1e-4


def test_a_tokenizer_is_called_as_that_of_transformers(tiny_encoder_decoder, tmp_path):
    tiny_encoder_decoder.save(tmp_path)
    for name in ("stories", "fill-in", "translate-en-fr", tmp_path):
        model = transformer.load(name)
        texts = ["the fox said", "hello"]
        encoding = model.tokenizer(texts)
        read = model.trace(encoding)
        assert encoding["attention_mask"] == [[1] * len(row) for row in encoding["input_ids"]]
        assert read.ids.equal(model.trace(texts).ids)
        assert model.tokenizer(texts[0])["input_ids"] == encoding["input_ids"][0]
