"""Rules as text: reads every common syntax, writes most of them, and checks rules against the types of columns."""

from tuplewise.engine.dc.rule_text.constants import check_types, place_constant
from tuplewise.engine.dc.rule_text.files import read_rule_file
from tuplewise.engine.dc.rule_text.reading import RulesSyntax, read_rule, read_rules
from tuplewise.engine.dc.rule_text.writing import WrittenSyntax, write_rule

__all__ = [
    "RulesSyntax",
    "WrittenSyntax",
    "check_types",
    "place_constant",
    "read_rule",
    "read_rule_file",
    "read_rules",
    "write_rule",
]
