"""``python -m tcdsl`` runs the command line of `tcdsl.tools.command_line`."""

from tcdsl.tools.command_line import main

if __name__ == "__main__":
    raise SystemExit(main())
