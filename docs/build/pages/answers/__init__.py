"""What templates of several pages call, the public names of these files. What one page asks for stands beside it."""
