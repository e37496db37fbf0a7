"""From a program to tables of integers, and the compiled loop that reads them."""
