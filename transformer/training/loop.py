"""The training loop, on Hugging Face Accelerate: one process or many, CPU or GPU, same result."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor, nn
from tqdm import tqdm

from transformer import checkpoint
from transformer.inference.run import Model
from transformer.model.config import ModelConfig, preset
from transformer.model.transformer import DecoderOnly, build_transformer
from transformer.text import Tokenizer
from transformer.training.card import write_card
from transformer.training.curve import write_curve
from transformer.training.data import Batches, Texts, collate, encode_documents
from transformer.training.evaluate import Score, score_documents
from transformer.training.recipe import Recipe
from transformer.training.state import load_state, read_progress, save_state

SAMPLE_TOKENS = 60


def train(recipe: Recipe, texts: Texts, out: Path, *, cpu: bool = False) -> Path:
    """Fit the recipe's model to the texts, or go on where a killed training stopped.

    Writes out/ (a checkpoint that `transformer.load` reads) and out/training/ (state, log.jsonl,
    loss.html). Returns out. Raises ValueError if out holds a training of another recipe.
    """
    return _Training(recipe, texts, out, cpu=cpu).run()


class _Training:
    def __init__(self, recipe: Recipe, texts: Texts, out: Path, *, cpu: bool) -> None:
        self.recipe, self.settings, self.texts, self.out = recipe, recipe.settings, texts, out
        self.folder = out / "training"
        precision = _precision(self.settings.precision, cpu)
        self.accelerator = Accelerator(
            mixed_precision="bf16" if precision == "bf16" else "no", cpu=cpu
        )
        self.main = self.accelerator.is_main_process
        self.progress: dict[str, Any] = {"step": 0, "epoch": 0, "index": 0, "seconds": 0.0}
        earlier = read_progress(self.folder)
        if earlier is not None and earlier["recipe"] != _identity(recipe):
            raise ValueError(
                f"{out} holds a training of another recipe ({earlier['recipe']['name']}); allowed: "
                "the same recipe, or another --out"
            )
        self.tokenizer = self._tokenizer()
        self.config = _model_config(recipe, self.tokenizer)
        torch.manual_seed(self.settings.seed)
        self.raw = build_transformer(self.config).to(self.accelerator.device)
        self.optimizer = _optimizer(self.raw, self.settings.weight_decay, self.settings.betas)
        if earlier is not None:
            self.progress |= load_state(self.folder, self.raw, self.optimizer)
        self.network, self.prepared = self.accelerator.prepare(self.raw, self.optimizer)
        self.last_state = time.monotonic()

    def run(self) -> Path:
        settings, batches = self.settings, self._batches()
        bar = tqdm(
            total=settings.steps, initial=self.progress["step"], desc=self.recipe.name,
            disable=not self.main, mininterval=1.0, smoothing=0.05,
        )  # fmt: skip
        places = batches.starting_at(self.progress["epoch"], self.progress["index"])
        tokens, started = 0, time.monotonic()
        while self.progress["step"] < settings.steps:
            epoch, index, rows = next(places)
            loss, norm, count = self._step(rows)
            tokens += count
            now = time.monotonic()
            self.progress["seconds"] += now - started
            started = now
            self.progress |= {
                "step": self.progress["step"] + 1,
                "epoch": epoch,
                "index": index + 1,
                "tokens": self.progress.get("tokens", 0) + count,
            }
            bar.update()
            bar.set_postfix(loss=f"{loss:.3f}", epoch=epoch, refresh=False)
            self._report(loss, norm)
        bar.close()
        return self._finish()

    def _step(self, rows: list[list[int]]) -> tuple[float, float, int]:
        """One update from one global batch: (nats a token, gradient norm, tokens)."""
        step, rank = self.progress["step"], self.accelerator.process_index
        n_processes = self.accelerator.num_processes
        total = sum(len(row) - 1 for row in rows)
        own = rows[rank::n_processes]
        weight = 1.0 if own else 0.0  # more processes than rows: join in with nothing
        # Dropout depends on the step and the process alone, so that resuming needs no stored state.
        torch.manual_seed(hash((self.settings.seed, step, rank)) % 2**63)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate_at(step)
        self.network.train()
        inputs, targets = collate(own or rows[:1], self.tokenizer.padding_id)
        with self.accelerator.autocast():
            logits = self.network(inputs.to(self.accelerator.device))
        nats = _nats(logits, targets.to(logits.device), self.tokenizer.padding_id) * weight
        # Processes average their gradients; this makes the average that of the global batch.
        self.accelerator.backward(nats * n_processes / total)
        norm = self.accelerator.clip_grad_norm_(self.network.parameters(), self.settings.clip_norm)
        self.prepared.step()
        self.prepared.zero_grad()
        all_nats = self.accelerator.reduce(nats.detach(), reduction="sum")
        loss = float(all_nats) / total
        if not math.isfinite(loss):
            raise ValueError(f"the loss became {loss} at step {step}; lower learning_rate")
        return loss, float(norm), total

    def _report(self, loss: float, norm: float) -> None:
        step, settings = self.progress["step"], self.settings
        last = step == settings.steps
        if self.main:
            entry = {"step": step, "loss": loss, "norm": norm, "seconds": self.progress["seconds"]}
            entry["learning_rate"] = settings.learning_rate_at(step - 1)
            if step % settings.validate_every == 0 or last:
                entry |= self._validate()
            self._log(entry)
            if step % settings.save_every == 0 or last:
                saved = self.progress | {"recipe": _identity(self.recipe)}
                save_state(self.folder, self.raw, self.optimizer, saved)
        self.accelerator.wait_for_everyone()

    def _validate(self) -> dict[str, float]:
        self.raw.eval()
        documents = self.texts.valid[: self.settings.validation_documents]
        score = self._score(documents)
        model = self._model()
        for prompt in self.settings.sample_prompts:
            run = model.generate(
                prompt, max_new_tokens=SAMPLE_TOKENS, temperature=0.8, top_k=40,
                seed=self.settings.seed,
            )  # fmt: skip
            tqdm.write(f"  | {run.text!r}")
        tqdm.write(
            f"step {self.progress['step']}: validation {score.loss:.4f} nats a token, "
            f"{score.bits_per_byte:.4f} bits a byte"
        )
        self.raw.train()
        return {"valid_loss": score.loss, "valid_bits_per_byte": score.bits_per_byte}

    def _finish(self) -> Path:
        if self.main:
            self.raw.eval()
            scores = {
                "valid": self._score(self.texts.valid),
                "train": self._score(self.texts.train[: len(self.texts.valid)]),
            }
            metadata = {
                "recipe": self.recipe.to_dict(),
                "seconds": round(self.progress["seconds"]),
                "tokens": self.progress["tokens"],
                "hardware": _hardware(self.accelerator),
                "scores": {name: _numbers(score) for name, score in scores.items()},
                "curve": write_curve(self.folder),
            }
            checkpoint.save(self.out, self.raw, self.config, self.tokenizer, metadata=metadata)
            write_card(self.out, metadata, self.config)
        self.accelerator.wait_for_everyone()
        self.accelerator.end_training()
        return self.out

    def _score(self, documents: list[str]) -> Score:
        assert isinstance(self.raw, DecoderOnly)
        return score_documents(self.raw, self.tokenizer, documents)

    def _model(self) -> Model:
        return Model(
            name=self.recipe.name, config=self.config, tokenizer=self.tokenizer, network=self.raw
        )

    def _batches(self) -> Batches:
        return Batches(
            encode_documents(self.tokenizer, self.texts.train),
            max_len=self.config.max_len,
            batch_tokens=self.settings.batch_tokens,
            seed=self.settings.seed,
        )

    def _tokenizer(self) -> Tokenizer:
        """Trained once, by the main process; the file serves resumed and other processes."""
        path = self.folder / "tokenizer.json"
        if self.main and not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            Tokenizer.train(self.texts.train, self.recipe.vocab_size).save(path)
        self.accelerator.wait_for_everyone()
        return Tokenizer.load(path)

    def _log(self, entry: dict[str, float]) -> None:
        mode = "w" if entry["step"] == 1 else "a"
        with (self.folder / "log.jsonl").open(mode, encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _model_config(recipe: Recipe, tokenizer: Tokenizer) -> ModelConfig:
    changes = {name: value for name, value in recipe.model.items() if name != "preset"}
    return preset(recipe.model["preset"], vocab_size=tokenizer.vocab_size, **changes)


def _identity(recipe: Recipe) -> dict[str, Any]:
    """What must be equal for a training to go on; its length may change."""
    values: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    values.pop("card")
    for name in ("steps", "decay_from", "validate_every", "save_every", "sample_prompts"):
        values["settings"].pop(name)
    return values


def _optimizer(
    network: nn.Module, weight_decay: float, betas: tuple[float, float]
) -> torch.optim.AdamW:
    """AdamW; weights decay in the matrices between activations, not in embeddings and norms."""
    embeddings = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    matrices: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for parameter in network.parameters():
        decays = parameter.dim() >= 2 and id(parameter) not in embeddings
        (matrices if decays else others).append(parameter)
    groups = [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, betas=betas, fused=True)


def _precision(wanted: str, cpu: bool) -> str:
    if wanted != "auto":
        return wanted
    if torch.cuda.is_available() and not cpu:
        return "bf16" if torch.cuda.is_bf16_supported() else "float32"
    return "bf16" if torch.cpu._is_avx512_bf16_supported() else "float32"


def _hardware(accelerator: Accelerator) -> str:
    """What it ran on, for the card."""
    if accelerator.device.type == "cuda":
        return f"{accelerator.num_processes} x {torch.cuda.get_device_name()}"
    return f"{accelerator.num_processes} x {torch.get_num_threads()} CPU threads"


def _nats(logits: Tensor, targets: Tensor, padding_id: int) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1).float(), targets.flatten(), ignore_index=padding_id, reduction="sum"
    )


def _numbers(score: Score) -> dict[str, float]:
    derived = {
        "loss": score.loss,
        "perplexity": score.perplexity,
        "bits_per_byte": score.bits_per_byte,
    }
    return {name: round(value, 5) for name, value in (asdict(score) | derived).items()}
