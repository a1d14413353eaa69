#!/usr/bin/env bash
# Scores $FILES, writes the summary of the job, and leaves the exit status as an output: the comment comes before the
# job fails.
set -euo pipefail
folder=${RUNNER_TEMP:?}/coherence
mkdir -p "$folder"

shopt -s globstar
# Split at blanks and matched here; a pattern without a match goes on as it is, and the command says that there is none.
# shellcheck disable=SC2206
files=($FILES)

status=0
coherence score --fail-on "$FAIL_ON" --embedder "$EMBEDDER" --json -- "${files[@]}" > "$folder/score.json" || status=$?
python "$(dirname "$0")/summary.py" "$folder/score.json" "$status" > "$folder/summary.md"
cat "$folder/summary.md" >> "${GITHUB_STEP_SUMMARY:?}"
echo "status=$status" >> "${GITHUB_OUTPUT:?}"
