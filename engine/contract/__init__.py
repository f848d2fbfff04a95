"""Rules that people keep: a file of accepted and rejected rules, its check in one pass, and what it is handed on as."""
