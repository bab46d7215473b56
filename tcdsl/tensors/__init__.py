"""Tensors of lazily computed graphs: leaves, nodes, parameters, layers, code and routines. See the README."""

from tcdsl.tensors.engine import use_engine
from tcdsl.tensors.graph_engine import GraphEngine

__all__: list[str] = []

use_engine(GraphEngine())
