"""Contracts in the forms of other tools."""
