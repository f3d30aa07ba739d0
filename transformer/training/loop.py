"""The training loop, on Hugging Face Accelerate: one process or many, CPU or GPU, same result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from tqdm import tqdm

from transformer import checkpoint
from transformer.checks import shortened
from transformer.inference.model import Model
from transformer.model.transformer import build_transformer
from transformer.tokenizer import Tokenizer
from transformer.tokenizer.foreign import TheirTokenizer
from transformer.training.card import begin_session, card_text, metadata_of, phases_of
from transformer.training.data import Batches, check_folder
from transformer.training.recipe import Recipe, whole
from transformer.training.state import (
    STATE,
    append_log,
    first_weights,
    identity,
    interrupts,
    keep_log_until,
    load_state,
    may_go_on,
    n_processes,
    precision,
    save_state,
    write_curve,
)
from transformer.training.tasks import Task
from transformer.training.updates import Batch, Update, make_optimizer, updates


def train(
    recipe: Recipe,
    task: Task,
    out: Path,
    *,
    cpu: bool = False,
    start: Model | None = None,
    n_checkpoints: int = 0,
) -> Path:
    """Train the recipe's model on the task's text, or resume a training run that was killed.

    Writes out/ (a checkpoint that `transformer.load` reads, at each save and at the end) and
    out/training/ (state, log.jsonl, loss.html). start: a model whose weights and tokenizer a new
    training begins with. n_checkpoints: how many to keep in out/training/checkpoints/, from before
    the first step to the last, see `checkpoint_steps`. Returns out.
    Raises ValueError if out holds a training of another recipe or on other text, KeyboardInterrupt
    after Ctrl-C, when the step under way has ended and all is saved.
    """
    return _Training(recipe, task, out, cpu, start, n_checkpoints).run()


def checkpoint_steps(n_steps: int, n_checkpoints: int) -> list[int]:
    """The steps of the checkpoints: 0, then FIRST_CHECKPOINT to n_steps, each later by the same
    factor. Fewer if steps coincide; none for 0."""
    if n_checkpoints < 1:
        return []
    ratio = (n_steps / FIRST_CHECKPOINT) ** (1 / max(1, n_checkpoints - 2))
    later = (round(FIRST_CHECKPOINT * ratio**place) for place in range(n_checkpoints - 1))
    return sorted({0, *(min(n_steps, step) for step in later)})


FIRST_CHECKPOINT = 10  # after step 0: by then only how often each token occurs has been learned


class _Training:
    def __init__(
        self, recipe: Recipe, task: Task, out: Path, cpu: bool, start: Model | None, n_kept: int = 0
    ) -> None:
        self.recipe, self.settings, self.task, self.out = recipe, recipe.settings, task, out
        self.folder = out / STATE
        whole(0).check("the number of checkpoints", n_kept)
        self.checkpoints = checkpoint_steps(self.settings.steps, n_kept)
        # With several processes on the CPU, Accelerate needs cpu=True; otherwise each would train
        # alone, in the same folder.
        cpu = cpu or (n_processes() > 1 and not torch.cuda.is_available())
        self.dtype = precision(self.settings.precision, cpu)
        # `updates` uses autocast itself: Accelerate's would copy all logits to float32.
        self.accelerator = Accelerator(mixed_precision="no", cpu=cpu)
        if self.accelerator.num_processes != n_processes():
            raise ValueError(
                f"{n_processes()} processes must train together; got "
                f"{self.accelerator.num_processes}; allowed: --cpu, or a GPU for each"
            )
        self.main = self.accelerator.is_main_process
        self.progress: dict[str, Any] = {
            "step": 0, "epoch": 0, "index": 0, "seconds": 0.0, "tokens": 0,
            "text": task.fingerprint(), "before": phases_of(start),
        }  # fmt: skip
        check_folder("--out", out)
        earlier = may_go_on(recipe, self.progress["text"], out, start, masks=task.masks)
        if start is not None and isinstance(start.tokenizer, TheirTokenizer):
            raise ValueError(
                f"--from needs a model of this project; {start.name} has the tokenizer of another"
            )
        if start is not None and not earlier:
            task.check(start.tokenizer)
        self.tokenizer = self._tokenizer(start, earlier)
        self.config = recipe.model_config(self.tokenizer.vocab_size)
        torch.manual_seed(self.settings.seed)
        try:
            self.raw = build_transformer(self.config).to(self.accelerator.device)
        except (RuntimeError, MemoryError) as error:  # the allocator's
            raise ValueError(f"the network does not fit into memory: {shortened(error)}") from error
        self.network = self.accelerator.prepare(self.raw)  # may move the weights: optimizer later
        self.optimizer = make_optimizer(self.raw, self.settings, self.dtype)
        if start is not None:
            self.raw.load_state_dict(first_weights(start, self.raw))
        if earlier:
            self.progress |= load_state(self.folder, self.raw, self.optimizer)
        kind = torch.cuda.get_device_name() if self.accelerator.device.type == "cuda" else None
        machine = kind or f"{torch.get_num_threads()} CPU threads"
        machine = f"{self.accelerator.num_processes} x {machine}"
        begin_session(self.progress, self.settings.steps, machine, str(self.dtype).split(".")[1])
        self.network.train()
        self.stopped = False

    def run(self) -> Path:
        settings = self.settings
        self.task.encode(self.tokenizer, self.config)
        n_too_long = self.task.counts().get("valid_too_long")
        if self.main and n_too_long:
            print(f"validation leaves out {n_too_long:,} pairs that are too long (max_len)")
        if self.main:
            self._check_prompts()
        batches = Batches(self.task.rows, batch_tokens=settings.batch_tokens, seed=settings.seed)
        if self.main:
            keep_log_until(self.folder, self.progress["step"])
            self._keep_checkpoint()
        bar = tqdm(
            total=settings.steps, initial=self.progress["step"], desc=self.recipe.name,
            disable=not self.main, mininterval=1.0, smoothing=0.05,
        )  # fmt: skip
        places = batches.starting_at(self.progress["epoch"], self.progress["index"])
        started = time.monotonic()
        with (
            bar,
            interrupts(several=n_processes() > 1) as interrupted,
        ):  # an error is said below the bar
            for update in self._updates(places, interrupted.is_set):
                now = time.monotonic()
                self.progress |= {
                    "step": update.step,
                    "epoch": update.epoch,
                    "index": update.index + 1,
                    "tokens": self.progress["tokens"] + update.tokens,
                    "seconds": self.progress["seconds"] + now - started,
                }
                started = now
                bar.update()
                bar.set_postfix(loss=f"{update.loss:.3f}", epoch=update.epoch, refresh=False)
                self.stopped = update.stopping
                self._report(update.loss, update.norm)
        if self.progress["step"] < settings.steps:
            message = (
                f"stopped at step {self.progress['step']:,} of {settings.steps:,}; {self.out} can "
                "be used, and the same command goes on with it"
            )
            raise KeyboardInterrupt(message if self.main else "")
        return self._finish()

    def _updates(self, places: Iterator[Batch], stopping: Callable[[], bool]) -> Iterator[Update]:
        rank = self.accelerator.process_index

        def seed(step: int) -> None:
            """torch.manual_seed, which on a CPU remembers every call until a GPU is first used.
            Dropout depends on the step and the process alone: resuming needs no stored state."""
            drawn = hash((self.settings.seed, step, rank)) % 2**63
            torch.default_generator.manual_seed(drawn)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(drawn)

        return updates(
            self.network,
            self.optimizer,
            self.settings,
            places,
            self.tokenizer.padding_id,
            dtype=self.dtype,
            first=self.progress["step"],
            rank=rank,
            n_processes=self.accelerator.num_processes,
            backward=self.accelerator.backward,
            add=partial(self.accelerator.reduce, reduction="sum"),
            before=seed,
            stopping=stopping,
        )

    def _report(self, loss: float, norm: float) -> None:
        step, settings = self.progress["step"], self.settings
        last = step == settings.steps
        if self.main:
            entry = {"step": step, "loss": loss, "norm": norm, "seconds": self.progress["seconds"]}
            entry["learning_rate"] = settings.learning_rate_at(step - 1)
            if step % settings.validate_every == 0 or last:
                entry |= self._validate()
            append_log(self.folder, entry)
            self._keep_checkpoint()
            if step % settings.save_every == 0 or last or self.stopped:
                saved = self.progress | {"recipe": identity(self.recipe)}
                save_state(self.folder, self.raw, self.optimizer, saved)
                self._write(self.out)
        self.accelerator.wait_for_everyone()

    def _keep_checkpoint(self) -> None:
        """Keep a separate checkpoint, if this step is one of `checkpoint_steps`."""
        step = self.progress["step"]
        folder = self.folder / "checkpoints" / f"{step:06}"
        if step in self.checkpoints and not (folder / "config.json").is_file():
            self._validate()
            self._write(folder)

    def _check_prompts(self) -> None:
        """Raise ValueError for one that cannot be read: before the first step, not at the first
        validation."""
        self.raw.eval()
        for prompt in self.settings.sample_prompts:
            try:
                self.task.sample(self._model(), prompt, self.settings.seed, most=1)
            except ValueError as error:
                raise ValueError(f"sample_prompts, {shortened(prompt)}: {error}") from error
        self.network.train()

    def _validate(self) -> dict[str, float]:
        self.raw.eval()
        model = self._model()
        score = self.task.scores(model, self.settings.validation_examples)["valid"]
        scores = {name: score[name] for name in self.task.measures}
        where = {"step": self.progress["step"], "examples": int(score["documents"])}
        self.progress["validation"] = where | scores
        for prompt in self.settings.sample_prompts:
            tqdm.write(f"  | {self.task.sample(model, prompt, self.settings.seed)!r}")
        words = (f"{scores[name]:.4f} {unit}" for name, unit in self.task.measures.items())
        tqdm.write(f"step {self.progress['step']}: validation {', '.join(words)}")
        self.network.train()
        return {f"valid_{name}": value for name, value in scores.items()}

    def _finish(self) -> Path:
        if self.main:
            self.raw.eval()
            scores = self.task.scores(self._model())
            self._write(self.out, scores=scores, curve=write_curve(self.folder))
        self.accelerator.wait_for_everyone()
        self.accelerator.end_training()
        return self.out

    def _write(self, folder: Path, **more: Any) -> None:
        """Write a checkpoint of the current weights. more: added to its metadata."""
        metadata = metadata_of(self.recipe, self.config, self.progress, self.task.counts()) | more
        card = card_text(metadata, self.config, self.tokenizer.kind)
        checkpoint.save(
                folder, self.raw, self.config, self.tokenizer, dtype="float16", metadata=metadata,
                card=card,
            )  # fmt: skip

    def _model(self) -> Model:
        return Model(
            name=self.recipe.name,
            config=self.config,
            tokenizer=self.tokenizer,
            network=self.raw,
            metadata={"source_text": self.recipe.data.get("source_text")},
        )

    def _tokenizer(self, start: Model | None, earlier: bool) -> Tokenizer:
        """Trained once, by the main process; the file serves resumed and other processes."""
        path = self.folder / "tokenizer.json"
        if self.main and not (earlier and path.is_file()):
            self.folder.mkdir(parents=True, exist_ok=True)
            if start is not None:
                tokenizer = start.tokenizer
            else:
                task = self.task
                tokenizer = self.recipe.tokenizer_of(task.texts(task.train), task.texts(task.valid))
            (tokenizer.with_mask() if self.task.masks else tokenizer).save(path)
        self.accelerator.wait_for_everyone()
        return Tokenizer.load(path)
