"""An array is exact, close or off, with what that looks like; theirs are found under the names of their programs."""

import zipfile
from itertools import count, islice, repeat

import numpy as np
import pytest

import byhand as bh
import port as building
from byhand.book.port import model, recording, tables, theirs
from byhand.book.port.comparing import compared, difference, of_page
from byhand.book.port.naming import Printed, named, table
from byhand.book.practice.catalogue import catalogue
from byhand.errors import ByhandError, DataError

NAME = "grad/blocks.0.attn.w_qkv"
GPT, LLAMA, MICRO = map(of_page, model.CONFIGS)
W = GPT.named(NAME).array
SHUFFLED = W.reshape(8, 6, 4)[:, [1, 0, 2, 3, 4, 5]].reshape(8, 24)


@pytest.mark.parametrize(
    ("mine", "state", "like"),
    [
        (W, "exact", ""),
        (W.astype("f4"), "close", ""),
        (W.T, "shape", "It is transposed."),
        (-W, "off", "Its sign is wrong."),
        (12 * W, "off", "It is 12 times what it should be."),
        (SHUFFLED, "off", "Its heads are in the order 1, 0, 2, 3, 4, 5."),
        (W.reshape(8, 6, 4).swapaxes(1, 2).reshape(8, 24), "off", "Heads and their columns are exchanged."),
        (0 * W, "off", "It is all zeros."),
        (W + np.eye(8, 24), "off", "Only in columns 0–7."),
        (W + (np.arange(8) == 5)[:, None], "off", "Only in row 5."),
        (W + np.isin(np.arange(24), (0, 9)), "off", "Only in columns 0, 9."),
        (W[:, :3], "shape", ""),
    ],
    ids=[
        "itself",
        "float32",
        "transposed",
        "negative",
        "a sum",
        "heads",
        "split",
        "zeros",
        "columns",
        "a row",
        "two columns",
        "a part",
    ],
)
def test_an_array_is_compared(mine, state, like):
    found = bh.check(NAME, mine)
    assert (found.state, bool(found)) == (state, state in ("exact", "close"))
    assert like in found.said("en")
    assert found.said("zh") != found.said("en")


def test_what_is_no_number_differs_and_its_place_is_named():
    mine = W.copy()
    mine[3, 7] = np.nan
    found = bh.check(NAME, mine)
    assert (found.state, found.index, found.off) == ("off", (3, 7), np.inf)
    assert "Not finite: 1 of 192 numbers.\nOnly in row 3, column 7." in found.said("en")


def test_heads_in_their_order_are_no_likeness():
    ours = GPT.named(NAME)
    mine = W + 1e-9 * np.cos(np.arange(192)).reshape(8, 24)
    found = compared(ours, of_memory({NAME: mine})[NAME], theirs.Counterpart(NAME), GPT, 1e-20)
    assert (found.state, found.like) == ("off", ())


@pytest.mark.parametrize("name", model.CONFIGS)
def test_the_step_of_a_trace_is_the_pages(name):
    config, whole = model.CONFIGS[name], of_page(name)
    network, *batch = model.filled(config=config)
    rates = (model.rate(t, config) for t in count())
    list(islice(model.trained(network, repeat(batch), model.step_of(config), rates), 3))
    for parameter, new in network.parameters().items():
        assert bh.check(f"new/{parameter}", new.data, name), parameter
    assert whole.named("loss").array == model.numbers(config=config)[0]


def test_places_of_keys_that_a_query_does_not_see_are_not_compared():
    scores = np.where(np.tri(6, dtype=bool), GPT.named("blocks.0.attn.scores").array, 7.0)
    assert bh.check("blocks.0.attn.scores", scores).state == "exact"
    assert bh.check("blocks.0.attn.scores", scores.swapaxes(-1, -2)).state == "off"


def test_one_number_or_a_rounded_one_is_no_multiple():
    loss = float(GPT.named("loss").array)
    assert "times" not in bh.check("loss", 2 * loss).said("en")
    assert bh.check("loss", -loss).said("en").endswith("Its sign is wrong.")
    rounded = bh.check("loss", 3.92195838).said("en")
    assert "times" not in rounded
    assert rounded.startswith(f"loss: {3.92195838:.17g} instead of {loss:.17g},")
    assert bh.check(NAME, np.full_like(W, 1e300)).state == "off"


def test_an_array_that_numpy_cannot_have_is_named_by_its_type():
    torch = pytest.importorskip("torch")
    with pytest.raises(DataError, match="bfloat16"):
        bh.check(NAME, torch.zeros(8, 24, dtype=torch.bfloat16))
    with pytest.raises(DataError, match="Convert it"):
        bh.check(NAME, torch.zeros(8, 24, device="meta"))


@pytest.mark.parametrize("mine", ["x", [["a"]], {}, [[1, 2], [3]], 1j])
def test_what_is_no_array_of_numbers_is_refused(mine):
    with pytest.raises(DataError, match="no array of numbers"):
        bh.check(NAME, mine)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(DataError, match="Did you mean grad/wte"):
        bh.check("grad/wtee", W)


def as_theirs(whole, table):
    """Return the arrays of a trace under another program's names, in its layout."""
    found = {}
    for name, counterpart in theirs.counterparts(whole, tables.TABLES[table]).items():
        for kind in ("", "grad/", "m/", "v/", "new/"):
            if kind + counterpart.ours in whole.by_name:
                part = counterpart.part(whole.by_name[kind + counterpart.ours].array)
                found[kind + name] = part.T if counterpart.transposed else part
    return found


def of_memory(arrays):
    return {name: theirs.Theirs(array.shape, lambda array=array: array) for name, array in arrays.items()}


@pytest.mark.parametrize(
    ("whole", "table", "name", "place"),
    [
        (GPT, "gpt2", "h.1.attn.c_attn.weight", (3, 5)),
        (GPT, "nanoGPT", "h.1.attn.c_attn.weight", (3, 5)),
        (GPT, "llm.c", "qkvw.1", (3, 5)),
        (GPT, "nn.TransformerEncoderLayer", "layers.1.self_attn.in_proj_weight", (3, 5)),
        (LLAMA, "llama", "layers.1.self_attn.k_proj.weight", (3, 29)),
        (MICRO, "microgpt", "layer1.attn_wk", (3, 13)),
        (MICRO, "microgpt of the guide", "layer1.wk", (3, 13)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_are_found_under_the_names_of_other_programs(whole, table, name, place):
    arrays = as_theirs(whole, table)
    found = difference(whole, of_memory(arrays))
    assert (found.table, found.wrong, list(found.unknown)) == (table, [], [])
    assert len(found.checked) > 40
    changed = arrays[f"grad/{name}"].copy()
    changed[(5, 3) if table != "gpt2" else place] += 1
    (wrong,) = difference(whole, of_memory({**arrays, f"grad/{name}": changed})).wrong
    assert (wrong.name, wrong.index) == ("grad/blocks.1.attn.w_qkv", place)


def test_names_have_prefixes_and_endings_and_blocks_may_be_in_one():
    arrays = as_theirs(GPT, "nanoGPT")
    given = {
        f"_orig_mod.transformer.{n.partition('/')[2]}.grad": a for n, a in arrays.items() if n.startswith("grad/")
    }
    assert len(difference(GPT, of_memory(given)).checked) == len(given)
    stacked = np.stack([GPT.named(f"grad/blocks.{i}.attn.w_qkv").array.T for i in range(2)])
    found = difference(GPT, of_memory({"grad/qkvw": stacked, "grad/wte": GPT.named("grad/wte").array}))
    assert (found.table, [c.state for c in found.checked], list(found.unknown)) == ("llm.c", ["exact"] * 3, [])


def test_what_no_trace_has_is_not_called_uncompared():
    found = difference(GPT, of_memory({"grad/logits": -GPT.named("grad/logits").array}))
    assert (found.wrong[0].name, found.unchecked) == ("grad/logits", [])


def test_a_trace_is_read_as_it_was_written(tmp_path):
    recording.write(LLAMA, tmp_path, "float64")
    again = recording.read(tmp_path)
    assert (again.of, again.config, len(again.arrays)) == ("llama", LLAMA.config, len(LLAMA.arrays))
    for one, other in zip(LLAMA.arrays, again.arrays, strict=True):
        assert (one.name, one.equation, one.inputs) == (other.name, other.equation, other.inputs)
        np.testing.assert_array_equal(one.array, other.array)


def broken(folder):
    """Yield traces and files that must be refused in one line."""
    wte = GPT.named("wte").array
    np.save(folder / "wte.npy", wte)
    whole = (folder / "wte.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-9])
    (folder / "huge.npy").write_bytes(whole.replace(b"(11, 8), }            ", b"(11, 899999999999999), }"[:22]))
    np.save(folder / "pickled.npy", np.array([{}]), allow_pickle=True)
    np.savez(folder / "pickled.npz", wte=np.array([{}]))
    np.savez(folder / "complex.npz", wte=1j)
    np.savez(folder / "names.npz", one=1)
    np.savez(folder / "good.npz", wte=wte)
    (folder / "cut.npz").write_bytes((folder / "good.npz").read_bytes()[:-30])
    with zipfile.ZipFile(folder / "empty.npz", "w"):
        pass
    (folder / "text.safetensors").write_text("nothing")
    (folder / "text.txt").write_text("nothing")
    yield from (folder / name for name in (
        "cut.npy", "huge.npy", "pickled.npy", "pickled.npz", "complex.npz", "names.npz", "cut.npz", "empty.npz",
        "text.safetensors", "text.txt", "missing", "missing.npz", "missing.npy",
    ))  # fmt: skip


def test_files_that_are_damaged_or_hold_something_else_are_refused(tmp_path):
    for path in broken(tmp_path):
        with pytest.raises(ByhandError) as error:
            difference(GPT, theirs.opened(path))
        assert str(path) in str(error.value) or "none of their 1 names" in str(error.value)
        assert "\n" not in str(error.value)


def test_a_damaged_trace_is_refused(tmp_path):
    recording.write(GPT, tmp_path, "float32")
    index = (tmp_path / "index.txt").read_text()
    for text in (
        index[:-40],
        index.replace("8x24", "8x25"),
        index.replace("8x24", "1x" * 70 + "8x24"),  # more axes than NumPy has
        index.replace("float32", "float16"),
        "",
        "\0",
        index * 2,
    ):
        (tmp_path / "index.txt").write_text(text)
        with pytest.raises(DataError, match="not a whole trace"):
            recording.read(tmp_path)
    for text in (index[:-1], index[:-40], index[:2000]):
        (tmp_path / "index.txt").write_text(text)
        with pytest.raises(DataError, match=r"index\.txt is cut off: it has [0-9]+ of 226 lines"):
            recording.read(tmp_path)


HARD = [
    ("layer_norm.forward", "put eps outside the root", "blocks.0.ln_1"),
    ("attention_scores.forward", "forgot √D", "blocks.0.attn.scores"),
    ("gelu.forward", "used ReLU", "blocks.0.mlp.act"),
    ("layer_norm.vjp", "left out the mean of h: the mean of x was a constant", "grad/blocks.1.x_out"),
    ("mix.vjp", "gave the weights no gradient", "grad/blocks.1.attn.weights"),
    ("adamw.forward", "moved up the gradient", "new/wte"),
]


@pytest.mark.parametrize(("where", "words", "first"), HARD, ids=[first for *_, first in HARD])
def test_of_three_mistakes_that_the_numbers_do_not_name_the_first_array_shows_the_first(where, words, first):
    known = catalogue()
    one = next(m for m in known if m.where == where and m.en == words)
    steps = ("forgot the bias correction", "moved up the gradient", "forgot the weight decay")
    mistakes = [one, *(m for m in known if m.en in steps and m.where == "adamw.forward" and m is not one)][:3]
    given = [Printed.of(f"{x:.9g}") for x in building.numbers_with(*mistakes)]
    answer = named(given, table())
    assert answer.fits < len(given) or all(len(found) != 1 for found in answer.matches)
    wrong = building.numbers_with(*mistakes, of=lambda: of_page.__wrapped__("gpt"))
    found = difference(GPT, of_memory({each.name: each.array for each in wrong.arrays}))
    assert found.wrong[0].name == first
    assert not found.unchecked
