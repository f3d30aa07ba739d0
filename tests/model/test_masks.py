import pytest
import torch

from transformer.model.masks import causal_mask, combine, padding_mask


def test_a_padding_mask_is_true_where_a_key_is_text():
    ids = torch.tensor([[4, 7, 2, 0, 0], [0, 5, 3, 8, 1]])
    mask = padding_mask(ids, 0)
    assert mask.dtype == torch.bool
    assert mask.shape == (2, 1, 1, 5)
    assert mask[:, 0, 0].tolist() == [
        [True, True, True, False, False],
        [False, True, True, True, True],
    ]


def test_padding_may_have_any_id_and_none_means_no_mask():
    ids = torch.tensor([[4, 7, 4]])
    assert padding_mask(ids, 4)[0, 0, 0].tolist() == [False, True, False]
    assert padding_mask(ids, None) is None


def test_a_causal_mask_lets_each_query_read_up_to_itself():
    assert causal_mask(3, 3).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


def test_with_past_keys_the_last_query_stands_at_the_last_key():
    assert causal_mask(2, 5).tolist() == [
        [True, True, True, True, False],
        [True, True, True, True, True],
    ]


def test_more_queries_than_keys_is_an_error_that_names_both():
    with pytest.raises(ValueError, match="got 4 queries, 3 keys"):
        causal_mask(4, 3)


def test_combining_nothing_allows_everything_and_none_changes_nothing():
    mask = causal_mask(2, 3)
    assert combine() is None
    assert combine(None, None) is None
    assert combine(None, mask, None).equal(mask)


def test_combining_leaves_its_inputs_unchanged():
    causal, padding = causal_mask(2, 2), torch.tensor([[[[True, False]]]])
    combine(causal, padding)
    assert causal.tolist() == [[True, False], [True, True]]
    assert padding.tolist() == [[[[True, False]]]]
