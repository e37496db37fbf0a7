"""At -1, 0 and 1: the two sides add up to x, and the slope at 0 is one half."""

from byhand.book.entries.contract import Worked

T = "tanh(sqrt(2/pi)*1.044715)"  # tanh u at x = 1
SLOPE = f"(1-{T}**2)/2*sqrt(2/pi)*1.134145"  # x/2 times the derivative of tanh u, at x = 1

worked = Worked(
    inputs={"x": [-1, 0, 1]},
    result=[f"-(1-{T})/2", 0, f"(1+{T})/2"],
    d_result=[1, 1, 1],
    gradients={"x": [f"(1-{T})/2-{SLOPE}", "1/2", f"(1+{T})/2+{SLOPE}"]},
    note={
        "en": "The gates of 1 and -1 add up to one: GELU(1) + GELU(-1) = tanh u.",
        "zh": "1 与 -1 的门之和为一，所以 GELU(1) + GELU(-1) = tanh u。",
    },
)
