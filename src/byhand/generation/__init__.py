"""Generation: continue prompts token by token, with the given runtime or the fastest suitable one."""

from byhand.generation.engine import Engine, Full
from byhand.generation.stop_text import StopText
from byhand.generation.text import START, Generation, generate
from byhand.runtimes.sampling import Sampling
from byhand.runtimes.streams import Stream

__all__ = ["START", "Engine", "Full", "Generation", "Sampling", "StopText", "Stream", "generate"]
