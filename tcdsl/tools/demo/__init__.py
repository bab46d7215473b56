"""``python -m tcdsl demo``: a classifier of handwritten digits, trained with programs in index notation.

`program` is the network and the optimizer, `data` the images, `networks` runs the programs beside the same network in
plain NumPy, `training` is the loop, `report` is what is shown at the end. Nothing here is known to the
library.
"""
