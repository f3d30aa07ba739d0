"""The table of the hundred most used models says what the adapters decide."""

import re

import pytest
from kit.documents import ROOT
from kit.most_used import MOST_USED

from transformer.checkpoint.adapters import MAX_LEN, config_of, with_ids, with_usual_names
from transformer.checkpoint.adapters.families import text_part

ROW = re.compile(r"^\| \[(.+)\]\(.+\) \| (.+) \| (.+) \|$", flags=re.MULTILINE)


def decided(values):
    """What the page says of a config.json: "opens", or why not."""
    try:
        config_of(with_ids(with_usual_names(text_part(values)), None), MAX_LEN, {})
    except ValueError as error:
        return "refused: " + str(error).partition(";")[0]
    return "opens"


@pytest.fixture(scope="module")
def table():
    """Each model's row: (its class, what the page says)."""
    text = (ROOT / "docs/most-used.md").read_text(encoding="utf-8")
    return {name: (architecture, says) for name, architecture, says in ROW.findall(text)}


@pytest.mark.parametrize("name", MOST_USED)
def test_the_table_says_what_is_decided_of_a_config(name, table):
    values = MOST_USED[name]
    (architecture,) = values.get("architectures", [""])
    wanted = f"`{architecture or values['model_type']}`", decided(values)
    assert table[name] == wanted, (
        f"| [{name}](https://huggingface.co/{name}) | {' | '.join(wanted)} |"
    )


def test_the_table_has_a_hundred_models_of_which_so_many_open(table):
    assert list(table) == list(MOST_USED)
    opens = sum(says == "opens" for _, says in table.values())
    text = (ROOT / "docs/most-used.md").read_text(encoding="utf-8")
    assert len(table) == 100
    assert f"{opens} of 100 open" in text
    assert opens >= 85
