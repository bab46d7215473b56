"""Functions of functions: grad, vjp, jvp, linearize, Jacobians, and checks of derivatives."""
