"""A decoder with fewer layers than its encoder, as distilbart has, everywhere."""

import pytest
import torch
from kit.hf_folders import write

import transformer
from transformer import Ablate, Patch
from transformer.analysis.ablation import head_importance
from transformer.analysis.journey import journey
from transformer.analysis.logit_contribution import logit_contribution
from transformer.analysis.patching import patch_effect
from transformer.model.sites import sites_of
from transformer.server.kept.page_models import headline
from transformer.views.run_facts import kinds_of, windows_of

pytestmark = pytest.mark.filterwarnings("ignore")
TEXT, OTHER = "The black cat", "The dog is not"


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_a_decoder_of_another_depth_is_analysed_and_drawn(family, tmp_path):
    write(tmp_path, family, 2)  # three layers in the encoder, one in the decoder
    model = transformer.load(tmp_path)
    run = model.generate(TEXT, max_new_tokens=5, beams=2)
    assert [kind["n_layers"] for kind in kinds_of(run)] == [3, 1, 1]
    assert "3 + 1 layer " in headline(model)
    assert (len(sites_of(run.config)), len(windows_of(run.config))) == (5, 3)
    position = len(run.ids) - 1
    assert patch_effect(model, run, OTHER, position, stack="encoder").change.shape[0] == 3
    assert patch_effect(model, run, OTHER, position).change.shape[0] == 1
    importance = head_importance(model, run, position)
    assert importance is not None
    assert journey(model, run).position == model.last_read(run)
    added = logit_contribution(model, run, position)
    assert added.heads["self"].shape == added.heads["cross"].shape == (1, 2)
    run = transformer.with_lens(model, run)
    for figure in (run.heads("encoder"), run.heads("decoder", "cross"), run.logit_lens(),
                   run.draw("metrics", "encoder", "self")):  # fmt: skip
        assert figure.data
    run.to_html(tmp_path / "run.html")
    transformer.read_npz(run.to_npz(tmp_path / "run.npz") or tmp_path / "run.npz")
    for wrong in (Ablate("decoder", 1, [0]), Patch("decoder", 2, [0], OTHER)):
        with pytest.raises(ValueError, match=r"decoder\.0\.self to decoder\.0\.self"):
            model.trace(TEXT, [wrong])
    both = model.network(torch.tensor([run.source_ids]), torch.tensor([run.ids[:-1]]))
    assert both.shape[1] == position
    weights, labels = run.trace.weights("decoder"), list(run.labels)
    outer = transformer.from_attention(
        [weights[0]], labels[: weights.shape[-1]], encoder=list(run.trace.weights("encoder")),
        source_tokens=list(run.source_labels), cross=[run.trace.weights("decoder", "cross")[0]],
    )  # fmt: skip
    assert (outer.config.n_layers, outer.config.output_n_layers) == (3, 1)
