"""The hundred most used text models of the Hugging Face hub, named from memory in 2025, each with
the values of its config.json that decide whether it opens."""

from typing import Any


def bert(architecture: str = "BertModel", width: int = 768, **own: Any) -> dict[str, Any]:
    """BERT's keys; by default those of the base size."""
    return {
        "model_type": "bert", "architectures": [architecture], "vocab_size": 30522,
        "hidden_size": width, "num_attention_heads": 16 if width == 1024 else 12,
        "num_hidden_layers": 12, "intermediate_size": 4 * width, "hidden_act": "gelu",
        "max_position_embeddings": 512, "type_vocab_size": 2, "pad_token_id": 0,
        "position_embedding_type": "absolute", **own,
    }  # fmt: skip


def roberta(architecture: str, kind: str = "roberta", width: int = 768, **own: Any) -> Any:
    """RoBERTa's, and those of its relatives."""
    size = {"vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1}
    return bert(architecture, width, **{"model_type": kind, "pad_token_id": 1, **size, **own})


def xlm(architecture: str, width: int = 768, **own: Any) -> Any:
    """XLM-RoBERTa's."""
    return roberta(architecture, "xlm-roberta", width, **{"vocab_size": 250002, **own})


def llama(kind: str, architecture: str, width: int, heads: int, groups: int, **own: Any) -> Any:
    """Llama's, and those of its relatives."""
    return {
        "model_type": kind, "architectures": [architecture], "vocab_size": 128256,
        "hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": groups,
        "num_hidden_layers": 16, "intermediate_size": 4 * width, "hidden_act": "silu",
        "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1e6, **own,
    }  # fmt: skip


def llama3(width: int, heads: int, **own: Any) -> Any:
    """Llama 3.1's, 3.2's and 3.3's."""
    rope = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192}  # fmt: skip
    values = {"rope_theta": 5e5, "rope_scaling": rope, "max_position_embeddings": 131072, **own}
    return llama("llama", "LlamaForCausalLM", width, heads, 8, **values)


def qwen2(width: int, heads: int, groups: int, **own: Any) -> Any:
    """Qwen 2.5's."""
    own = {"sliding_window": 32768, "use_sliding_window": False, "max_window_layers": 28, **own}
    return llama("qwen2", "Qwen2ForCausalLM", width, heads, groups, **own)


def qwen3(width: int, heads: int, **own: Any) -> Any:
    """Qwen 3's."""
    own = {"head_dim": 128, "attention_bias": False, "rope_scaling": None, **own}
    return llama("qwen3", "Qwen3ForCausalLM", width, heads, 8, **own)


def gemma(kind: str, architecture: str = "Gemma3ForCausalLM", **own: Any) -> Any:
    """Gemma's."""
    own = {"head_dim": 256, "hidden_act": "gelu_pytorch_tanh", "vocab_size": 262144, **own}
    return llama(kind, architecture, 2304, 8, 4, **own)


def gpt2(**own: Any) -> Any:
    """GPT-2's."""
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50257,
            "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
            "activation_function": "gelu_new", **own}  # fmt: skip


def distilbert(architecture: str) -> Any:
    """DistilBERT's."""
    return {"model_type": "distilbert", "architectures": [architecture], "vocab_size": 30522,
            "dim": 768, "n_heads": 12, "n_layers": 6, "hidden_dim": 3072, "activation": "gelu",
            "max_position_embeddings": 512, "pad_token_id": 0}  # fmt: skip


def t5(kind: str, **own: Any) -> Any:
    """T5's."""
    return {"model_type": kind, "architectures": [f"{kind.upper()}ForConditionalGeneration"],
            "vocab_size": 32128, "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8,
            "num_layers": 6, "feed_forward_proj": "gated-gelu", "pad_token_id": 0,
            "relative_attention_num_buckets": 32, **own}  # fmt: skip


def bart(kind: str, architecture: str, **own: Any) -> Any:
    """BART's, and those of its relatives."""
    sides = {"layers": 12, "attention_heads": 16, "ffn_dim": 4096}
    both = {f"{side}_{key}": x for side in ("encoder", "decoder") for key, x in sides.items()}
    return {"model_type": kind, "architectures": [architecture], "vocab_size": 50265,
            "d_model": 1024, "max_position_embeddings": 1024, "pad_token_id": 1,
            "activation_function": "gelu", **both, **own}  # fmt: skip


def deberta(architecture: str) -> Any:
    """DeBERTa v3's."""
    own = {"relative_attention": True, "position_biased_input": False, "share_att_key": True,
           "norm_rel_ebd": "layer_norm", "pos_att_type": "p2c|c2p", "position_buckets": 256,
           "max_relative_positions": -1, "type_vocab_size": 0, "vocab_size": 128100}  # fmt: skip
    values = bert(architecture, model_type="deberta-v2", layer_norm_eps=1e-7, **own)
    return {key: x for key, x in values.items() if key != "position_embedding_type"}


def gte(**own: Any) -> Any:
    """GTE's, of its authors' own code."""
    ntk = {"type": "ntk", "factor": 2.0}
    own = {"model_type": "new", "max_position_embeddings": 8192, "rope_theta": 160000,
           "rope_scaling": ntk, "logn_attention_scale": False, "layer_norm_type": "layer_norm",
           "position_embedding_type": "rope", **own}  # fmt: skip
    return bert(own.pop("architecture", "NewModel"), **own)


def nomic(**own: Any) -> Any:
    """Nomic BERT's, of its authors' own code."""
    return {"model_type": "nomic_bert", "architectures": ["NomicBertModel"], "vocab_size": 30528,
            "n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": 3072, "n_positions": 8192,
            "activation_function": "swiglu", "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
            "prenorm": False, "qkv_proj_bias": False, "causal": False, "type_vocab_size": 2,
            "max_trained_positions": 2048, **own}  # fmt: skip


def experts(kind: str) -> Any:
    """What a mixture of experts says of itself."""
    return {"model_type": kind, "num_experts": 32, "vocab_size": 151936, "hidden_size": 2048}


_LABELS = {"id2label": {"0": "negative", "1": "neutral", "2": "positive"}}
_MLM, _CLASSIFIER = "BertForMaskedLM", "BertForSequenceClassification"
_RANKER = {"id2label": {"0": "LABEL_0"}}
_MISTRAL = dict(num_hidden_layers=32, rms_norm_eps=1e-5, sliding_window=None)
_GEMMA_3 = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
            "num_hidden_layers": 34, "sliding_window": 1024,
            "rope_scaling": {"rope_type": "linear", "factor": 8.0}}  # fmt: skip
MOST_USED: dict[str, dict[str, Any]] = {
    "sentence-transformers/all-MiniLM-L6-v2": bert(width=384, num_hidden_layers=6),
    "sentence-transformers/all-MiniLM-L12-v2": bert(width=384),
    "sentence-transformers/all-mpnet-base-v2": roberta(
        "MPNetForMaskedLM", "mpnet", relative_attention_num_buckets=32),
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": bert(
        width=384, vocab_size=250037),
    "sentence-transformers/paraphrase-multilingual-mpnet-base-v2": xlm("XLMRobertaModel"),
    "google-bert/bert-base-uncased": bert(_MLM),
    "google-bert/bert-base-cased": bert(_MLM, vocab_size=28996),
    "google-bert/bert-base-multilingual-cased": bert(_MLM, vocab_size=119547),
    "google/electra-base-discriminator": bert(
        "ElectraForPreTraining", model_type="electra", embedding_size=768),
    "FacebookAI/roberta-base": roberta("RobertaForMaskedLM"),
    "FacebookAI/roberta-large": roberta("RobertaForMaskedLM", width=1024),
    "FacebookAI/xlm-roberta-base": xlm("XLMRobertaForMaskedLM"),
    "FacebookAI/xlm-roberta-large": xlm("XLMRobertaForMaskedLM", 1024),
    "distilbert/distilbert-base-uncased": distilbert("DistilBertForMaskedLM"),
    "distilbert/distilbert-base-uncased-finetuned-sst-2-english": distilbert(
        "DistilBertForSequenceClassification"),
    "distilbert/distilgpt2": gpt2(n_layer=6),
    "albert/albert-base-v2": bert("AlbertForMaskedLM", model_type="albert", embedding_size=128,
                                  vocab_size=30000, hidden_act="gelu_new"),
    "almanach/camembert-base": roberta("CamembertForMaskedLM", "camembert", vocab_size=32005),
    "answerdotai/ModernBERT-base": bert(
        "ModernBertForMaskedLM", model_type="modernbert", global_attn_every_n_layers=3,
        local_attention=128, hidden_activation="gelu", max_position_embeddings=8192),
    "microsoft/deberta-v3-base": deberta("DebertaV2Model"),
    "microsoft/deberta-v3-large": deberta("DebertaV2Model"),
    "microsoft/deberta-base": {"model_type": "deberta", "pos_att_type": "c2p|p2c"},
    "MoritzLaurer/mDeBERTa-v3-base-mnli-xnli": deberta("DebertaV2ForSequenceClassification"),
    "microsoft/codebert-base": roberta("RobertaModel"),
    "emilyalsentzer/Bio_ClinicalBERT": bert(_MLM, vocab_size=28996),
    "dslim/bert-base-NER": bert("BertForTokenClassification", vocab_size=28996),
    "deepset/roberta-base-squad2": roberta("RobertaForQuestionAnswering"),
    "ProsusAI/finbert": bert(_CLASSIFIER, **_LABELS),
    "nlptown/bert-base-multilingual-uncased-sentiment": bert(_CLASSIFIER, vocab_size=105879),
    "cardiffnlp/twitter-roberta-base-sentiment-latest": roberta(
        "RobertaForSequenceClassification", **_LABELS),
    "cross-encoder/ms-marco-MiniLM-L6-v2": bert(_CLASSIFIER, 384, **_RANKER),
    "allenai/longformer-base-4096": roberta("LongformerForMaskedLM", "longformer"),
    "BAAI/bge-small-en-v1.5": bert(width=384),
    "BAAI/bge-base-en-v1.5": bert(),
    "BAAI/bge-large-en-v1.5": bert(width=1024, num_hidden_layers=24),
    "BAAI/bge-m3": xlm("XLMRobertaModel", 1024, max_position_embeddings=8194),
    "BAAI/bge-reranker-base": xlm("XLMRobertaForSequenceClassification", **_RANKER),
    "BAAI/bge-reranker-v2-m3": xlm("XLMRobertaForSequenceClassification", 1024, **_RANKER),
    "intfloat/multilingual-e5-small": bert(width=384, vocab_size=250037),
    "intfloat/multilingual-e5-large": xlm("XLMRobertaModel", 1024),
    "intfloat/e5-mistral-7b-instruct": llama(
        "mistral", "MistralModel", 4096, 32, 8, **{**_MISTRAL, "sliding_window": 4096}),
    "Alibaba-NLP/gte-large-en-v1.5": gte(),
    "Alibaba-NLP/gte-multilingual-base": gte(rope_theta=20000, rope_scaling=None),
    "Snowflake/snowflake-arctic-embed-m-v2.0": gte(
        model_type="gte", architecture="GteModel", rope_scaling=None),
    "mixedbread-ai/mxbai-embed-large-v1": bert(width=1024, num_hidden_layers=24),
    "nomic-ai/nomic-embed-text-v1": nomic(),
    "nomic-ai/nomic-embed-text-v1.5": nomic(),
    "nomic-ai/nomic-embed-text-v2-moe": nomic(
        moe_every_n_layers=2, num_experts=8, activation_function="gelu"),
    "jinaai/jina-embeddings-v2-base-en": bert(
        "JinaBertForMaskedLM", position_embedding_type="alibi"),
    "jinaai/jina-embeddings-v3": xlm(
        "XLMRobertaLoRA", 1024, position_embedding_type="rotary", lora_rank=4),
    "google/embeddinggemma-300m": gemma(
        "gemma3_text", "Gemma3TextModel", use_bidirectional_attention=True, sliding_window=512),
    "openai-community/gpt2": gpt2(),
    "facebook/opt-125m": {
        "model_type": "opt", "architectures": ["OPTForCausalLM"], "vocab_size": 50272,
        "hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "ffn_dim": 3072,
        "max_position_embeddings": 2048, "word_embed_proj_dim": 768,
        "do_layer_norm_before": True, "_remove_final_layer_norm": False,
    },
    "EleutherAI/pythia-160m": bert(
        "GPTNeoXForCausalLM", model_type="gpt_neox", rotary_pct=0.25, vocab_size=50304),
    "EleutherAI/gpt-neo-125m": {
        "model_type": "gpt_neo", "architectures": ["GPTNeoForCausalLM"], "vocab_size": 50257,
        "hidden_size": 768, "num_heads": 12, "num_layers": 12, "max_position_embeddings": 2048,
        "attention_types": [[["global", "local"], 6]], "window_size": 256,
    },
    "bigscience/bloom-560m": {
        "model_type": "bloom", "architectures": ["BloomForCausalLM"], "vocab_size": 250880,
        "n_embed": 1024, "n_head": 16, "n_layer": 24,
    },
    "tiiuae/falcon-7b-instruct": {
        "model_type": "falcon", "architectures": ["FalconForCausalLM"], "vocab_size": 65024,
        "hidden_size": 4544, "num_attention_heads": 71, "num_hidden_layers": 32,
        "multi_query": True, "parallel_attn": True, "alibi": False, "bias": False,
    },
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": llama("llama", "LlamaForCausalLM", 2048, 32, 4),
    "meta-llama/Llama-2-7b-chat-hf": llama("llama", "LlamaForCausalLM", 4096, 32, 32),
    "meta-llama/Meta-Llama-3-8B-Instruct": llama("llama", "LlamaForCausalLM", 4096, 32, 8),
    "meta-llama/Llama-3.1-8B": llama3(4096, 32),
    "meta-llama/Llama-3.1-8B-Instruct": llama3(4096, 32),
    "meta-llama/Llama-3.2-1B-Instruct": llama3(2048, 32, tie_word_embeddings=True),
    "meta-llama/Llama-3.2-3B-Instruct": llama3(3072, 24, tie_word_embeddings=True),
    "meta-llama/Llama-3.3-70B-Instruct": llama3(8192, 64),
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8": llama3(
        4096, 32, quantization_config={"quant_method": "compressed-tensors"}),
    "mistralai/Mistral-7B-Instruct-v0.2": llama(
        "mistral", "MistralForCausalLM", 4096, 32, 8, **_MISTRAL),
    "mistralai/Mistral-7B-Instruct-v0.3": llama(
        "mistral", "MistralForCausalLM", 4096, 32, 8, **_MISTRAL),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": experts("mixtral"),
    "Qwen/Qwen2.5-0.5B-Instruct": qwen2(896, 14, 2, tie_word_embeddings=True),
    "Qwen/Qwen2.5-1.5B-Instruct": qwen2(1536, 12, 2, tie_word_embeddings=True),
    "Qwen/Qwen2.5-3B-Instruct": qwen2(2048, 16, 2, tie_word_embeddings=True),
    "Qwen/Qwen2.5-7B-Instruct": qwen2(3584, 28, 4),
    "Qwen/Qwen2.5-7B-Instruct-AWQ": qwen2(3584, 28, 4, quantization_config={"quant_method": "awq"}),
    "Qwen/Qwen3-0.6B": qwen3(1024, 16, tie_word_embeddings=True),
    "Qwen/Qwen3-4B": qwen3(2560, 32, tie_word_embeddings=True),
    "Qwen/Qwen3-8B": qwen3(4096, 32),
    "Qwen/Qwen3-Embedding-0.6B": qwen3(1024, 16, tie_word_embeddings=True),
    "Qwen/Qwen3-Reranker-0.6B": qwen3(1024, 16, tie_word_embeddings=True),
    "Qwen/Qwen3-30B-A3B-Instruct-2507": experts("qwen3_moe"),
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B": qwen2(1536, 12, 2),
    "deepseek-ai/DeepSeek-R1": experts("deepseek_v3"),
    "deepseek-ai/DeepSeek-V3": experts("deepseek_v3"),
    "openai/gpt-oss-20b": experts("gpt_oss"),
    "openai/gpt-oss-120b": experts("gpt_oss"),
    "google/gemma-2-2b-it": gemma("gemma2", "Gemma2ForCausalLM", query_pre_attn_scalar=256),
    "google/gemma-3-1b-it": gemma("gemma3_text", sliding_window=512),
    "google/gemma-3-4b-it": {
        "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": _GEMMA_3, "vision_config": {"model_type": "siglip_vision_model"},
    },
    "microsoft/Phi-3-mini-4k-instruct": llama(
        "phi3", "Phi3ForCausalLM", 3072, 32, 32, sliding_window=2047, rope_scaling=None),
    "microsoft/phi-2": llama("phi", "PhiForCausalLM", 2560, 32, 32, hidden_act="gelu_new",
                             partial_rotary_factor=0.4, layer_norm_eps=1e-5),
    "google-t5/t5-small": t5("t5", feed_forward_proj="relu"),
    "google-t5/t5-base": t5("t5", feed_forward_proj="relu", d_model=768, num_heads=12),
    "google/flan-t5-base": t5("t5", tie_word_embeddings=False),
    "google/byt5-small": t5("t5", vocab_size=384, num_layers=12, num_decoder_layers=4),
    "facebook/bart-large-mnli": bart("bart", "BartForSequenceClassification", **_LABELS),
    "facebook/bart-large-cnn": bart("bart", "BartForConditionalGeneration"),
    "sshleifer/distilbart-cnn-12-6": bart("bart", "BartForConditionalGeneration", decoder_layers=6),
    "google/pegasus-xsum": bart("pegasus", "PegasusForConditionalGeneration", pad_token_id=0),
    "facebook/nllb-200-distilled-600M": bart("m2m_100", "M2M100ForConditionalGeneration"),
    "Helsinki-NLP/opus-mt-en-de": bart("marian", "MarianMTModel", pad_token_id=58100,
                                       vocab_size=58101, activation_function="swish"),
}  # fmt: skip
