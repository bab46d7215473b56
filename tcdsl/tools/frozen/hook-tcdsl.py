"""What an application with tcdsl needs: all modules, because most are loaded by name, as files, because compiled
programs are kept by a digest of the sources, and the operator library.
"""  # noqa: N999  # the name that PyInstaller looks for

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

hiddenimports = collect_submodules("tcdsl", filter=lambda name: not name.startswith("tcdsl.tools.frozen"))
datas = collect_data_files("tcdsl")
module_collection_mode = "py"
# Where the application does not import them itself, they stay out.
excludedimports = ["IPython", "PyInstaller", "dask", "jax", "pandas", "pytest", "sklearn", "torch", "xarray"]
