"""What the page asks: attention with one head and with two."""

from byhand.book.pictures.passes import attention_of
