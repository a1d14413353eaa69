"""Choosing: from an appraisal and the rules to findings, guidance and one decision."""
