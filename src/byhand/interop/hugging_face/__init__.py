"""Folders of Hugging Face transformers: config.json, model.safetensors, tokenizer.json."""
