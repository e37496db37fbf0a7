"""How the original program draws tokens, and what it lists about them."""

import numpy as np
import pytest

from byhand.config import ModelConfig
from byhand.errors import DataError
from byhand.interop.seed_program import checkpoint as files
from byhand.interop.seed_program.inspection import check_places, checks, escaped, next_tokens
from byhand.interop.seed_program.sampling import draw, likeliest, text_generator
from byhand.interop.seed_program.training import start
from byhand.model import TinyGPT
from interop import seed_from_facts as facts
from interop.golden import RUN, TEXT, golden
from interop.test_seed_training import SYNTHETIC, dataset

LOGITS = np.log(np.array([0.1, 0.2, 0.3, 0.4], np.float32))
ALL = np.ones(4, bool)
# The ten likeliest bytes after bytes 1000 to 1031 of the text, as the original program printed them.
LIKELIEST = {32: 0.19986, 97: 0.0784274, 101: 0.0750905, 115: 0.0526046, 114: 0.0498588}
LIKELIEST |= {116: 0.048905, 110: 0.0408583, 117: 0.0349916, 105: 0.0269923, 104: 0.0250596}


class Fixed:
    """A generator whose uniform numbers are given; it has no more than these."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def uniform(self, count):
        return np.array([self.numbers.pop(0) for _ in range(count)], np.float32)


@pytest.mark.parametrize(
    ("u", "token"), [(0.0, 0), (0.09, 0), (0.11, 1), (0.29, 1), (0.31, 2), (0.61, 3), (0.9999, 3)]
)
def test_without_top_k_ids_are_in_their_order(u, token):
    assert draw(LOGITS, Fixed(u), 1.0, 0, ALL) == token


@pytest.mark.parametrize(("u", "token"), [(0.0, 3), (0.56, 3), (0.58, 2), (0.999, 2)])
def test_with_top_k_the_likeliest_comes_first(u, token):
    assert draw(LOGITS, Fixed(u), 1.0, 2, ALL) == token


def test_temperature_divides_the_logits():
    # With tau = 1/2 the probabilities are squared and normalised: 1/30, 4/30, 9/30, 16/30.
    assert [draw(LOGITS, Fixed(u), 0.5, 0, ALL) for u in (0.03, 0.04, 0.16, 0.17, 0.46, 0.47)] == [0, 1, 1, 2, 2, 3]


def test_temperature_zero_takes_the_likeliest_and_draws_no_number():
    assert draw(LOGITS, Fixed(), 0.0, 0, ALL) == draw(LOGITS, Fixed(), 1e-300, 0, ALL) == 3
    assert draw(LOGITS, Fixed(0.5), 1e-29, 0, ALL) == 3
    assert draw(np.array([1, 5, 5], np.float32), Fixed(), 0.0, 0, np.ones(3, bool)) == 1


def test_only_allowed_ids_are_drawn():
    allowed = np.array([True, False, True, False])
    assert [draw(LOGITS, Fixed(u), 1.0, 0, allowed) for u in (0.24, 0.26)] == [0, 2]
    assert draw(LOGITS, Fixed(), 0.0, 0, allowed) == 2
    assert draw(LOGITS, Fixed(0.99), 1.0, 3, allowed) == 0


def test_a_number_on_the_border_belongs_to_the_next_token():
    assert draw(np.zeros(2, np.float32), Fixed(0.5), 1.0, 0, np.ones(2, bool)) == 1


def test_rounding_never_gives_a_token_without_weight():
    largest = 1 - 2.0**-24
    for count in range(2, 40):  # for some of these, `count` equal float32 weights add up to less than `largest`
        logits = np.zeros(count + 2, np.float32)
        logits[-2:] = -1000
        assert draw(logits, Fixed(largest), 1.0, 0, np.ones(count + 2, bool)) == count - 1


def test_text_has_its_own_generator():
    theirs = facts.Xorshift(7 ^ 0xABCDEF123456)
    assert text_generator(7).uniform(3).tolist() == [float(theirs.unit()) for _ in range(3)]


def test_equal_probabilities_rank_by_id():
    assert [token for token, _ in likeliest(np.array([1, 2, 1, 2], np.float32), 4)] == [1, 3, 0, 2]


def test_escapes():
    content = b"a'\\\n\t\r\x0e\xff~"
    assert escaped(content) == r"a\'\\\n\t\r\x0E\xFF~"
    assert escaped(content, kept=b"\n\t'") == "a'\\\\\n\t\\r\\x0E\\xFF~"


def test_a_list_of_next_tokens():
    assert list(next_tokens(LOGITS, 2)) == [
        "Top-2 next tokens",
        r"  1) id=3  p=0.4  tok='\x03'",
        r"  2) id=2  p=0.3  tok='\x02'",
    ]
    assert len(list(next_tokens(LOGITS, 99))) == 5


@golden
def test_the_golden_check():
    model = files.load(str(RUN)).model
    text = dataset(TEXT.read_bytes())
    lines = list(checks(model, text, [1000], 32, 10, 0))
    assert lines[1:4] == [
        "  expected next: id=100 tok='d'",
        "  pred top1:    id=32 tok=' '  [MISMATCH]",
        "Top-10 next tokens",
    ]
    listed = {int(line.split("id=")[1].split()[0]): float(line.split("p=")[1].split()[0]) for line in lines[4:]}
    assert list(listed) == list(LIKELIEST)
    assert list(listed.values()) == pytest.approx(list(LIKELIEST.values()), abs=1e-5)
    assert lines[4].startswith("  1) id=32  p=0.1998")
    assert lines[4].endswith("  tok=' '")


def model_that_says(token, seq_len=8) -> TinyGPT:
    model = start(ModelConfig(seq_len=seq_len, d_model=4), 0.01, 1).model
    model.parameters()["lm_head.b"].data[token] = 100.0
    return model


def test_checks_count_what_is_right():
    text = dataset(b"ab" * 20)
    lines = list(checks(model_that_says(ord("a")), text, check_places(text, 4, 3, 8, 0, 1), 3, 1, 2))
    assert [line for line in lines if line.startswith("Sanity check ")] == [
        f"Sanity check {n + 1}/4  offset={n}  ctx=3" for n in range(4)
    ]
    assert lines[1:6] == [
        "  context tail: 'ba'",
        "  expected next: id=98 tok='b'",
        "  pred top1:    id=97 tok='a'  [MISMATCH]",
        "Top-1 next tokens",
        "  1) id=97  p=1  tok='a'",
    ]
    assert lines[9] == "  pred top1:    id=97 tok='a'  [OK]"
    assert lines[-1] == "Sanity checks: 2 of 4 OK"


def test_random_places_are_decided_by_the_seed():
    text = dataset(SYNTHETIC)
    theirs = facts.Xorshift(9 ^ 0x51514E455854)
    expected = [theirs.between(0, len(SYNTHETIC) - 8 - 1) for _ in range(3)]
    assert check_places(text, 3, 8, 8, None, 9) == expected


def test_the_last_place_and_the_one_after_it():
    text = dataset(SYNTHETIC)
    last = len(SYNTHETIC) - 9
    assert check_places(text, 2, 8, 8, last - 1, 1) == [last - 1, last]
    assert list(checks(model_that_says(65), text, [last], 8, 1, 0))
    with pytest.raises(DataError, match=f"Use at most {last}"):
        check_places(text, 1, 8, 8, last + 1, 1)
    with pytest.raises(DataError, match="seq_len is 8"):
        check_places(text, 1, 9, 8, 0, 1)
    with pytest.raises(DataError, match="too few"):
        check_places(dataset(b"abc"), 1, 3, 8, None, 1)
