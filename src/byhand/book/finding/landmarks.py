"""Places besides equations that readers search for: the code that wires, records, trains and stores."""

from byhand.book.finding.model_places import MODEL_PLACES
from byhand.book.finding.run_places import RUN_PLACES

PLACES = (*MODEL_PLACES, *RUN_PLACES)
