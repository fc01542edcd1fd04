"""Safe expressions: parsed to a syntax tree, checked against a whitelist, then interpreted.

They serve the formulas, references and surrogates of specs, and ``--inputs "randn(3, 4), None"``.
A text that is not in the whitelist is refused when it is compiled; what it would allocate is
bounded when it runs. Compiling never imports torch.
"""

from gradlint.expressions._arguments import Arguments, parse_arguments
from gradlint.expressions._compile import Expression, compile_expression
from gradlint.expressions._limits import ExpressionError
from gradlint.expressions._nearest import nearest
from gradlint.expressions._vocabulary import ATTRIBUTES, CONSTANTS, DTYPES, FUNCTIONS, METHODS

__all__ = [
    "ATTRIBUTES",
    "CONSTANTS",
    "DTYPES",
    "FUNCTIONS",
    "METHODS",
    "Arguments",
    "Expression",
    "ExpressionError",
    "compile_expression",
    "nearest",
    "parse_arguments",
]
