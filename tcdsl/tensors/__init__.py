"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README.

Decorated functions know the functions of the language that make such tensors without an import.
"""

from tcdsl.frontend.names.language_functions import LANGUAGE_FUNCTIONS, LaterFunction, register_functions
from tcdsl.tensors.graphs.node_operations import ENGINE

__all__ = ["LANGUAGE_FUNCTIONS"]

ENGINE.operators = LaterFunction("operators", "tcdsl.tensors.graphs.graph_operators")
ENGINE.evaluate = LaterFunction("evaluate", "tcdsl.tensors.graph_linking.asked_values")
ENGINE.staged = LaterFunction("staged", "tcdsl.tensors.graph_staging.fragments")
ENGINE.settled = LaterFunction("settled", "tcdsl.tensors.graph_staging.fragments")
ENGINE.reduced = LaterFunction("reduced", "tcdsl.tensors.tensor_pickling")
ENGINE.restore_memory = LaterFunction("restore_memory", "tcdsl.tensors.tensor_pickling")

register_functions(
    {name: LaterFunction(name, "tcdsl.tensors.graphs.literals") for name in ("batch", "number", "tensor")}
)
register_functions({"constraints_only": LaterFunction("constraints_only", "tcdsl.tensors.graphs.shape_constraints")})
register_functions({"param": LaterFunction("param", "tcdsl.tensors.functions.parameters")})
