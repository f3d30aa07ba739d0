"""Share links and the codes that lead to them."""

import base64
import dataclasses
import json
from typing import Any
from urllib.parse import unquote, urlencode

import pytest
import segno
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.client import FORBIDDEN, SILENCED, deflated, opened
from kit.serving import tiny_translator

from transformer import Model, Run
from transformer.ui.link import SETTINGS, read_link, view_fields
from transformer.ui.page_request import state_of_run
from transformer.ui.qr import MOST_CHARACTERS, MOST_VERSION, picture, reachable
from transformer.ui.service import Service


@pytest.fixture(scope="module")
def service(tiny_model: Model, tiny_encoder: Model) -> Service:
    return Service([tiny_model, tiny_encoder, tiny_translator()])


def shown(service: Service, query: Any) -> tuple[Run, dict[str, Any]]:
    """(the run that an opened link shows, the last message to its page)."""
    changes = opened(service, query)
    message = changes[-1]["told"]
    assert {"tokens": message["run"]} in [
        {"tokens": one["tokens"]["run"]} for one in changes if "tokens" in one
    ]
    return service.store.run(message["run"]), message


REQUESTS = {
    "sampled": ("tiny", {"temperature": 0.83, "top_k": 7, "top_p": 0.95, "seed": 11}),
    "barely sampled": ("tiny", {"temperature": 0.012345678901234567, "seed": 2**32 - 1}),
    "greedy": ("tiny", {}),
    "altered": (
        "tiny", {"interventions": [SILENCED, FORBIDDEN], "forced_tokens": [40, 41], "seed": 3},
    ),
    "searched": ("tiny-translator", {"beams": 3, "length_penalty": 0.5}),
    "translated, altered": (
        "tiny-translator",
        {"interventions": [{**SILENCED, "kind": "cross"}], "forced_tokens": [44]},
    ),
    "read": ("tiny-encoder", None),
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_a_link_to_a_run_makes_the_same_tokens_and_weights_again(service, name):
    model, options = REQUESTS[name]
    text = "The fox & <b>bird</b>,\n1 % “à” 🦊 +"
    if options is None:
        text = "The fox &\n1 % à 🦊 +"  # an encoder refuses more than it reads
        run = service.read(model, text)
    else:
        run = service.generate(model, text, max_new_tokens=9, **options)
    state = state_of_run(run)
    packed = name == "altered"
    query = deflated(json.dumps(state).encode()) if packed else f"?{urlencode(state)}"
    again, message = shown(service, query)
    assert message["problems"] == []
    assert again is not run
    assert (again.model, again.ids, again.labels) == (run.model, run.ids, run.labels)
    assert again.request.text == text
    assert again.request.interventions == run.request.interventions
    assert again.request.forced_tokens == run.request.forced_tokens
    for site, record in run.trace.records.items():
        assert torch.equal(again.trace[site].pattern, record.pattern)


@pytest.mark.parametrize(
    ("stopped", "n_steps", "length"),
    [("cancelled", 0, 1), ("cancelled", 2, 2), ("time", 2, 2), ("length", 2, 9), ("end", 2, 9)],
)
def test_a_link_requests_enough_tokens_to_repeat_its_run(tiny_model, stopped, n_steps, length):
    run = tiny_model.generate("The fox", max_new_tokens=9)
    forced = dataclasses.replace(run.request, forced_tokens=run.ids[-9:][:3])
    run = dataclasses.replace(run, steps=run.steps[:n_steps], stopped=stopped, request=forced)
    state = state_of_run(run)
    assert state["length"] == str(length)
    assert len(read_link(urlencode(state)).forced_tokens) == min(3, length)


def test_an_invalid_part_of_a_link_is_reported_and_the_rest_used(service):
    for query, sentence in (
        ("model=nope", "model must be one of ['tiny', 'tiny-encoder', 'tiny-translator']"),
        ("method=beam&text=a", "method must be one of ['sample', 'greedy']; got 'beam'"),
        (f"text={'a' * 3000}", "at most 2,000 characters; got 3,000"),
        ("length=201", "New tokens must be a whole number from 1 to 200; got 201"),
        ("temperature=1e999", "'temperature' is unknown or unreadable"),
        ("forced_tokens=1,x", "'forced_tokens' is unknown or unreadable"),
        ("alter={}", "'alter' is unknown or unreadable"),
        ("alter=[NaN]", "'alter' is unknown or unreadable"),
        ("alter=" + "[" * 3000, "'alter' is unknown or unreadable"),
        ("lines=" + "a%0A" * 9, "a batch must have from 1 to 8 texts; got 9"),
        ("wat=1", "'wat' is unknown or unreadable"),
    ):
        _, message = shown(service, f"{query}&site=decoder.1.self&stage=masked")
        (problem,) = message["problems"]
        assert sentence in problem
        assert "\n" not in problem
        assert message["view"] == {"site": "decoder.1.self", "stage": "masked"}


def test_an_unreadable_link_is_one_error_and_changes_nothing(service):
    for query, sentence in (
        ("text=" + "a" * 9000, "a link must have at most 8,000 characters; got 9,005"),
        ("&".join(f"x{place}=1" for place in range(65)), "the link cannot be read"),
        ("z=!!!", "the link cannot be read"),
        (deflated(b'{"text": "a"}')[:-6], "the link cannot be read"),
        (deflated(b"[" * 60_000), "the link cannot be read"),
        (deflated(b'{"text": 1}'), "the link cannot be read"),
        (deflated(b'"' + b"a" * 3_000_000 + b'"'), "the link cannot be read"),
        (deflated(b'{"\\ud800": ""}'), "the link cannot be read"),
        (["text=a"], "a link must be a string; got list"),
    ):
        (only,) = opened(service, query)
        assert set(only) == {"told"}
        assert sentence in only["told"]["problems"][0]


def test_a_link_ignores_gradios_parameters_and_repeated_names():
    assert len(read_link("&".join(f"x{place}=1" for place in range(64))).problems) == 64
    found = read_link("?__theme=dark&view=api&__sign=secret&head=3&head=4")
    assert (found.view, found.problems, found.asks_for_a_run) == ({"head": "3"}, (), False)


# --- whatever a link holds ------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["model", "text", "lines", "forced_tokens", "alter", "z", "wat", "__theme",
     *SETTINGS, *view_fields()]
)  # fmt: skip
ODD = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(
        [
            "tiny", "tiny-translator", "sample", "greedy", "beam", "1,2", "1e308", "-0", "٣", "²",
            "\ud800", "\x00", "<img src=x onerror=alert(1)>", "{{value}}", "decoder.0.self",
            json.dumps([SILENCED]), json.dumps([FORBIDDEN]), '[{"type":"break","what":"no-scale"}]',
            '[{"type":"patch","stack":"decoder","layer":0,"positions":[0],"text":"a"}]',
            '[{"type":"ablate","stack":[],"layer":{},"heads":"x"}]', "[[]]", "9" * 40,
        ]
    ),
)  # fmt: skip
STATES, BITS = st.dictionaries(NAMES, ODD, max_size=7), st.binary(max_size=60)
QUERIES = st.one_of(
    STATES.map(lambda state: urlencode(state, errors="surrogatepass")),
    STATES.map(lambda state: deflated(json.dumps(state).encode())),
    BITS.map(lambda data: f"z={base64.urlsafe_b64encode(data).decode()}"),
    BITS.map(deflated), st.text(), st.none(),
)  # fmt: skip


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(QUERIES)
def test_any_query_opens_the_page_with_a_run_or_an_error(service, query):
    changes = opened(service, query)
    message = changes[-1]["told"]
    assert all(problem.strip() and len(problem) < 900 for problem in message["problems"])
    assert all(json.dumps(one).encode() for one in changes)
    assert service.sessions.under_way() == 0
    if message["run"]:
        service.store.run(message["run"])
        service.store.batch(changes[-1]["batch"]["batch"])
        assert set(message["view"]) <= view_fields().keys()
    else:
        assert message["problems"]


HERE = tuple(f"http://{host}:7860/" for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0"))


def test_a_code_leads_to_an_address_that_others_can_open():
    for page in ("https://me-page.hf.space/", "http://class.example:8000/a/b/"):
        assert reachable(page, "127.0.0.1", 7861, lambda: None) == page  # behind a proxy
    for page in HERE:
        assert reachable(page, "0.0.0.0", 7861, lambda: "10.1.2.3") == "http://10.1.2.3:7861/"
        assert reachable(page, "::", 7861, lambda: "fd00::7") == "http://[fd00::7]:7861/"
        assert reachable(page, "10.1.2.4", 7861, lambda: None) == "http://10.1.2.4:7861/"
        below = reachable(page, "0.0.0.0", 7861, lambda: "10.1.2.3", root="/viz")
        assert below == "http://10.1.2.3:7861/viz/"
        public = "https://viz.example/a"
        assert reachable(page, "127.0.0.1", 7861, lambda: None, root=public) == f"{public}/"


def test_there_is_no_code_for_an_address_only_this_machine_can_open():
    own = r"python app\.py --host 0\.0\.0\.0"
    wrong = ("", "javascript:alert(1)", "file:///etc", "http:///x", "http://ü.example/")
    for page, host, sentence in (
        *((page, host, own) for page in HERE for host in ("127.0.0.1", "localhost", "::1", None)),
        *((page, "0.0.0.0", "on no network") for page in HERE),
        *((page, "0.0.0.0", "http.s. URL") for page in wrong),
    ):
        with pytest.raises(ValueError, match=sentence):
            reachable(page, host, 7861, lambda: None)


def test_a_code_is_never_finer_than_the_last_row_can_read():
    longest = "http://a.example/#" + "a" * (MOST_CHARACTERS - 18)
    code = segno.make(longest, error="l", micro=False)
    assert code.version == MOST_VERSION
    width = code.symbol_size(border=4)[0]
    assert picture(longest).startswith("data:image/svg+xml")
    assert f"viewBox='0 0 {width} {width}'" in unquote(picture(longest))
    assert 0.92 * 720 / width > 6  # lines of a projector, see header.css
    for more in (1, 5000):
        with pytest.raises(ValueError, match=rf"{MOST_CHARACTERS + more:,} characters; .* 792\."):
            picture(longest + "a" * more)
