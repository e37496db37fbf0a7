"""One step on a matrix of norm 5 whose rows are at right angles: A is diagonal, so a step only stretches the rows."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.catalogue import slips
from byhand.book.practice.edits import first, rest
from byhand.book.words.language import Words

entry = Entry(
    stem="orthogonalise",
    title_zh="正交化（牛顿–舒尔茨迭代）",
    meanings_zh={"g": "矩阵"},
    result_zh="近似正交的矩阵",
    inputs={"g": [[2, 1], [-2, 4]]},
    static={"steps": 1, "eps": 0.0},
    result=[["64269/62500", "64269/125000"], ["-46233/125000", "46233/62500"]],
    d_result=[[1, 0], [0, 0]],
    gradients={"g": [["88263/625000", "10317/312500"], ["37293/312500", "-11997/625000"]]},
    note=(
        "The rows of G / 5 have lengths √0.2 and √0.8, which are its singular values. "
        "The step makes them 1.15 and 0.83: the short one overtakes the long one, and both are near 1."
    ),
    note_zh="G / 5 两行的长度为 √0.2 与 √0.8，即奇异值。一步之后约为 1.15 与 0.83：短的超过了长的，两者都接近 1。",
    goal=Words(
        "Bring all singular values of a matrix near 1 and keep its directions.",
        "让矩阵的奇异值都接近 1，方向不变。",
    ),
    why=Words(
        "X Xᵀ X has the singular vectors of X and the cubes of its singular values, so an odd polynomial of the matrix applies that polynomial to each singular value, without computing one. "
        "Its slope of 3.4445 at 0 lifts small values fast; five steps need only matrix products. "
        "All but the smallest values end between about 0.7 and 1.2: near enough.",
        "X Xᵀ X 与 X 的奇异向量相同，奇异值为其立方，所以对矩阵施加奇次多项式，就是对每个奇异值施加它，而无需算出奇异值。"
        "它在 0 处的斜率为 3.4445，小的奇异值很快被放大；五步只需矩阵乘法。最后奇异值约在 0.7 与 1.2 之间，已经足够接近 1。",
    ),
    place=("learning", 3),
    asked=(
        "newton-schulz, newton schulz, zeropower_via_newtonschulz5, NS5, polar decomposition, polar factor, "
        "matrix sign, orthogonalize, orthogonalization, orthogonal update, 牛顿-舒尔茨, 牛顿舒尔茨, 正交化, 极分解"
    ),
    settings={"eps": r"\epsilon"},
    notations=(
        r"X \leftarrow a X + (b A + c A^2) X",
        "X = a * X + B @ X",
        r"\varphi(x) = a x + b x^3 + c x^5",
    ),
    mistakes=slips("orthogonalise.forward", no_products=first, no_ax=rest),
)
