"""Load a model; generate, translate, search, trace and fill with it."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, overload

import torch
from numpy.typing import NDArray
from torch import Tensor

from transformer import checkpoint
from transformer.checks import (
    InvalidCall,
    check_choice,
    check_each,
    check_text,
    check_texts,
    check_whole,
    shortened,
)
from transformer.inference import model_html
from transformer.inference.decode_session import session_of
from transformer.inference.engines.compiled import AUTO, engine_of
from transformer.inference.fill import N_BEST, Filled, fill
from transformer.inference.generation import generate
from transformer.inference.loaded import LoadedModel, Prepared
from transformer.inference.prompts import (
    Conversation,
    Prompt,
    is_batch,
    request_for,
    requests_for,
)
from transformer.inference.request_hooks import check_places, hooks_for, hooks_for_rows
from transformer.inference.run_builder import batch_of, has_stopped, run_of, written
from transformer.inference.stream import Stream, search
from transformer.interventions.descriptions import Intervention
from transformer.model.hooks import HookLike, called
from transformer.model.weights import store_as
from transformer.runs.batch import Batch
from transformer.runs.request import Request, Settings
from transformer.runs.run import Run
from transformer.runs.steps import GenerationStep

MAX_SAMPLES, MAX_LEN = 10_000, 2**31 - 1
# What an engine reads of weights in the cache while PyTorch begins a step. Texts that together read
# no more are generated one after the other.
READ_BYTES = 64 << 20
DTYPES = (AUTO, "float32", "bfloat16", "float16", "float64")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Model(LoadedModel):
    """A trained network with its tokenizer; see LoadedModel for its fields."""

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows: its parts with their shapes and parameters."""
        return model_html.html(self)

    @property
    def weight_bytes(self) -> int:
        """Memory of the weights, the engine's copies included."""
        tensors = [*self.network.parameters(), *(self.engine.weights if self.engine else ())]
        storages = {x.untyped_storage().data_ptr(): x.untyped_storage() for x in tensors}
        return sum(storage.nbytes() for storage in storages.values())

    def to(self, device: str | torch.device) -> Model:
        """A copy of the model on another device, with an engine for it.

        Raises ValueError for an unknown device.
        """
        wanted = device_of(device)
        if wanted == self.device:
            return self
        network = copy.deepcopy(self.network).to(wanted)
        engine = engine_of(network) if self.engine is not None else None
        return dataclasses.replace(self, network=network, engine=engine)

    def save(
        self, folder: str | Path, *, dtype: str | None = None, card: str | None = None
    ) -> None:
        """Write a checkpoint folder that `load` reads, see `checkpoint.save`.

        dtype: "float32", "float16" or "bfloat16"; None = the smallest that loses nothing.
        card: the model card's text; None = the card it was loaded with.
        """
        checkpoint.save(
            folder,
            self.network,
            self.config,
            self.tokenizer,
            dtype=dtype,
            card=card if card is not None else self.card or None,
            metadata=self.metadata,
            sample=self.sample,
            heads=self.heads,
            neurons=self.neurons,
        )

    def export(self, folder: str | Path) -> None:
        """Write a folder that transformers opens, see `checkpoint.export`."""
        checkpoint.export(folder, self.network, self.config, self.tokenizer)

    def stream(
        self,
        text: Prompt | None = None,
        *,
        messages: Conversation | None = None,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> Stream:
        """Generate token by token; `settings` are Request's fields.

        text: a text, or its ids with all special tokens: a list, an array or a tensor (T,).
        messages: a conversation instead of a text, [{"role": "user", "content": "Hello"}], turned
        into text by the model's own chat template; if the last message is the assistant's, it is
        continued. hooks: see `model/hooks.py`; they alter every pass, after the interventions.
        Raises ValueError for a model without a chat template.
        """
        return self._stream(request_for(self, text, settings, messages=messages), hooks)

    def _stream(self, request: Request, hooks: Sequence[HookLike]) -> Stream:
        self.check(request)
        if request.beams > 1:
            _check_no_hooks(hooks)
        return Stream(self, request, hooks)

    @overload
    def generate(
        self, text: str, *, hooks: Sequence[HookLike] = (), **settings: Unpack[Settings]
    ) -> Run: ...

    @overload
    def generate(
        self,
        *,
        messages: Conversation,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> Run: ...

    @overload
    def generate(
        self,
        *,
        messages: Sequence[Conversation],
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> list[Run]: ...

    @overload
    def generate(
        self,
        text: list[str] | Sequence[Sequence[int]],
        *,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> list[Run]: ...

    @overload
    def generate(
        self, text: Sequence[int], *, hooks: Sequence[HookLike] = (), **settings: Unpack[Settings]
    ) -> Run: ...

    @overload
    def generate(
        self,
        text: Tensor | NDArray[Any] | Mapping[str, Any],
        *,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> Any: ...

    def generate(
        self,
        text: Any = None,
        *,
        messages: Any = None,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> Run | list[Run]:
        """Generate to the end; `settings` are Request's fields.

        text, messages, hooks: see `stream`; several texts, as a list or a tensor (B, T), give a
        list of runs, as `generate_batch` does. Raises ValueError for a seed if nothing is drawn.
        """
        if is_batch(text, messages):
            seed = settings.pop("seed", 0)
            requests = requests_for(self, text, {**settings, "seed": seed}, messages=messages)
            _check_draws(requests[0], seed)
            return self._generate_all(requests, hooks)
        request = request_for(self, text, settings, messages=messages)
        _check_draws(request, settings.get("seed", 0))
        return self._stream(request, hooks).finish()

    def samples(
        self,
        text: Prompt | None = None,
        n: int = 1,
        *,
        messages: Conversation | None = None,
        **settings: Unpack[Settings],
    ) -> list[Run]:
        """n runs of one text, generated at once, with seeds that count up from the request's.

        text, messages: see `stream`. Raises ValueError without a temperature, since all would be
        the same.
        """
        n = check_whole("n", n, 1, MAX_SAMPLES)
        first = request_for(self, text, settings, messages=messages)
        _check_draws(first, first.seed, n > 1)
        seeds = range(first.seed, first.seed + n)
        return self._generate_all([dataclasses.replace(first, seed=seed) for seed in seeds], ())

    def generate_batch(
        self,
        texts: Sequence[str],
        seeds: Sequence[int] | None = None,
        *,
        hooks: Sequence[HookLike] = (),
        **settings: Unpack[Settings],
    ) -> list[Run]:
        """Generate for several texts at once; the runs are the same as one by one.

        seeds: one per text; by default all use the request's seed. hooks: see `stream`. Raises
        ValueError that names the text at fault.
        """
        shared = settings.get("seed", 0)
        requests = requests_for(self, texts, settings)
        if seeds is not None:
            if len(seeds) != len(requests):
                raise ValueError(
                    f"one seed a text is needed; got {len(seeds)} for {len(requests)} texts"
                )
            requests = [
                dataclasses.replace(request, seed=seed)
                for request, seed in zip(requests, seeds, strict=True)
            ]
        _check_draws(requests[0], shared)
        return self._generate_all(requests, hooks)

    def _generate_all(self, requests: Sequence[Request], hooks: Sequence[HookLike]) -> list[Run]:
        """Runs of requests that differ in their text and seed alone."""
        first = requests[0]
        self.check(first)
        model = self.in_languages(first)
        if first.beams > 1:
            _check_no_hooks(hooks)
            return search(model, requests)
        if first.interventions or first.forced_tokens or hooks:
            return [Stream(model, request, hooks).finish() for request in requests]
        prepared: list[Prepared] = []
        check_each(requests, lambda request: prepared.append(model.prepare_request(request)))
        engine = model.engine
        if engine is not None and len(requests) * engine.n_bytes <= READ_BYTES:
            return [Stream(model, request).finish() for request in requests]
        return [
            run_of(model, request, row, written(model, row, steps), ended=True)
            for request, row, steps in zip(
                requests, prepared, model._steps(requests, prepared), strict=True
            )
        ]

    def fill(self, text: str, n_best: int = N_BEST) -> Filled:
        """Predict each [MASK] of a text, see `inference.fill.fill`."""
        return fill(self, text, n_best)

    @overload
    def trace(
        self,
        texts: str | Sequence[int],
        interventions: Sequence[Intervention] = (),
        *,
        text_pair: str | None = None,
        hooks: Sequence[HookLike] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Run: ...

    @overload
    def trace(
        self,
        texts: list[str] | tuple[str, ...] | Sequence[Sequence[int]],
        interventions: Sequence[Intervention] = (),
        *,
        text_pair: Sequence[str] | None = None,
        hooks: Sequence[HookLike] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Batch: ...

    @overload
    def trace(
        self,
        texts: None = None,
        interventions: Sequence[Intervention] = (),
        *,
        messages: Conversation,
        hooks: Sequence[HookLike] = (),
    ) -> Run: ...

    @overload
    def trace(
        self,
        texts: None = None,
        interventions: Sequence[Intervention] = (),
        *,
        messages: Sequence[Conversation],
        hooks: Sequence[HookLike] = (),
    ) -> Batch: ...

    @overload
    def trace(
        self,
        texts: Tensor | NDArray[Any] | Mapping[str, Any],
        interventions: Sequence[Intervention] = (),
        *,
        hooks: Sequence[HookLike] = (),
    ) -> Any: ...

    def trace(
        self,
        texts: Any = None,
        interventions: Sequence[Intervention] = (),
        *,
        messages: Any = None,
        text_pair: Any = None,
        hooks: Sequence[HookLike] = (),
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> Run | Batch:
        """Read without generating: one text gives a Run, several give a padded Batch.

        texts, messages: see `stream`; also what a tokenizer returns: input_ids, with their
        attention_mask and token_type_ids. A list of texts or a tensor (B, T) means several.
        text_pair: the second text of a pair, for an encoder; a list for several. hooks: see
        `model/hooks.py`; they come after the interventions. source_language, target_language: see
        `Request`. Raises ValueError for interventions on parts that the network lacks.
        """
        own = called(hooks, self.network.points)
        settings: Settings = {
            "max_new_tokens": 0, "interventions": interventions,
            "source_language": source_language, "target_language": target_language,
        }  # fmt: skip
        if not is_batch(texts, messages):
            request = request_for(self, texts, settings, messages=messages, text_pair=text_pair)
            model = self.in_languages(request)
            prepared = model._to_trace(request)
            all_hooks = (*hooks_for(model, request, prepared), *own)
            check_places(model, request, prepared)
            session = session_of(model.engine, all_hooks)
            return run_of(
                model, request, prepared, [], ended=False, hooks=all_hooks, session=session
            )
        requests = requests_for(self, texts, settings, messages=messages, text_pair=text_pair)
        model = self.in_languages(requests[0])
        rows: list[Prepared] = []
        check_each(requests, lambda request: rows.append(model._to_trace(request)))
        read = [request.text for request in requests]
        hooks_of_all = (*hooks_for_rows(model, requests[0], read, rows), *own)
        return batch_of(model, read, requests[0], rows, hooks=hooks_of_all)

    __call__ = trace

    def _to_trace(self, request: Request) -> Prepared:
        """A prompt's ids, all of which the network reads at once; else raise ValueError."""
        prepared, most = self.prepare_request(request), self.config.output_max_len
        if len(prepared.ids) > most:
            raise InvalidCall(
                "too_long",
                "the text is {n_tokens} tokens long; {name} reads at most {most} at once; allowed: "
                "a shorter text, or load(..., max_len={n_tokens}) where its weights allow it",
                n_tokens=len(prepared.ids),
                name=self.name,
                most=most,
            )
        return prepared

    def translate_batch(
        self,
        texts: Sequence[str],
        *,
        trace_interventions: Sequence[Intervention] = (),
        **settings: Unpack[Settings],
    ) -> Batch:
        """Translate several texts, then read sources and translations as one padded Batch.

        trace_interventions: applied to that reading; the translations are made with `settings`.
        Raises ValueError for a model that is not an encoder-decoder.
        """
        self.check_translator()
        check_texts(texts)
        runs = self.generate_batch(texts, **settings)
        rows = [
            Prepared(list(run.source_ids), list(run.ids[: self.config.output_max_len]))
            for run in runs
        ]
        request = runs[0].request.greedy(max_new_tokens=0, interventions=trace_interventions)
        hooks = hooks_for_rows(self, request, texts, rows)
        return batch_of(self, texts, request, rows, [run.text for run in runs], hooks)

    def translate(self, text: str, **settings: Unpack[Settings]) -> str:
        """Translate a text sentence by sentence, as in training.

        `settings` are Request's fields. Raises ValueError for a model that is not an
        encoder-decoder.
        """
        self.check_translator()
        check_text(text)
        runs = self.generate_batch(self.reader.sentences(text), **settings)
        return " ".join(run.text for run in runs)

    def _steps(
        self, requests: Sequence[Request], prepared: Sequence[Prepared]
    ) -> list[list[GenerationStep]]:
        rows: list[list[GenerationStep]] = [[] for _ in prepared]
        sources = [row.source for row in prepared]
        for steps in generate(
            self.generator_network,
            [row.ids for row in prepared],
            sources=sources if all(sources) else None,
            max_new_tokens=requests[0].max_new_tokens,
            end_ids=self.tokenizer.end_ids,
            forced_end=self.tokenizer.forced_end,
            sampling=requests[0].sampling,
            seeds=[request.seed for request in requests],
            text_of=self.tokenizer.text,
            repetition_penalty=requests[0].repetition_penalty,
            is_stopped=lambda tokens: has_stopped(self, requests[0], tokens),
        ):
            for row, step in zip(rows, steps, strict=True):
                if step is not None:
                    row.append(step)
        return rows

    def check_translator(self) -> None:
        """Raise ValueError unless the model is an encoder-decoder."""
        if self.config.family != "encoder-decoder":
            raise ValueError(
                f"translating needs an encoder-decoder; {self.name} is {self.config.family}"
            )
        self.network.check_predicts()


def _check_draws(request: Request, seed: int, needed: bool = False) -> None:
    """Raise ValueError if a seed has nothing to draw, or draws are needed."""
    filters = (request.temperature, request.top_k, request.top_p, request.min_p)
    if (seed or needed) and all(setting is None for setting in filters):
        raise ValueError(
            "seeds and samples need a temperature, such as temperature=1; without, the likeliest "
            "token is always taken"
        )


def _check_no_hooks(hooks: Sequence[HookLike]) -> None:
    if hooks:
        raise ValueError("a beam search takes no hooks; allowed: beams=1")


def device_of(device: str | torch.device) -> torch.device:
    """The device that a name stands for; "auto" is a GPU if there is one.

    Raises ValueError that lists the devices if this machine lacks it.
    """
    n_gpus = torch.cuda.device_count()
    if device == "auto":
        device = "cuda" if n_gpus else "cpu"
    allowed = ["auto", "cpu", *(["cuda"] if n_gpus else []), *(f"cuda:{n}" for n in range(n_gpus))]
    try:
        parsed = torch.device(device)
    except (RuntimeError, TypeError):
        parsed = None
    if parsed is None or str(parsed) not in (*allowed, "cpu:0"):
        raise ValueError(f"device must be one of {allowed}; got {shortened(str(device))}")
    return parsed


def load(
    name_or_folder: str | Path,
    device: str | torch.device = "cpu",
    engine: str = AUTO,
    max_len: int = checkpoint.MAX_LEN,
    dtype: str | torch.dtype = AUTO,
) -> Model:
    """Load a model: a bundled one ("stories"), a folder of this or another project (GPT-2, Pythia,
    Llama, Mistral, Qwen, Gemma, BERT, Marian), or hub:OWNER/NAME[@REVISION].

    engine: what generates one text at a time, one of "auto", "compiled" and "network" (see
    `inference/engines/`). max_len: tokens that another project's network reads at once, if it could
    read more. dtype: of the weights, one of DTYPES; "auto" = as they are stored. The network
    computes in float32, or float64 if that is the dtype. Raises CheckpointError (a ValueError) for
    an unknown name or a damaged folder, ValueError for an unknown device, engine or dtype.
    """
    if not isinstance(name_or_folder, str | Path):
        raise ValueError(
            f"load takes a model's name or its folder; got {type(name_or_folder).__name__}; "
            "from_transformers(model, tokenizer) takes a network of transformers"
        )
    place, kind = device_of(device), _dtype_of(dtype)
    max_len = check_whole("max_len", max_len, 1, MAX_LEN)
    return _loaded(checkpoint.read(name_or_folder, max_len), place, engine, kind)


def from_transformers(
    model: Any,
    tokenizer: Any,
    device: str | torch.device = "cpu",
    engine: str = AUTO,
    max_len: int = checkpoint.MAX_LEN,
    dtype: str | torch.dtype = AUTO,
) -> Model:
    """Convert a network of transformers that is in memory, with its tokenizer; weights are copied.

    device, engine, max_len, dtype, errors: as in `load`.
    """
    if not all(hasattr(model, name) for name in ("config", "state_dict", "can_generate")):
        raise ValueError(
            "from_transformers takes a network of transformers and its tokenizer; got "
            f"{type(model).__name__}; load takes a model's name or its folder"
        )
    if not hasattr(tokenizer, "save_pretrained"):
        raise ValueError(
            "from_transformers needs the network's tokenizer, as AutoTokenizer opens it; got "
            f"{type(tokenizer).__name__}"
        )
    place, kind = device_of(device), _dtype_of(dtype)
    max_len = check_whole("max_len", max_len, 1, MAX_LEN)
    return _loaded(checkpoint.from_memory(model, tokenizer, max_len), place, engine, kind)


def _dtype_of(dtype: str | torch.dtype) -> torch.dtype | None:
    """The type with this name; None for "auto". Raises ValueError that lists the names."""
    name = str(dtype).removeprefix("torch.")
    check_choice("dtype", name, DTYPES)
    return None if name == AUTO else getattr(torch, name)


def _loaded(
    loaded: checkpoint.Checkpoint, device: torch.device, engine: str, dtype: torch.dtype | None
) -> Model:
    if dtype is not None:
        store_as(loaded.network, dtype)
    network = loaded.network.to(device)
    return Model(
        name=loaded.name,
        config=loaded.config,
        tokenizer=loaded.tokenizer,
        network=network,
        card=loaded.card,
        metadata=loaded.metadata,
        engine=engine_of(network, engine),
        sample=loaded.sample,
        heads=loaded.heads,
        neurons=loaded.neurons,
        cards=loaded.cards,
    )
