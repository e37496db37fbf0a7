"""Two AdamW steps on two parameters, from zero moments: they show the effect of bias correction."""

from byhand.book.lessons.forward_steps import update_step
from byhand.book.lessons.lesson import Content, Maker, grid, listed, number_text
from byhand.book.words.language import Words

THETA, GRADIENTS, RATE = [1, -2], ([2, "-1/2"], [1, "1/2"]), 0.1
SETTINGS = {"beta1": 0.9, "beta2": 0.99, "eps": 0.0, "weight_decay": 0.1}


@listed(160, "Two steps of AdamW", "AdamW 的两步")
def lesson(array: Maker) -> Content:
    """The first step moves by lr for a gradient of any size; the second shows the moving averages."""
    theta, zero = array(THETA), array([0, 0])
    first, (theta, m, v) = update_step("θ", theta, array(GRADIENTS[0]), zero, zero, RATE, 1, "g_1", **SETTINGS)
    second, _ = update_step("θ'", theta, array(GRADIENTS[1]), m, v, RATE, 2, "g_2", **SETTINGS)
    intro = Words(
        "Both averages start at zero, so after one step m is a tenth and v a hundredth of what it should be; the corrections undo exactly that. "
        "The first step therefore moves each parameter by the learning rate, and by its decay. "
        "eps is left out to keep the numbers simple.",
        "从零开始，m 只有应有值的十分之一，v 只有百分之一，偏差修正恰好补回来。所以第一步中每个参数移动一个学习率，外加权重衰减。为了数字整齐，这里省去 eps。",
    )
    start = (
        ("θ", grid(array(THETA))),
        *((f"g_{t}", grid(array(g))) for t, g in enumerate(GRADIENTS, 1)),
        *((n, number_text(x)) for n, x in (("lr", RATE), *SETTINGS.items())),
    )
    return intro, (first, second), start
