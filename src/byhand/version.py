"""The package's version, also read by the build."""

__version__ = "1.0.0rc1"
