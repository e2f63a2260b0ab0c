"""Run the command line as ``python -m skcalfair``."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="skcalfair")
