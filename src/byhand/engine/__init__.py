"""The engine applies equations, records them, and walks back. It knows no transformer and no equation by name."""

from byhand.engine.backward import BackwardStep as BackwardStep
from byhand.engine.backward import backward as backward
from byhand.engine.backward import walk_back as walk_back
from byhand.engine.context import interpreting as interpreting
from byhand.engine.context import scope as scope
from byhand.engine.equation import Composite as Composite
from byhand.engine.equation import Equation as Equation
from byhand.engine.equation import Symbol as Symbol
from byhand.engine.equation import registry as registry
from byhand.engine.gradcheck import gradcheck as gradcheck
from byhand.engine.interpreter import Evaluate as Evaluate
from byhand.engine.interpreter import Record as Record
from byhand.engine.interpreter import no_grad as no_grad
from byhand.engine.node import Node as Node
from byhand.engine.node import Variable as Variable
from byhand.engine.tensor import Tensor as Tensor
from byhand.engine.terms import Term as Term
