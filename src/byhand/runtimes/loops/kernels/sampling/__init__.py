"""The kernel of sampling."""
