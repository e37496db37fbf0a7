"""Hugging Face transformers folders: config.json, model.safetensors, tokenizer.json."""
