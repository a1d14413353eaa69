#!/bin/sh
# No code at all: score recorded runs, keep every reading, and fail if one falls too low.
set -eu
here=$(dirname "$0")
coherence score "$here/data/tau_airline.jsonl.gz" --jsonl readings.jsonl --html runs.html --fail-below 0.1
head -n 1 readings.jsonl
