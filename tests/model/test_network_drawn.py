"""What holds for a network of any configuration: traced, cached, padded, saved, read through hooks.

In double precision, so that two ways to the same numbers differ by rounding alone.
"""

from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.models import spread
from kit.strategies import N_READ, configurations
from torch import Tensor

from transformer import Patch, Trace, build_transformer, checkpoint
from transformer.interventions.hooks import ActivationCache, hooks_of
from transformer.model.cache import KeyValueCache
from transformer.model.sites import sites_of
from transformer.model.summary import blocks
from transformer.runs.compact_trace import QKV, CompactedRecords, stored_at

drawn_often = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
drawn_seldom = settings(max_examples=20, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Texts:
    """Rows of ids (B, T) that differ in length, and which of the places are text."""

    ids: Tensor
    is_text: Tensor

    @property
    def told(self) -> Tensor | None:
        """The mask that a network gets; None without padding."""
        return None if self.is_text.all() else self.is_text

    def alone(self, row: int) -> "Texts":
        found = self.ids[row : row + 1, self.is_text[row]]
        return Texts(found, torch.ones_like(found, dtype=torch.bool))


@st.composite
def texts(draw: st.DrawFn, n_rows: int, vocab_size: int, *, left: bool = False) -> Texts:
    """left: padded on either side; else on the right alone."""
    lengths = draw(st.lists(st.integers(1, N_READ), min_size=n_rows, max_size=n_rows))
    seed, sided = draw(st.integers(0, 999)), left and draw(st.booleans())
    ids = torch.randint(
        0, vocab_size, (n_rows, max(lengths)), generator=torch.Generator().manual_seed(seed)
    )
    is_text = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    is_text = is_text.flip(-1) if sided else is_text
    return Texts(ids.where(is_text, 0), is_text)


@dataclass(frozen=True)
class Case:
    """A network and a batch that it reads; source: of an encoder-decoder."""

    network: Any
    target: Texts
    source: Texts | None

    def logits(self, target: Texts | None = None, source: Texts | None = None, **more: Any) -> Any:
        target, source = target or self.target, source or self.source
        with torch.inference_mode():
            if source is None:
                return self.network(target.ids, is_text=target.told, **more)
            is_text = dict(src_is_text=source.told, tgt_is_text=target.told)
            return self.network(source.ids, target.ids, **is_text, **more)

    def read_by(self, site: Any) -> tuple[Texts, Texts]:
        """The texts that give a site's queries and keys."""
        own = self.target if site.stack == "decoder" or self.source is None else self.source
        return own, own if site.kind == "self" else self.source or own


@st.composite
def cases(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> Case:
    config = draw(configurations())
    both, n_rows = config.family == "encoder-decoder", draw(st.integers(1, 3))
    network = spread(build_transformer(config)).eval().to(dtype)
    target = draw(texts(n_rows, config.output_vocab_size, left=not both))
    return Case(network, target, draw(texts(n_rows, config.vocab_size)) if both else None)


def close(got: Tensor, wanted: Tensor, room: float = 1e-7) -> None:
    """Equal but for `room` of the largest number."""
    assert got.shape == wanted.shape
    assert (got - wanted).abs().max() <= room * (1 + wanted.abs().max())


@drawn_often
@given(case=cases())
def test_tracing_leaves_logits_unchanged_and_records_consistent_numbers(case):
    trace, config = Trace(), case.network.config
    real = case.target.is_text
    traced = case.logits(trace=trace)
    close(traced[real], case.logits()[real])
    close(traced, case.logits(hooks=[lambda point, value, **context: value]), 0)
    assert set(trace.records) == set(sites_of(config))
    for record in trace:
        asks, asked = case.read_by(record.site)
        behind = torch.arange(asks.ids.shape[1])[:, None] - torch.arange(asked.ids.shape[1])
        allowed = asked.is_text[:, None].expand(-1, len(behind), -1)
        if record.site.kind == "self":
            window = config.window_of(record.site.layer) or 99
            far = behind if record.site.stack == "decoder" else behind.abs()
            allowed = allowed & (far >= 0) & (far < window)
        assert record.allowed.equal(allowed)
        if config.scores_are_products:
            close(record.scores, record.q @ record.k.mT / config.score_size**0.5, 1e-5)
        exact = record.scores.masked_fill(~allowed[:, None], -torch.inf).softmax(-1)
        rows = asks.is_text[:, None, :, None].expand_as(exact)
        close(record.pattern[rows], exact[rows], 1e-5)
        assert (record.pattern[rows & ~allowed[:, None]] == 0).all()
    stack = case.network.last_stack.name
    assert len(trace.residuals[stack]) == config.n_layers_of(stack) + 1
    projected = config.d_embedding != config.d_model
    if not config.norm_embeddings and not config.n_token_types and not projected:
        first = trace.embed[stack] + trace.pos_embed[stack]
        close(trace.residuals[stack][0], first, 1e-6)
    last = trace.residuals[stack][-1].double()
    with torch.inference_mode():
        close(case.network.lens(last)[real], traced[real], 1e-3)


@drawn_often
@given(case=cases(torch.float32))
def test_a_compact_trace_recomputes_what_the_network_computed(case):
    whole, share = Trace(), case.network.config.heads_per_key
    exact = case.network.config.scores_from_heads
    again = Trace(records=CompactedRecords(share, exact=exact))
    case.logits(trace=whole)
    case.logits(trace=again)
    for site in whole.sites:
        stored = stored_at(again, site)
        assert isinstance(stored, QKV) == exact
        assert not exact or stored.k.shape[1] * share == stored.q.shape[1]
        for name in ("q", "k", "v", "allowed"):
            assert getattr(again[site], name).equal(getattr(whole[site], name)), name
        for name in ("scores", "pattern"):  # whose last bit depends on the place in memory
            room = 1e-6 * (1 + float(whole[site].scores.abs().max()))
            close(getattr(again[site], name), getattr(whole[site], name), room)


@drawn_often
@given(case=cases())
def test_each_row_of_a_padded_batch_is_what_it_is_alone(case):
    together = case.logits()
    for row in range(len(together)):
        target = case.target.alone(row)
        source = case.source and case.source.alone(row)
        close(together[row : row + 1, case.target.is_text[row]], case.logits(target, source))


@drawn_often
@given(case=cases(), data=st.data())
def test_reading_in_pieces_with_a_cache_equals_reading_at_once(case, data):
    """So no position reads its future: with a cache there is none yet."""
    network, target, cache = case.network, case.target, KeyValueCache()
    if network.config.family == "encoder":
        return
    cuts = data.draw(st.sets(st.integers(1, N_READ - 1)))
    pieces = torch.arange(target.ids.shape[1]).tensor_split(sorted(cuts))
    whole, last, found, is_traced = Trace(), Trace(), [], data.draw(st.booleans())
    for places in filter(len, pieces):
        ids, is_text = target.ids[:, places], target.is_text[:, places]
        last = Trace() if is_traced else None
        with torch.inference_mode():
            if case.source is None:
                found.append(network(ids, is_text=is_text, cache=cache, trace=last))
                continue
            settings = dict(src_is_text=case.source.is_text)
            memory = network.encode(case.source.ids, **settings)
            settings |= dict(tgt_is_text=is_text, cache=cache, trace=last)
            found.append(network.decode(ids, memory, case.source.ids, **settings))
    real = target.is_text
    close(torch.cat(found, dim=1)[real], case.logits(trace=whole)[real])
    assert cache.length == target.ids.shape[1]
    n_new = found[-1].shape[1]
    rows = real[:, None, -n_new:, None]
    for record in last or ():
        wanted = whole[record.site].pattern[:, :, -n_new:]
        close(record.pattern * rows, wanted * rows, 1e-5)


@drawn_seldom
@given(case=cases(), part=st.sampled_from(["resid_post", "z", "mlp_out"]))
def test_patching_a_run_into_itself_changes_nothing(case, part):
    cache, config = ActivationCache(), case.network.config
    intact = case.logits(hooks=[cache])
    for site in sites_of(config):
        places = range(case.read_by(site)[0].ids.shape[1])
        patch = Patch(*site[:2], places, "same", part=part, kind=site.kind)
        hooks = hooks_of([patch], config, {"same": cache})
        assert case.logits(hooks=hooks).equal(intact)


@drawn_seldom
@given(config=configurations(), stored=st.sampled_from(["float32", "float16", "bfloat16"]))
def test_saved_and_loaded_a_network_computes_the_same(config, stored, tokenizer, tmp_path_factory):
    vocab_size, folder = tokenizer.vocab_size, tmp_path_factory.mktemp("saved")
    config = config.replace(vocab_size=vocab_size, target_vocab_size=None)
    network = spread(build_transformer(config)).eval()
    checkpoint.save(folder / "a", network, config, tokenizer, dtype=stored)
    loaded = checkpoint.read(folder / "a")
    assert loaded.config == config
    assert sum(block.n_parameters for block in blocks(config)) == loaded.network.n_parameters
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(weight.to(getattr(torch, stored)))
    ids = [torch.tensor([[7, 30, 200]])] * (1 + (config.family == "encoder-decoder"))
    assert loaded.network(*ids).equal(network(*ids))
    assert not any(weight.requires_grad for weight in loaded.network.parameters())
