#!/usr/bin/env bash
# A poll night, from an empty service to counted votes, and proof that nothing is lost when the service is killed.
# Needs nothing but `extcli` on the PATH; leaves nothing behind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
service=
cleanup() {
  [ -z "$service" ] || kill "$service" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

start() { # a service on a free port, its data in a file
  rm -f "$work/url.txt"
  extcli serve --port 0 --data "sqlite://$work/night.db" >"$work/url.txt" &
  service=$!
  until [ -s "$work/url.txt" ]; do
    kill -0 "$service" || exit 1
    sleep 0.1
  done
  EXTCLI_URL=$(sed 's/^listening on //' "$work/url.txt")
  export EXTCLI_URL
  extcli wait --ready --timeout 20s
}

start

echo "== a poll, defined by the broadcaster and voted on from a file"
extcli vote rm boss
extcli vote define boss --prompt "Which boss first?" --options "Dragon,Golem,Lich"
extcli vote cast boss --from "$here/ballots.csv"
extcli vote get boss -o table

echo "== free-text answers, the most frequent first"
extcli rank submit colour --from "$here/answers.csv"
extcli rank get colour --top 3

echo "== small blobs, newest first"
printf '{"rating":5}\n{"rating":3}\n{"rating":4}\n' | extcli accumulate add ratings --from -
extcli accumulate get ratings -o jsonl

echo "== stores, written, patched and read back"
extcli state set channel round=1 boss='"Dragon"'
extcli state patch channel '[{"op": "replace", "path": "/round", "value": 2}, {"op": "add", "path": "/scores/red", "value": 7}]'
extcli state get channel -o json

echo "== reward codes for everybody who chose the Dragon"
printf 'DRAGON-%04d\n' $(seq 1 50) >"$work/dragon.txt"
extcli codes upload --set "Dragon skin"="$work/dragon.txt" --yes
extcli codes mark-from-poll boss --correct 0 --prize 0
winner=$(extcli vote logs boss -o plain | awk -F'\t' '$3 == 0 { print $1; exit }')
extcli codes redeem 0 --as "viewer:$winner" >"$work/code.txt"

echo "== the result, announced to everybody who listens"
extcli listen result --count 1 --timeout 20s -o jsonl >"$work/heard.jsonl" 2>"$work/listening.txt" &
listener=$!
until grep -qs ready "$work/listening.txt"; do kill -0 "$listener" || exit 1; done
extcli broadcast send result '{"boss": "Dragon"}'
wait "$listener"
cat "$work/heard.jsonl"

echo "== the service is killed and started again: everything that was answered is there"
extcli vote get boss -o json >"$work/before.json"
kill -9 "$service"
wait "$service" 2>/dev/null || true
start
extcli vote get boss -o json >"$work/after.json"
cmp "$work/before.json" "$work/after.json"
echo "the same to the byte"
extcli codes redeemed --as "viewer:$winner" | cut -f2 | cmp - "$work/code.txt"
echo "the winner still has the code, and nobody else will: $(extcli codes rm --yes | cut -f3) of 50 handed out"

echo "== a week later the poll has ended"
extcli clock advance 7d
extcli vote get boss
