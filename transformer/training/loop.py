"""The training loop, on Hugging Face Accelerate: one process or many, CPU or GPU, same result."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch.nn.utils import clip_grad_norm_
from tqdm import tqdm

from transformer import checkpoint
from transformer.inference.model import Model
from transformer.model.transformer import build_transformer
from transformer.text import Tokenizer
from transformer.training.card import write_card
from transformer.training.curve import write_curve
from transformer.training.data import Batches
from transformer.training.recipe import Recipe
from transformer.training.setup import (
    hardware,
    identity,
    make_optimizer,
    model_config,
    precision,
    start_from,
)
from transformer.training.side_by_side import updated_by
from transformer.training.state import load_state, read_progress, save_state
from transformer.training.tasks import Row, Task


def train(
    recipe: Recipe, task: Task, out: Path, *, cpu: bool = False, start: Model | None = None
) -> Path:
    """Fit the recipe's model to the task's text, or go on where a killed training stopped.

    Writes out/ (a checkpoint that `transformer.load` reads) and out/training/ (state, log.jsonl,
    loss.html). start: a model whose weights and tokenizer a new training begins with. Returns out.
    Raises ValueError if out holds a training of another recipe.
    """
    return _Training(recipe, task, out, cpu=cpu, start=start).run()


class _Training:
    def __init__(
        self, recipe: Recipe, task: Task, out: Path, *, cpu: bool, start: Model | None
    ) -> None:
        self.recipe, self.settings, self.task, self.out = recipe, recipe.settings, task, out
        self.folder = out / "training"
        self.dtype = precision(self.settings.precision, cpu)
        # Autocast is our own: Accelerate's would copy all logits into float32.
        self.accelerator = Accelerator(mixed_precision="no", cpu=cpu)
        self.main = self.accelerator.is_main_process
        self.progress: dict[str, Any] = {"step": 0, "epoch": 0, "index": 0, "seconds": 0.0}
        earlier = read_progress(self.folder)
        if earlier is not None and earlier["recipe"] != identity(recipe):
            raise ValueError(
                f"{out} holds a training of another recipe ({earlier['recipe']['name']}); allowed: "
                "the same recipe, or another --out"
            )
        self.tokenizer = self._tokenizer(start)
        self.config = model_config(recipe, self.tokenizer)
        torch.manual_seed(self.settings.seed)
        self.raw = build_transformer(self.config).to(self.accelerator.device)
        self.network = self.accelerator.prepare(self.raw)  # may move the weights: optimizer later
        self.optimizer = make_optimizer(self.raw, self.settings, self.dtype)
        if start is not None:
            start_from(self.raw, start)
        if earlier is not None:
            self.progress |= load_state(self.folder, self.raw, self.optimizer)
        self.network.train()
        self.updated = updated_by(self.optimizer)

    def run(self) -> Path:
        settings, batches = self.settings, self._batches()
        bar = tqdm(
            total=settings.steps, initial=self.progress["step"], desc=self.recipe.name,
            disable=not self.main, mininterval=1.0, smoothing=0.05,
        )  # fmt: skip
        places = batches.starting_at(self.progress["epoch"], self.progress["index"])
        started = time.monotonic()
        while self.progress["step"] < settings.steps:
            epoch, index, rows = next(places)
            loss, norm, count = self._step(rows)
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

    def _step(self, rows: list[Row]) -> tuple[float, float, int]:
        """One update from one global batch: (nats a token, gradient norm, tokens)."""
        step, rank = self.progress["step"], self.accelerator.process_index
        n_processes = self.accelerator.num_processes
        total = sum(map(self.task.count, rows))
        own = rows[rank::n_processes]
        weight = 1.0 if own else 0.0  # more processes than rows: join in with nothing
        # Dropout depends on the step and the process alone, so that resuming needs no stored state.
        _seed(hash((self.settings.seed, step, rank)) % 2**63)
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate_at(step)
        device, narrow = self.accelerator.device, self.dtype != torch.float32
        with torch.autocast(device.type, self.dtype, enabled=narrow):
            nats = self.task.nats(self.network, own or rows[:1], device) * weight
        # Processes average their gradients; this makes the average that of the global batch.
        self.accelerator.backward(nats * n_processes / total)
        norm = clip_grad_norm_(self.updated, self.settings.clip_norm)
        self.optimizer.step()  # as it is: Accelerate's own wrapper took twice as long around it
        self.optimizer.zero_grad(set_to_none=False)
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
                saved = self.progress | {"recipe": identity(self.recipe)}
                save_state(self.folder, self.raw, self.optimizer, saved)
        self.accelerator.wait_for_everyone()

    def _validate(self) -> dict[str, float]:
        self.raw.eval()
        model = self._model()
        score = self.task.scores(model, self.settings.validation_examples)["valid"]
        for prompt in self.settings.sample_prompts:
            tqdm.write(f"  | {self.task.sample(model, prompt, self.settings.seed)!r}")
        tqdm.write(
            f"step {self.progress['step']}: validation {score['loss']:.4f} nats a token, "
            f"{score['bits_per_byte']:.4f} bits a byte"
        )
        self.network.train()
        return {"valid_loss": score["loss"], "valid_bits_per_byte": score["bits_per_byte"]}

    def _finish(self) -> Path:
        if self.main:
            self.raw.eval()
            metadata = {
                "recipe": self.recipe.to_dict(),
                "seconds": round(self.progress["seconds"]),
                "tokens": self.progress["tokens"],
                "hardware": hardware(self.accelerator),
                "scores": self.task.scores(self._model()),
                "curve": write_curve(self.folder),
            }
            checkpoint.save(self.out, self.raw, self.config, self.tokenizer, metadata=metadata)
            write_card(self.out, metadata, self.config)
        self.accelerator.wait_for_everyone()
        self.accelerator.end_training()
        return self.out

    def _model(self) -> Model:
        return Model(
            name=self.recipe.name, config=self.config, tokenizer=self.tokenizer, network=self.raw
        )

    def _batches(self) -> Batches[Row]:
        self.task.encode(self.tokenizer, self.config)
        return Batches(
            self.task.rows,
            self.task.width,
            batch_tokens=self.settings.batch_tokens,
            seed=self.settings.seed,
        )

    def _tokenizer(self, start: Model | None) -> Tokenizer:
        """Trained once, by the main process; the file serves resumed and other processes."""
        path = self.folder / "tokenizer.json"
        if self.main and not path.is_file():
            self.folder.mkdir(parents=True, exist_ok=True)
            if start is not None:
                start.tokenizer.save(path)
            else:
                Tokenizer.train(self.task.tokenizer_texts(), self.recipe.vocab_size).save(path)
        self.accelerator.wait_for_everyone()
        return Tokenizer.load(path)

    def _log(self, entry: dict[str, float]) -> None:
        mode = "w" if entry["step"] == 1 else "a"
        with (self.folder / "log.jsonl").open(mode, encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _seed(seed: int) -> None:
    """torch.manual_seed, which on a CPU alone remembers every call until a GPU is first used."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
