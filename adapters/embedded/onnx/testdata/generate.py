"""Writes the small model directory of the tests, tiny/, with ONNX files that are right and wrong.

Needs the Python packages onnx 1.23.2 and numpy. Run it here: python3 generate.py
The state of a token is E[id] + S/8 + (1/2, 0, 0, 0), where E[i][j] = ((7i + 3j) mod 11 − 5)/4 and S is the sum of
E[id] over the tokens of the text that the mask keeps. So padding that is not masked shows in every state.
"""
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "map", "track", "noise", "road", "##s", "turn", "a", "the"]
TINY = pathlib.Path("tiny")


def table(dimension):
    i, j = np.indices((len(WORDS), dimension))
    return (((7 * i + 3 * j) % 11 - 5) / 4).astype(np.float32)


def save(name, dimension=4, types=True, output="last_hidden_state", shape=("texts", "tokens"), ids=T.INT64, mask=True,
         more_inputs=(), more_outputs=(), pooled_only=False, half=False, external=False):
    inputs = [h.make_tensor_value_info("input_ids", ids, shape)]
    shift = np.zeros((2, dimension), np.float32)
    shift[0, 0], shift[1] = 0.5, 9
    weights = [numpy_helper.from_array(table(dimension), "E"), numpy_helper.from_array(shift, "shift"),
               numpy_helper.from_array(np.float32(0.125), "eighth"), numpy_helper.from_array(np.array([1], np.int64), "one"),
               numpy_helper.from_array(np.array([2], np.int64), "two")]
    nodes = [h.make_node("Gather", ["E", "input_ids"], ["words"])]
    if mask:
        inputs.append(h.make_tensor_value_info("attention_mask", T.INT64, shape))
        nodes += [h.make_node("Cast", ["attention_mask"], ["kept"], to=T.FLOAT), h.make_node("Unsqueeze", ["kept", "two"], ["column"]),
                  h.make_node("Mul", ["words", "column"], ["masked"])]
    else:
        nodes.append(h.make_node("Identity", ["words"], ["masked"]))
    if types:
        inputs.append(h.make_tensor_value_info("token_type_ids", T.INT64, shape))
        nodes.append(h.make_node("Gather", ["shift", "token_type_ids"], ["shifts"]))
    else:
        weights.append(numpy_helper.from_array(shift[0], "shifts"))
    nodes += [h.make_node("ReduceSum", ["masked", "one"], ["sum"], keepdims=1), h.make_node("Mul", ["sum", "eighth"], ["part"]),
              h.make_node("Add", ["words", "part"], ["mixed"]), h.make_node("Add", ["mixed", "shifts"], ["states"])]
    kind = T.FLOAT16 if half else T.FLOAT
    nodes.append(h.make_node("Cast", ["states"], [output], to=kind))
    outputs = [h.make_tensor_value_info(output, kind, (*shape, dimension))]
    if pooled_only:
        nodes.append(h.make_node("ReduceMean", [output, "one"], ["sentence_embedding"], keepdims=0))
        outputs = [h.make_tensor_value_info("sentence_embedding", T.FLOAT, (shape[0], dimension))]
    for extra in more_inputs:
        inputs.append(h.make_tensor_value_info(extra, T.INT64, shape))
        nodes.append(h.make_node("Identity", [extra], [extra + "_seen"]))
        outputs.append(h.make_tensor_value_info(extra + "_seen", T.INT64, shape))
    for extra in more_outputs:
        nodes.append(h.make_node("Identity", ["states"], [extra]))
        outputs.append(h.make_tensor_value_info(extra, T.FLOAT, (*shape, dimension)))
    model = h.make_model(h.make_graph(nodes, "tiny", inputs, outputs, weights), opset_imports=[h.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    (TINY / "onnx").mkdir(parents=True, exist_ok=True)
    if external:
        onnx.save(model, TINY / "onnx" / name, save_as_external_data=True, location=name + "_data", size_threshold=100)
    else:
        onnx.save(model, TINY / "onnx" / name)


save("model.onnx")
save("no_types.onnx", types=False, output="output_0")
save("dimension.onnx", dimension=5)
save("extra_input.onnx", more_inputs=["position_ids"])
save("fixed.onnx", shape=(1, 16))
save("int32.onnx", ids=T.INT32)
save("no_mask.onnx", mask=False)
save("half.onnx", half=True)
save("pooled.onnx", output="hidden", pooled_only=True)
save("two_outputs.onnx", output="one_of_two", more_outputs=["two_of_two"])
save("external.onnx", external=True)


def write(name, value):
    path = TINY / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


write("modules.json", [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])
write("1_Pooling/config.json", {"word_embedding_dimension": 4, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True,
                                "pooling_mode_max_tokens": False, "pooling_mode_mean_sqrt_len_tokens": False})
write("sentence_bert_config.json", {"max_seq_length": 10, "do_lower_case": False})
write("tokenizer_config.json", {"model_max_length": 12})
write("config.json", {"_name_or_path": "tests/tiny", "max_position_embeddings": 16})
special = lambda name: {"SpecialToken": {"id": name, "type_id": 0}}
write("tokenizer.json", {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": i, "content": WORDS[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True} for i in range(4)],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing", "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
        "pair": [], "special_tokens": {w: {"id": w, "ids": [WORDS.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")}},
    "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {w: i for i, w in enumerate(WORDS)}}})
