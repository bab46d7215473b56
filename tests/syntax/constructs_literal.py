# tcdsl: literal
"""The examples of OCANNL's notation in the literal spelling, each named after what it shows."""

from dataclasses import dataclass

import tcdsl as tc
from tcdsl import cd, op

# -- the syntax of operations
# -----------------------------------------------------------------------------------------


def layer_of_parameters(hid_dim):
    w = tc.param("w")
    b = tc.param("b", o=hid_dim)

    @op
    def layer(x): return relu(w @ x + b)

    return layer


@op
def mlp_layer_of_hid_dim(x, *, hid_dim):
    return relu("w" @ x + "b" hid_dim)


@op
def initial_values():
    return "a" [-4] + "b" [2]


@op
def initial_number(x):
    return "a" 0.5 *. x


@op
def output_axes_by_a_tuple(x, *, h, w):
    return "b" (h, w) + x


# -- the syntax of code
# ------------------------------------------------------------------------------------------------


@cd
def tensor_multiplication(c, a, b):
    c =:+ a * b ~logic:"@"


@cd
def pointwise_update(p, *, learning_rate):
    p =+ learning_rate * p.grad ~logic:"."


@cd
def update_by_an_expression(p, *, learning_rate):
    p =+ learning_rate *. p.grad


@cd
def sgd_one(p, *, learning_rate, momentum=0.0, weight_decay=0.0, nesterov=False):
    "sgd_delta" =: p.grad + (!.weight_decay *. p)
    if momentum > 0.0:
        "sgd_momentum" =: (!.momentum *. sgd_momentum) + sgd_delta
        if nesterov:
            sgd_delta =+ !.momentum *. sgd_momentum
        else:
            sgd_delta =: sgd_momentum
    p =- learning_rate *. sgd_delta


# -- literals
# ----------------------------------------------------------------------------------------------------------


@op
def matrix_literal():
    return tensor([ (1, 2, 3); (4, 5, 6) ])


@op
def batch_literal():
    return tensor([| [1; 2]; [3; 4]; [5; 6] |])


@op
def labels_of_dimensions():
    return ("hey" @ 'q' 2.0) + 'p' 1.0


@op
def wildcard(x, y):
    z = "w" @ x
    _ = z + y
    return z


# -- the generalized einsum notation
# -----------------------------------------------------------------------------------


@op
def scalar_loss(margin_loss, *, batch_size):
    return (margin_loss ++ "...|... => 0") /. !..batch_size


@op
def contraction(a, b):
    return a *+ "ij;jk=>ik" b


@op
def slice_at(data, batch_n):
    return data @| batch_n


@cd
def expand_with_ones(lhs, rhs):
    lhs =:* rhs ~logic:"...|... => ...|...2"


# -- arrays of a tensor
# ------------------------------------------------------------------------------------------------


@cd
def merge_gradients(p):
    p.grad =+ p.grad.merge


@cd
def accessors(p):
    p.value =: p.value *. 2.0
    p.grad =: p.grad + p.merge


@cd
def block_comments(p):
    ~~("space" "separated" "comment" "tensor p debug_name:" p)
    p =: p + 1.0


@cd
def scopes_of_comments(p):
    ~~("step" "of" p; p =+ 1.0)
    ~~("two lines";
       "d" =: p *. 2.0;
       p =- d
    )


# -- layers
# ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MlpLayerConfig:
    label: tuple[str, ...]
    hid_dim: int


@op
def mlp_layer(x, *, config):
    return relu("w" @ x + "b" config.hid_dim)


@dataclass(frozen=True)
class TlpConfig:
    label: tuple[str, ...]
    dim1: int
    dim2: int
    dim3: int


@op
def three_layer_perceptron(x, *, config):
    return mlp_layer(
        mlp_layer(
            mlp_layer(x, config=MlpLayerConfig(("L1",), config.dim1)), config=MlpLayerConfig(("L2",), config.dim2)
        ),
        config=MlpLayerConfig(("L3",), config.dim3),
    )


@dataclass(frozen=True)
class MlpConfig:
    label: tuple[str, ...]
    hid_dims: tuple[int, ...]


def mlp(config):
    layers = [
        mlp_layer(config=MlpLayerConfig((f"L{i}",), hid_dim)) for i, hid_dim in enumerate(config.hid_dims)
    ]

    def network(x):
        for layer in layers:
            x = layer(x)
        return x

    return network


@op
def folded_mlp(x, *, config):
    for i, hid_dim in enumerate(config.hid_dims):
        x = mlp_layer(x, config=MlpLayerConfig((f"L{i}",), hid_dim))
    return x


# -- a primitive with its gradient
# -------------------------------------------------------------------------------------


def pointpow(p):
    """The power with a constant exponent."""
    p_t = tc.number(p)

    @cd
    def op_asn(v, t1, t2, *, projections):
        v =: v1 ** v2 ~projections

    if p == 2.0:

        @cd
        def grad_asn(g, t1, *, projections):
            g1 =+ p_t *. t1 * g

    elif p == 1.0:

        @cd
        def grad_asn(g, *, projections):
            g1 =+ g

    else:

        @cd
        def grad_asn(g, t1, *, projections):
            g1 =+ p_t *. (t1 **. (p -. 1.)) * g

    power = tc.primitive("pointpow", op_asn, grad_asn)
    return lambda t1: power(t1, p)
