"""The C++ trainer that this project began with: its random numbers, initial weights, checkpoint files and sampling.

With these, our model, equations and AdamW reproduce its printed losses, and read and write its checkpoints.
"""
