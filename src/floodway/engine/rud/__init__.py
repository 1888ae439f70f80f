"""Epochs made durable: files that notice damage, commit records, and what an upgrade keeps."""
