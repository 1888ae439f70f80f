"""Run the command line as ``python -m floodway``."""

from floodway.cli.main import app

if __name__ == "__main__":
    app(prog_name="floodway")
