"""Checkpoints of nanoGPT: what is refused, without torch."""

import io
import pickle
import pickletools
import zipfile
from contextlib import suppress
from dataclasses import dataclass, replace
from pickletools import genops

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byhand.errors import DataError
from byhand.interop import exchange
from byhand.interop.nanogpt import checkpoint as nanogpt
from byhand.interop.nanogpt.pickled import NotTensors, loaded
from byhand.model import TinyGPT


def archive(path, files, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


CALLED = [
    (b"cbuiltins\nbytearray\n", "builtins bytearray"),
    (b"ccollections\nCounter\n", "collections Counter"),
    (b"ctorch\nSize\n", "torch Size"),
    (b"c_codecs\nencode\n", "_codecs encode"),
    (b"(ibuiltins\nset\n", "builtins set"),
    (b"X\x08\0\0\0builtinsX\x04\0\0\0eval\x93", "STACK_GLOBAL"),
    (b"\x82\x01", "EXT1"),
]


@pytest.mark.parametrize(("opcodes", "named"), CALLED, ids=[named for _, named in CALLED])
def test_a_pickle_that_calls_anything_but_what_makes_tensors_is_refused(opcodes, named, tmp_path):
    """torch would call some of them with sizes from the file: `bytearray(8 << 30)`."""
    path = archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02" + opcodes + b"."})
    assert f"holds '{named}' besides tensors and plain values" in refused(path)


def refused(path):
    with pytest.raises(DataError) as error:
        exchange.read(path)
    assert str(error.value).isprintable()
    return str(error.value)


def doubled(levels, found=()):
    """Return tuples, or lists, of which each holds the one before twice; its hash takes 2^levels steps."""
    for _ in range(levels - 1):
        found = type(found)([found, found])
    return found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=5).map(tuple)
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | inner.map(lambda value: (value, [value], value))
    ),
)


@given(VALUES)
def test_plain_values_are_those_that_were_pickled(value):
    assert loaded(pickle.dumps(value, 2)) == value


def test_a_pickle_takes_steps_by_its_size_and_hashes_strings_alone(monkeypatch):
    """Nested tuples and colliding integers as keys, lists in lists: no step looks into a value."""
    steps = 0

    def counted(content):
        nonlocal steps
        for found in genops(content):
            steps += 1
            yield found

    monkeypatch.setattr(pickletools, "genops", counted)
    colliding = {k * (2**61 - 1): k for k in range(50)}  # all have the hash 0
    key = pickle.dumps(doubled(100), 2)[2:-1]
    content = pickle.dumps([colliding, doubled(100, [])], 2)[:-1] + b"}" + key + b"K\x01s\x86."
    (first, _), second = loaded(content)
    assert (first, second) == ({"": 49}, {"": 1})
    assert steps <= len(content)


@given(st.binary(max_size=40))
def test_what_is_no_pickle_is_a_value_error(content):
    with suppress(ValueError, NotTensors):
        loaded(b"\x80\x02" + content + b".")


@pytest.mark.parametrize(
    ("files", "method"),
    [
        ({"archive/version": b"3"}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"", "other/data.pkl": b""}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\0" * 100_000}, zipfile.ZIP_DEFLATED),
        ({"archive/data.pkl": pickle.dumps([bytes(1 << 22)])}, zipfile.ZIP_STORED),
        ({"archive/x/data.pkl": b"\x80\x02}.", "archive/DATA.PKL": b"\x80\x02}."}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\x80\x02}.", "archive/DATA.PKL": b"\x80\x02}."}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\x80\x02}.", "archive/data/K": b"", "archive/data/k": b""}, zipfile.ZIP_STORED),
        ({"data.pkl": b"\x80\x02}.", "archive/data.pkl": b"\x80\x02}."}, zipfile.ZIP_STORED),
        ({"archive/data.pkl": b"\x80\x02}.", "archive/byteorder": b"big"}, zipfile.ZIP_STORED),
    ],
)
def test_a_zip_that_torch_would_not_write_is_refused(files, method, tmp_path):
    assert "is not a complete torch checkpoint" in refused(archive(tmp_path / "ckpt.pt", files, method))


def test_a_zip_that_is_cut_is_refused(tmp_path):
    path = archive(tmp_path / "ckpt.pt", {"archive/data.pkl": b"\x80\x02}."})
    path.write_bytes(path.read_bytes()[:-10])
    assert "is not a complete torch checkpoint" in refused(path)


class Named:
    """A function of torch, by its name alone."""

    def __init__(self, name):
        self.name = name

    def __call__(self):
        raise AssertionError


@dataclass
class Tensor:
    """A tensor that is saved: numbers in the file `key`, and how they are laid out."""

    shape: tuple
    strides: tuple
    key: str
    count: int
    begin: int = 0
    kind: str = "Float"
    negated: bool = False

    def __reduce_ex__(self, protocol):
        named = Named("torch._utils\n_rebuild_tensor_v2")
        return named, (
            Storage(self),
            self.begin,
            self.shape,
            self.strides,
            False,
            {},
            *[{"neg": True}] * self.negated,
        )


@dataclass
class Storage:
    tensor: Tensor


class Writer(pickle._Pickler):
    """Writes what torch.save writes, without torch."""

    def persistent_id(self, value):
        if isinstance(value, Storage):
            t = value.tensor
            return "storage", Named(f"torch\n{t.kind}Storage"), t.key, "cpu", t.count
        return None

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Named):
            self.write(b"c" + value.name.encode() + b"\n")
        else:
            super().save(value, save_persistent_id)


def pickled(value):
    content = io.BytesIO()
    Writer(content, 2).dump(value)
    return content.getvalue()


SIZES = {"n_layer": 1, "n_head": 1, "n_embd": 4, "block_size": 3, "vocab_size": 5, "bias": False}
SHAPES = {
    "wte": (5, 4), "wpe": (3, 4), "h.0.ln_1": (4,), "h.0.attn.c_attn": (12, 4), "h.0.attn.c_proj": (4, 4),
    "h.0.ln_2": (4,), "h.0.mlp.c_fc": (16, 4), "h.0.mlp.c_proj": (4, 16), "ln_f": (4,),
}  # fmt: skip


def rows(shape):
    """Return the strides of a contiguous array, in numbers."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


def checkpoint(place, change=lambda tensors: None, **more):
    """Write a checkpoint of a tiny model, and return its path and its arrays."""
    rng = np.random.default_rng(0)
    arrays = {f"transformer.{name}.weight": rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}
    tensors = {
        name: Tensor(array.shape, rows(array.shape), str(number), array.size)
        for number, (name, array) in enumerate(arrays.items())
    }
    tensors["lm_head.weight"] = tensors["transformer.wte.weight"]
    change(tensors)
    content = pickled({"model": tensors, "model_args": SIZES, "iter_num": 3, **more})
    files = {f"ckpt/data/{number}": array.tobytes() for number, array in enumerate(arrays.values())}
    return archive(place / "ckpt.pt", {"ckpt/data.pkl": content, "ckpt/byteorder": b"little", **files}), arrays


def test_a_checkpoint_is_read_without_torch(tmp_path):
    path, arrays = checkpoint(tmp_path)
    found = exchange.read(path)
    assert (found.config.d_model, found.config.mlp_bias, found.config.seq_len) == (4, False, 3)
    assert np.array_equal(found.arrays["wte"], arrays["transformer.wte.weight"])
    assert np.array_equal(found.arrays["blocks.0.mlp.w_out"], arrays["transformer.h.0.mlp.c_proj.weight"].T)
    assert not found.arrays["ln_f.bias"].any()


def test_a_model_without_biases_trains_none(tmp_path):
    """Clipping and updates are those of a model that has no biases: the norms' stay 0."""
    found = exchange.read(checkpoint(tmp_path)[0])
    model = TinyGPT(found.config, arrays=found.arrays)
    model.loss([[0, 1, 2]], [[1, 2, 3]]).backward()
    biases = {name for name in found.arrays if name.endswith(".bias")}
    assert biases == {f"{name}.bias" for name in ("blocks.0.ln_1", "blocks.0.ln_2", "ln_f")}
    assert {name for name, p in model.parameters().items() if p.grad is None} == biases


def with_meta(place, meta, dataset="chars"):
    """Return a checkpoint in an out folder beside the data folder with a meta.pkl."""
    (place / "out").mkdir()
    path, _ = checkpoint(place / "out", config={"dataset": dataset})
    (place / "data" / "chars").mkdir(parents=True)
    (place / "data" / "chars" / "meta.pkl").write_bytes(meta)
    return path


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_its_characters_are_its_tokenizer(protocol, tmp_path):
    characters = "\n ~é你"
    ids = {text: token for token, text in enumerate(characters)}
    meta = {"vocab_size": 5, "itos": dict(enumerate(characters)), "stoi": ids}
    path = with_meta(tmp_path, pickle.dumps(meta, protocol))
    tokenizer = exchange.imported(path)[1]
    text = "你~\n é é"
    assert tokenizer.encode(text) == [ids[each] for each in text]
    assert tokenizer.decode(range(5)).decode() == characters
    assert tokenizer.count_bytes(np.arange(5)) == len(characters.encode())
    with pytest.raises(DataError, match="has 5 tokens, too few for bytes"):
        exchange.imported(path, "bytes")


@pytest.mark.parametrize(
    "meta",
    [
        {"vocab_size": 5}, {"stoi": {"a": 0}}, {"stoi": dict.fromkeys("abcde", 0)}, [1],
        {"stoi": {c: i for i, c in enumerate(["ab", *"cdef"])}},
        {"stoi": {c: float(i) for i, c in enumerate("abcde")}},
        {"stoi": {c: i for i, c in enumerate("abcd\ud800")}}, {"stoi": {c: i for i, c in enumerate("abcdef")}},
    ],
    ids=str,
)  # fmt: skip
def test_a_meta_pkl_of_another_model_is_refused(meta, tmp_path):
    content = pickle.dumps(meta)
    with pytest.raises(DataError, match=r"meta\.pkl does not say 5 characters and their ids"):
        exchange.imported(with_meta(tmp_path, content))


@pytest.mark.parametrize("dataset", [None, "../../chars", "elsewhere"])
def test_a_model_of_characters_without_them_says_where_they_are(dataset, tmp_path):
    path = with_meta(tmp_path, b"", dataset)
    with pytest.raises(DataError, match=r"lacks meta\.pkl, which has the characters of its 5 tokens\. Copy"):
        exchange.imported(path)


def test_negated_numbers_and_any_stride_of_a_single_row_are_read(tmp_path):
    name = "transformer.h.0.mlp.c_proj.weight"
    path, arrays = checkpoint(tmp_path, lambda tensors: tensors.update({name: replace(tensors[name], negated=True)}))
    assert np.array_equal(exchange.read(path).arrays["blocks.0.mlp.w_out"], -arrays[name].T)
    assert loaded(pickled(Tensor((1, 4), (9, 1), "0", 4))).contiguous
    assert not loaded(pickled(Tensor((2, 4), (9, 1), "0", 13))).contiguous


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"strides": (0, 0)}, "a number of its own for each element"),  # 6 KB could say 19 GB
        ({"strides": (0, 1)}, "a number of its own for each element"),
        ({"strides": (1, 4)}, "a number of its own for each element"),
        ({"begin": 1}, "a number of its own for each element"),
        ({"shape": (1 << 40, 4)}, "a number of its own for each element"),
        ({"count": 1 << 40}, "is missing"),
        ({"count": 15}, "is missing"),
        ({"key": "9"}, "is missing"),
        ({"key": "../data.pkl"}, "is missing"),
        ({"key": "1", "count": 12, "shape": (3, 4)}, "has the shape (3, 4)"),
        ({"kind": "Int"}, "is not a tensor of real numbers"),
        ({"kind": "Half"}, "is missing"),
        ({"shape": (-4, -4)}, "not a complete torch checkpoint"),
        ({"strides": (4,)}, "not a complete torch checkpoint"),
        ({"count": -1}, "not a complete torch checkpoint"),
        ({"key": 4}, "not a complete torch checkpoint"),
    ],
)
def test_tensors_without_numbers_of_their_own_are_refused_before_anything_is_made(changes, words, tmp_path):
    name = "transformer.h.0.attn.c_proj.weight"
    path, _ = checkpoint(tmp_path, lambda tensors: tensors.update({name: replace(tensors[name], **changes)}))
    assert words in refused(path)


def test_tensors_of_the_same_numbers_are_no_larger_than_the_file(tmp_path, monkeypatch):
    """Only the LM head may share: a file of one matrix would be a model of a thousand blocks."""
    shared = Tensor((16, 4), (4, 1), "6", 64)
    monkeypatch.setattr(nanogpt, "from_theirs", lambda *_: pytest.fail("arrays were made"))
    monkeypatch.setattr(nanogpt, "require_tensors", lambda *_: None)
    names = [f"h.{block}.mlp.c_fc.weight" for block in range(1, 99)]
    path, _ = checkpoint(tmp_path, lambda tensors: tensors.update(dict.fromkeys(names, shared)))
    assert "several tensors share data" in refused(path)


def test_one_file_of_numbers_has_one_type():
    """torch takes the type that it meets first."""
    one = Tensor((4,), (1,), "0", 4)
    assert loaded(pickled([one, one]))[1].contiguous
    with pytest.raises(ValueError, match="two storages"):
        loaded(pickled([one, replace(one, kind="Int")]))


@given(st.binary(max_size=4), st.integers(0, 2000))
def test_a_damaged_pickle_is_refused_or_read(part, place):
    content = pickled({"model": {"a": Tensor((2, 2), (2, 1), "0", 4)}, "model_args": SIZES})
    place %= len(content)
    with suppress(ValueError, NotTensors):
        loaded(content[:place] + part + content[place + len(part) :])


def test_a_file_that_reaches_past_the_end_of_its_zip_is_refused(tmp_path):
    """The directory says that the pickle is longer than the data after its header."""
    path = tmp_path / "ckpt.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("ckpt/data.pkl", pickled({"model": {}, "model_args": SIZES}))
    content = bytearray(path.read_bytes())
    name = content.index(b"data.pkl", content.index(b"PK\x01\x02"))
    entry = content.rindex(b"PK\x01\x02", 0, name)
    for field in (20, 24):  # compressed and plain size
        content[entry + field : entry + field + 4] = (len(content) - 1).to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(content)) as found, pytest.raises((EOFError, zipfile.BadZipFile)):
        found.read(found.infolist()[0])
    path.write_bytes(content)
    assert "not a complete torch checkpoint" in refused(path)
