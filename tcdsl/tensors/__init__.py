"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README."""

from tcdsl.tensors.graphs.engine import ENGINE
from tcdsl.tensors.language import LaterFunction

__all__: list[str] = []

ENGINE.operators = LaterFunction("operators", "tcdsl.tensors.graphs.graph_operators")
ENGINE.evaluate = LaterFunction("evaluate", "tcdsl.tensors.linking.asked_values")
ENGINE.staged = LaterFunction("staged", "tcdsl.tensors.staging.fragments")
ENGINE.settled = LaterFunction("settled", "tcdsl.tensors.staging.fragments")
ENGINE.reduced = LaterFunction("reduced", "tcdsl.tensors.tensor_pickling")
ENGINE.restore_memory = LaterFunction("restore_memory", "tcdsl.tensors.tensor_pickling")
