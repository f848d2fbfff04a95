"""The indexes of IncDC, which find the old rows that a new one may violate a constraint with."""
