#!/usr/bin/env bash
# Writes the summary as one comment of the pull request, over that of an earlier run. A token that may not comment, as
# for a pull request from a fork, costs a warning and not the job.
set -euo pipefail
folder=${RUNNER_TEMP:?}/coherence
comments=${GITHUB_API_URL:?}/repos/${GITHUB_REPOSITORY:?}/issues/${PULL_REQUEST:?}/comments
mark='<!-- coherence -->'

# The token comes from a file: in the arguments every process of the machine could read it.
umask 077
printf 'header = "Authorization: Bearer %s"\n' "${GITHUB_TOKEN:?}" > "$folder/curl"
trap 'rm -f "$folder/curl"' EXIT
api() {
  curl --config "$folder/curl" --silent --show-error --fail --retry 2 --max-time 30 \
    -H "Accept: application/vnd.github+json" "$@"
}
give_up() {
  echo "::warning::coherence could not comment on the pull request; the summary of the job has the result"
  exit 0
}

page=1
earlier=
while [ -z "$earlier" ] && [ "$page" -le 10 ]; do
  api "$comments?per_page=100&page=$page" > "$folder/comments.json" || give_up
  earlier=$(jq -r --arg mark "$mark" \
    'first(.[] | select(.user.type == "Bot" and (.body | startswith($mark))) | .url) // ""' "$folder/comments.json")
  [ "$(jq length "$folder/comments.json")" -eq 100 ] || break
  page=$((page + 1))
done

jq -n --arg mark "$mark" --rawfile summary "$folder/summary.md" '{body: ($mark + "\n" + $summary)}' > "$folder/body.json"
if [ -n "$earlier" ]; then
  api -X PATCH "$earlier" --data "@$folder/body.json" > /dev/null || give_up
else
  api -X POST "$comments" --data "@$folder/body.json" > /dev/null || give_up
fi
