"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README."""

# Names that decorated functions know.
import tcdsl.tensors.language  # noqa: F401
from tcdsl.tensors.graph_engine import GraphEngine
from tcdsl.tensors.graphs.engine import use_engine

__all__: list[str] = []

use_engine(GraphEngine())
