"""Contracts from the forms of other tools."""
