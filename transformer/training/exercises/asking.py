"""How an exercise is put to a network of each family, and how many answers are right."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.inference.logit_sources import pad
from transformer.model.transformer import DecoderOnly, EncoderDecoder
from transformer.tokenizer import Tokenizer
from transformer.training.exercises.exercise import Row


def predictions(
    network: nn.Module, tokenizer: Tokenizer, sign: str, rows: list[Row]
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (N, V), the N tokens that they should predict, and whose row each of them is.

    A translator reads the question and writes the answer; a writer reads "question, sign, answer"
    as one text and is asked for the answer alone; a reader says the answer at the places of the
    question. Each answer ends with the end-of-text token.
    """
    device = next(network.parameters()).device
    end, padding = tokenizer.end_id, tokenizer.padding_id
    questions = [tokenizer.encode(question) for question, _ in rows]
    answers = [[*tokenizer.encode(answer), end] for _, answer in rows]
    if isinstance(network, DecoderOnly):
        asked = [[end, *question, *tokenizer.encode(sign)] for question in questions]
        texts = [[*start, *answer] for start, answer in zip(asked, answers, strict=True)]
        ids = pad(texts, padding).to(device)
        first = torch.tensor([len(start) - 1 for start in asked], device=device)[:, None]
        places = torch.arange(ids.shape[1] - 1, device=device)
        real = (ids[:, 1:] != padding) & (places >= first)
        return network(ids[:, :-1], where=real), ids[:, 1:][real], real.nonzero()[:, 0]
    source = pad([[*question, end] for question in questions], padding).to(device)
    if isinstance(network, EncoderDecoder):
        target = pad([[tokenizer.start_id, *answer] for answer in answers], padding).to(device)
        real = target[:, 1:] != padding
        logits = network(source, target[:, :-1], where=real)
        return logits, target[:, 1:][real], real.nonzero()[:, 0]
    wanted = pad([*answers, [padding] * source.shape[1]], padding)[:-1].to(device)
    real = wanted != padding
    return network(source)[real], wanted[real], real.nonzero()[:, 0]


@torch.inference_mode()
def share_right(network: nn.Module, tokenizer: Tokenizer, sign: str, rows: list[Row]) -> float:
    """The share of rows whose whole answer the network would write, from 0 to 1.

    Each token is the likeliest after the right ones before it: greedy decoding writes all of an
    answer just where every one of them is.
    """
    logits, wanted, row = predictions(network, tokenizer, sign, rows)
    wrong = row[logits.argmax(dim=-1) != wanted].unique()
    return 1 - len(wrong) / len(rows)
