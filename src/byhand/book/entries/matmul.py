"""A matrix times the swap of two columns."""

from byhand.book.entries.contract import Entry
from byhand.book.practice.edits import Asked, row_times_column, transposed
from byhand.book.words.language import Words
from byhand.engine.terms import Term, product


def _element_by_element(term: Term, at: Asked) -> Term | None:
    a, b = at.inputs
    return product((at.read(0, "A"), at.read(1, "B"))) if a.shape == b.shape else None


def _matmul_untransposed(term: Term, at: Asked) -> Term | None:
    a, b = at.inputs
    left, right = (at.d, b) if at.slot == 0 else (a, at.d)
    return row_times_column(left, right, at.index) if a.shape == b.shape == at.d.shape else None


entry = Entry(
    stem="matmul",
    title_zh="矩阵乘法",
    meanings_zh={"a": "左因子", "b": "右因子"},
    result_zh="积",
    inputs={"a": [[1, 2], [3, 4]], "b": [[0, 1], [1, 0]]},
    result=[[2, 1], [4, 3]],
    d_result=[[1, 0], [0, 1]],
    gradients={"a": [[0, 1], [1, 0]], "b": [[1, 3], [2, 4]]},
    note="With the identity as cotangent, the gradients are the transposes of the other factors.",
    note_zh="当传回的梯度是单位矩阵时，每个因子的梯度就是另一个因子的转置。",
    goal=Words(
        "Multiply two matrices: take the dot product of every row of A with every column of B.",
        "两个矩阵相乘：A 的每一行与 B 的每一列做点积。",
    ),
    why=Words(
        "Y[m,n] measures how well row m of A matches column n of B. "
        "The rows of A must be as long as the columns of B; the sum runs along both, so this length does not appear in the result.",
        "Y[m,n] 衡量 A 的第 m 行与 B 的第 n 列的匹配程度。A 的一行与 B 的一列必须一样长；求和沿着这一长度进行，所以它不出现在结果中。",
    ),
    why_back_of={
        "a": Words(
            "A[m,k] is multiplied by B[k,n] in every Y[m,n] of its row, so ∂A[m,k] adds up ∂Y[m,n] × B[k,n] over n: "
            "a row of ∂Y times a row of B, which is a column of B transposed.",
            "A[m,k] 在所在行的每个 Y[m,n] 中都与 B[k,n] 相乘；把各列 n 的 ∂Y[m,n] × B[k,n] 加起来，就是∂A[m,k]：∂Y 的一行与 B 的一行做点积，而 B 的一行就是 B 转置后的一列。",
        ),
        "b": Words(
            "B[k,n] is multiplied by A[m,k] in every Y[m,n] of its column, so ∂B[k,n] adds up A[m,k] × ∂Y[m,n] over m: "
            "a column of A, which is a row of A transposed, times a column of ∂Y.",
            "B[k,n] 在所在列的每个 Y[m,n] 中都与 A[m,k] 相乘；把各行 m 的 A[m,k] × ∂Y[m,n] 加起来，就是∂B[k,n]：A 的一列与 ∂Y 的一列做点积，而 A 的一列就是 A 转置后的一行。",
        ),
    },
    why_back_of_row={
        "a": Words(
            "A[k] is multiplied by B[k,n] in every Y[n], so ∂A[k] adds up ∂Y[n] × B[k,n] over n.",
            "A[k] 在每个 Y[n] 中都与 B[k,n] 相乘；把各列 n 的 ∂Y[n] × B[k,n] 加起来，就是 ∂A[k]。",
        ),
        "b": Words(
            "In column j of the result, B[k,j] is multiplied by A[k], so ∂B[k,j] = A[k] × ∂Y[j].",
            "在结果的第 j 列中，B[k,j] 与 A[k] 相乘，所以 ∂B[k,j] = A[k] × ∂Y[j]。",
        ),
    },
    on_paper=(r"Y = A B", r"\partial A = \partial Y\, B^{\top}, \quad \partial B = A^{\top} \partial Y"),
    place=("arrays", 3),
    torch="torch.matmul(a, b)",
    asked=(
        "torch.matmul, torch.mm, torch.bmm, np.dot, matrix multiply, multiply two matrices, "
        "gradient of a matrix product, 矩阵相乘, 矩阵乘法的梯度"
    ),
    notations=("X W", "C = A B", r"(AB)_{ij} = \sum_k a_{ik} b_{kj}"),
    mistakes=(
        ("used the transposed right factor", "右边的矩阵用成了转置", transposed(1)),
        ("multiplied element by element", "按元素相乘了", _element_by_element),
    ),
    gradient_mistakes=(("forgot to transpose", "忘了转置", _matmul_untransposed),),
)
