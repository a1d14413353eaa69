"""Judging scores by labelled runs: AUROC by task, equal length, false alarms, decisive steps, differences."""
