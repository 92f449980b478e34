"""Cases of mindnlp: language models made small by their configurations, its layers, losses and
measures, its tokenizer, and training with its own trainer.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from third_party_cases import Arrays, case, fill, gradients, numbers, outputs

_WORDS = 60


def ids(seed: int, *shape: int, high: int = _WORDS, low: int = 1) -> Any:
    """Return whole numbers below a limit as a tensor."""
    import mindspore as ms

    return ms.Tensor(np.random.RandomState(seed).randint(low, high, shape).astype(np.int32))


def _floats(result: Any) -> Arrays:
    return {k: v for k, v in outputs(without_none(result)).items() if v.dtype.kind in "fiub"}


def without_none(result: Any) -> Any:
    if isinstance(result, dict):
        return {k: without_none(v) for k, v in result.items() if v is not None}
    if isinstance(result, (tuple, list)):
        return [without_none(v) for v in result if v is not None]
    return result


def _sum(result: Any) -> Any:
    """Return a number that depends on every float tensor of a nested result."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        parts = [_sum(one) for one in result if one is not None]
        return sum(parts[1:], parts[0])
    return (result**2).mean()


_SMALL = {"vocab_size": _WORDS, "num_hidden_layers": 2, "num_attention_heads": 4}
_STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_BERT = {**_SMALL, **_STILL, "hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 32}
_GPT2 = {**_SMALL, "hidden_size": 32, "max_position_embeddings": 32, "bos_token_id": 1, "eos_token_id": 2}
_GPT2 |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "num_labels": 3, "summary_first_dropout": 0.0}
_GPT = {"vocab_size": _WORDS, "n_positions": 32, "n_embd": 32, "hidden_size": 32, "n_layer": 2, "n_head": 4}
_GPT |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "num_labels": 3, "summary_first_dropout": 0.0}
_T5 = {"vocab_size": _WORDS, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0}
_T5 |= {"decoder_start_token_id": 0}
# These two models give one number as what is kept and as what is dropped.
_RANDOM = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
_TINY = {"vocab_size_or_config_json_file": _WORDS, "num_hidden_layers": 2, "num_attention_heads": 4, **_RANDOM}
_TINY |= {"hidden_size": 32, "intermediate_size": 64, "max_position_embeddings": 32}
_MOBILE = {**_SMALL, **_STILL, "hidden_size": 32, "intermediate_size": 64, "embedding_size": 16}
_MOBILE |= {"intra_bottleneck_size": 16, "max_position_embeddings": 32, "num_feedforward_networks": 2}
_XLM = {"vocab_size": _WORDS, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "dropout": 0.0, "attention_dropout": 0.0}
_XLM |= {"max_position_embeddings": 32, "n_words": _WORDS, "summary_first_dropout": 0.0}
_LUKE = {**_BERT, "entity_vocab_size": 20, "entity_emb_size": 16}
_ALBERT = {**_BERT, **_RANDOM, "embedding_size": 16, "classifier_dropout_prob": 0.1, "num_labels": 3}

# The model's key, its module, its class, its configuration (a class and arguments), and its inputs.
_MODELS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "bert": ("bert", "BertModel", "BertConfig", _BERT),
    "gpt": ("gpt", "GPTModel", "GPTConfig", _GPT),
    "gpt.lm": ("gpt", "GPTLMHeadModel", "GPTConfig", _GPT),
    "gpt2": ("gpt2.gpt2", "GPT2Model", "gpt2.config_gpt2.GPT2Config", _GPT2),
    "gpt2.lm": ("gpt2.gpt2", "GPT2LMHeadModel", "gpt2.config_gpt2.GPT2Config", _GPT2),
    "gpt2.tokens": ("gpt2.gpt2", "GPT2ForTokenClassification", "gpt2.config_gpt2.GPT2Config", _GPT2),
    "t5": ("t5", "T5Model", "T5Config", _T5),
    "t5.generation": ("t5", "T5ForConditionalGeneration", "T5Config", {**_T5, "feed_forward_proj": "gated-gelu"}),
    "tinybert": ("tinybert", "TinyBertModel", "TinyBertConfig", _TINY),
    "tinybert.pretraining": ("tinybert", "TinyBertForPreTraining", "TinyBertConfig", _TINY),
    "mobilebert": ("mobilebert", "MobileBertModel", "MobileBertConfig", _MOBILE),
    "mobilebert.pretraining": ("mobilebert", "MobileBertForPreTraining", "MobileBertConfig", _MOBILE),
    "xlm": ("xlm", "XLMModel", "XLMConfig", _XLM),
    "xlm.lm": ("xlm", "XLMWithLMHeadModel", "XLMConfig", _XLM),
    "luke": ("luke", "LukeModel", "LukeConfig", _LUKE),
    "albert": ("albert.albert", "AlbertModel", "albert.albert_config.AlbertConfig", _ALBERT),
}


def _model(name: str) -> Any:
    module, kind, config, options = _MODELS[name]
    place, _, last = config.rpartition(".")
    configs = importlib.import_module(f"mindnlp.models.{place or module}")
    made = getattr(configs, "BertConfig" if config == "TinyBertConfig" else last)(**options)
    return _filled(getattr(importlib.import_module(f"mindnlp.models.{module}"), kind)(made))


def _filled(network: Any) -> Any:
    """Return the network with numbers; GPT's dense weights have the names of normalisations'."""
    for p in fill(network).get_parameters():
        if p.name.endswith("gamma") and len(p.shape) == 2:
            p.set_data(numbers(zlib.crc32(p.name.encode()) % 2**32, *p.shape) / p.shape[0] ** 0.5)
    return network


def _inputs(name: str) -> dict[str, Any]:
    given = {"input_ids": ids(1, 2, 12)}
    if name.startswith("t5"):
        given["decoder_input_ids"] = ids(2, 2, 7)
    if name.startswith("luke"):
        given["token_type_ids"] = ids(3, 2, 12, low=0, high=2)
    return given


def _forward(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        return _floats(_model(name).set_train(False)(**_inputs(name)))

    return run


def _gradients(name: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        network, given = _model(name), _inputs(name)
        network.check_names_and_refresh_name()
        network.set_train(not name.startswith(("tinybert", "albert", "gpt2.tokens")))
        names = list(given)
        return gradients(network, lambda *x: _sum(network(**dict(zip(names, x)))), *given.values())

    return run


for _name in _MODELS:
    case("mindnlp", _name, "forward")(_forward(_name))
    if _name != "albert":  # It reads an attribute that nothing sets.
        case("mindnlp", f"{_name}.gradients", "gradients")(_gradients(_name))


# Training: with mindnlp's trainer, its callbacks and measures.


class _Rows:
    def __init__(self, count: int, length: int, labels: int) -> None:
        random = np.random.RandomState(3)
        self.words = random.randint(1, _WORDS, (count, length)).astype(np.int32)
        self.labels = (self.words.sum(1) % labels).astype(np.int32)

    def __getitem__(self, index: int) -> Any:
        return self.words[index], self.labels[index]

    def __len__(self) -> int:
        return len(self.words)


def _trained(network: Any, jit: bool) -> Arrays:
    """Train a classifier for two epochs and return losses and the measure."""
    import mindspore as ms
    from mindnlp.abc.callback import Callback
    from mindnlp.engine.trainer import Trainer
    from mindnlp.metrics import Accuracy
    from mindspore import nn

    losses: list[float] = []

    class Keep(Callback):
        def train_step_end(self, run_context: Any) -> None:
            losses.append(float(run_context.loss.asnumpy()))

    rows = [ms.dataset.GeneratorDataset(_Rows(24, 12, 3), ["words", "label"], shuffle=False).batch(8) for _ in "ab"]
    measure = Accuracy()
    Trainer(
        network=network,
        train_dataset=rows[0],
        eval_dataset=rows[1],
        metrics=measure,
        epochs=3,
        loss_fn=nn.CrossEntropyLoss(),
        optimizer=nn.Adam(network.trainable_params(), learning_rate=1e-3),
        callbacks=[Keep()],
        jit=jit,
    ).run(tgt_columns="label")
    return {"losses": np.array(losses), "accuracy": np.array(float(measure.eval()))}


def _classifier(body: Any, which: int, row: int, width: int) -> Any:
    """Return a network that classifies by output `which` of its body, all rows' mean or one row."""
    from mindspore import nn

    class Classifier(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.body = body
            self.head = nn.Dense(width, 3)

        def construct(self, words):  # type: ignore[no-untyped-def]
            found = self.body(words)[which]
            if found.ndim == 3:
                found = found.mean(1) if row < 0 else found[:, row]
            return self.head(found)

    return _filled(Classifier())


def _bilstm(jit: bool) -> Arrays:
    from mindnlp.modules import RNNEncoder
    from mindspore import nn

    encoder = RNNEncoder(nn.Embedding(_WORDS, 16), nn.LSTM(16, 12, num_layers=2, batch_first=True, bidirectional=True))
    return _trained(_classifier(encoder, 0, -1, 24), jit)


def _bert_classifier(jit: bool) -> Arrays:
    return _trained(_classifier(_model("bert"), 1, 0, 32), jit)


def _gpt2_classifier(jit: bool) -> Arrays:
    return _trained(_classifier(_model("gpt2"), 0, 11, 32), jit)


def _mobilebert_classifier(jit: bool) -> Arrays:
    return _trained(_classifier(_model("mobilebert"), 1, 0, 32), jit)


for _name, _run in {
    "bilstm": _bilstm,
    "bert": _bert_classifier,
    "gpt2": _gpt2_classifier,
    "mobilebert": _mobilebert_classifier,
}.items():
    case("mindnlp", f"training.{_name}", "training")(lambda run=_run: run(False))
    case("mindnlp", f"training.{_name}.jit", "training")(lambda run=_run: run(True))


# Layers and losses.


@case("mindnlp", "crf", "gradients")
def _crf() -> Arrays:
    from mindnlp.modules import CRF

    network, scores, tags = (
        CRF(5, batch_first=True, reduction="mean"),
        numbers(1, 2, 6, 5),
        ids(2, 2, 6, high=5, low=0).long(),
    )
    for p, seed in zip(network.get_parameters(), (4, 5, 6)):
        p.set_data(numbers(seed, *p.shape))
    lengths = ids(3, 2, high=7, low=3).long()
    score, history = network(scores, None, lengths)
    best = network.post_decode(score, history, lengths)
    found = gradients(network, lambda x: network(x, tags, lengths), scores)
    return {**found, "score": score.asnumpy(), "path": np.concatenate([np.array([int(t) for t in p]) for p in best])}


@case("mindnlp", "attentions", "forward")
def _attentions() -> Arrays:
    import mindspore as ms
    from mindnlp.modules import attentions as part

    q, k, v = numbers(1, 2, 4, 8), numbers(2, 2, 6, 8), numbers(3, 2, 6, 8)
    mask = ms.Tensor(np.random.RandomState(4).randint(0, 2, (2, 4, 6)).astype(bool))
    found = {
        "scaled": part.ScaledDotAttention(0.1)(q, k, v, mask),
        "additive": fill(part.AdditiveAttention(8, 0.1))(q, k, v, mask),
        "linear": fill(part.LinearAttention(4, 6, 8, 0.1))(q, k, v, mask),
        "cosine": part.CosineAttention(0.1)(q, k, v, mask),
        "self": fill(part.SelfAttention(8))(k, k, v, None),
        "binary": part.BinaryAttention()(q, q[:, :, 0] > 0, k, k[:, :, 0] > 0),
    }
    return {name: array for key, one in found.items() for name, array in outputs(one, key).items()}


@case("mindnlp", "losses", "forward")
def _losses() -> Arrays:
    import mindspore as ms
    from mindnlp.modules import CMRC2018Loss, RDropLoss

    lengths = ms.Tensor(np.array([9.0, 7.0], np.float32))
    pad = ms.Tensor(np.array([[True, False, True], [True, True, False]]))
    cmrc = CMRC2018Loss()(ids(1, 2, high=6), ids(2, 2, high=6), lengths, numbers(3, 2, 9), numbers(4, 2, 9))
    drop = RDropLoss("mean")(numbers(5, 2, 3), numbers(6, 2, 3), pad)
    return {"cmrc": cmrc.asnumpy(), "rdrop": drop.asnumpy()}


def _decoder(kind: str) -> Callable[[], Arrays]:
    def run() -> Arrays:
        from mindnlp.modules import RNNDecoder
        from mindspore import nn

        cells = [getattr(nn, f"{kind}Cell")(16 if k else 24, 16) for k in range(2)]
        network = RNNDecoder(
            nn.Embedding(_WORDS, 8), cells, 0.0, 0.0, attention=True, encoder_output_units=16, mode=kind
        )
        state = numbers(2, 2, 3, 16)
        state = (state, numbers(3, 2, 3, 16)) if kind == "LSTM" else state
        mask = ids(4, 3, 5, low=1, high=2)
        return outputs(fill(network).set_train(False)(ids(1, 3, 6), (numbers(5, 3, 5, 16), state, mask)))

    return run


for _name in ("RNN", "GRU", "LSTM"):
    case("mindnlp", f"decoder.{_name.lower()}", "forward")(_decoder(_name))


# Measures and tokenizers.


@case("mindnlp", "measures", "measure")
def _measures() -> Arrays:
    import mindspore as ms
    from mindnlp import metrics

    random = np.random.RandomState(1)
    classes = ms.Tensor(random.uniform(0, 1, (12, 3)).astype(np.float32))
    labels = ms.Tensor(random.randint(0, 3, 12).astype(np.int32))
    words, other = "the cat is on the mat today".split(), "a cat sat on the mat".split()
    found: Arrays = {}
    for name, arguments, given in (
        ("Accuracy", {}, (classes, labels)),
        ("Precision", {}, (classes, labels)),
        ("Recall", {}, (classes, labels)),
        ("F1Score", {}, (classes, labels)),
        ("ConfusionMatrix", {"class_num": 3}, (ms.Tensor(random.randint(0, 3, 12)), labels)),
        ("MatthewsCorrelation", {}, ([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.9, 0.1]], [1, 0, 0, 0])),
        ("PearsonCorrelation", {}, (numbers(1, 8, 1), numbers(2, 8, 1))),
        ("SpearmanCorrelation", {}, (numbers(1, 8, 1), numbers(2, 8, 1))),
        ("Perplexity", {}, (ms.Tensor(random.dirichlet([1] * 4, 6).astype(np.float32)), ids(3, 6, high=4))),
        ("BleuScore", {}, ([words], [[other]])),
        ("RougeN", {"n_size": 2}, (words, [other])),
        ("RougeL", {}, (words, [other])),
        ("Distinct", {}, (words,)),
        ("EmScore", {}, ("this is the best span", ["this is a good span", "this is the best span"])),
    ):
        measure = getattr(metrics, name)(**arguments)
        measure.clear()
        measure.update(*given)
        found[name] = np.asarray(measure.eval(), np.float64)
    return found


@case("mindnlp", "tokenizer", "text")
def _tokenizer() -> Arrays:
    from mindnlp.transforms import BertTokenizer, Lookup, PadTransform
    from mindspore.dataset import GeneratorDataset, text

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "i", "make", "a", "small", "mis", "##take", "when", "work"]
    vocab = text.Vocab.from_list([*words, "##ing", "!", "'", "m"])
    lines = ["I make a small mistake when I'm working!", "A MISTAKE", "work working", "unknown words make"]
    rows = GeneratorDataset(lines, ["text"], shuffle=False)
    rows = rows.map(BertTokenizer(vocab=vocab, lower_case=True, return_token=True))
    rows = rows.map(Lookup(vocab, "[UNK]")).map(PadTransform(16, pad_value=0))
    return {f"ids {i}": row[0] for i, row in enumerate(rows.create_tuple_iterator(output_numpy=True))}
