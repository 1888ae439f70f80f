"""A faster form of the remote half: neighbouring kernels as one generated loop."""

from floodway.engine.opstream.vectorised.path import Fused, paths

__all__ = ["Fused", "paths"]
