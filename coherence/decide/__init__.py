"""Choosing: from an appraisal to findings and a decision."""
