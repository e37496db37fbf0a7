"""The command line: one file a command, and the only place that parses arguments."""
