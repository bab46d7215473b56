"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README."""

# Names that decorated functions know.
import tcdsl.tensors.language  # noqa: F401
from tcdsl.tensors.engine import use_engine
from tcdsl.tensors.graph_engine import GraphEngine

__all__: list[str] = []

use_engine(GraphEngine())
