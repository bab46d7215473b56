"""Runs the first program of the README, as somebody does who has just installed the package."""

import re
import runpy
import tempfile
from pathlib import Path

readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
block = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
if block is None:
    raise SystemExit("the README has no program")
with tempfile.TemporaryDirectory() as folder:
    program = Path(folder) / "first.py"
    program.write_text(block[1], encoding="utf-8")
    found = runpy.run_path(str(program))
print(found["tc"].__version__, found["tc"].__file__)
print(found["smooth"].shape, found["d_image"].shape, found["d_kernel"].shape)
assert (found["smooth"].shape, found["d_kernel"].shape) == ((478, 638), (3, 3))
