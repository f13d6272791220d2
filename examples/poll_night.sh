#!/usr/bin/env bash
# A poll night, from an empty service to the result. Then the script kills the service, and checks that no data is lost.
# Needs only `extcli` on the PATH, and removes its files at the end.
set -euo pipefail
work=$(mktemp -d)
service=
cleanup() {
  if [ -n "$service" ]; then
    kill "$service" 2>/dev/null || true
    wait "$service" || true # it uses its data until it has ended
  fi
  rm -rf "$work"
}
trap cleanup EXIT

start() { # runs a service on a free port, with its data in a file
  rm -f "$work/url.txt"
  extcli serve --port 0 --data "sqlite://$work/night.db" >"$work/url.txt" &
  service=$!
  until [ -s "$work/url.txt" ]; do
    kill -0 "$service" || exit 1
    sleep 0.1
  done
  EXTCLI_URL=$(sed 's/^listening on //' "$work/url.txt")
  export EXTCLI_URL
  extcli wait --timeout 20s
}

start

echo "== define a poll, and vote from a list"
extcli vote rm boss
extcli vote define boss --prompt "Which boss first?" --options "Dragon,Golem,Lich"
seq 40 | awk 'BEGIN { print "user,value" } { print "viewer-" $1 "," $1 % 3 }' | extcli vote cast boss --from -
extcli vote get boss -o table

echo "== rank free-text answers"
printf '%s\n' user,key viewer-1,blue viewer-2,blue viewer-3,green viewer-4,red viewer-5,blue | extcli rank submit colour --from -
extcli rank get colour --top 3

echo "== accumulate small JSON objects, and read them newest first"
printf '{"rating":5}\n{"rating":3}\n{"rating":4}\n' | extcli accumulate add ratings --from -
extcli accumulate get ratings -o jsonl

echo "== write, patch and read a store"
extcli state set channel round=1 boss='"Dragon"'
extcli state patch channel '[{"op": "replace", "path": "/round", "value": 2}, {"op": "add", "path": "/scores/red", "value": 7}]'
extcli state get channel -o json

echo "== give reward codes to everyone who voted for the Dragon"
printf 'DRAGON-%04d\n' $(seq 1 50) >"$work/dragon.txt"
extcli codes upload --set "Dragon skin"="$work/dragon.txt" --yes
extcli codes mark-from-poll boss --correct 0 --prize 0
winner=$(extcli vote logs boss -o plain | awk -F'\t' '$3 == 0 { print $1; exit }')
extcli codes redeem 0 --as "viewer:$winner" >"$work/code.txt"

echo "== broadcast the result"
extcli listen result --count 1 --timeout 20s -o jsonl >"$work/received.jsonl" 2>"$work/listener.txt" &
listener=$!
until grep -qs ready "$work/listener.txt"; do kill -0 "$listener" || exit 1; done
extcli broadcast send result '{"boss": "Dragon"}'
wait "$listener"
cat "$work/received.jsonl"

echo "== kill the service, restart it, and compare its data"
extcli vote get boss -o json >"$work/before.json"
kill -9 "$service"
wait "$service" 2>/dev/null || true
start
extcli vote get boss -o json >"$work/after.json"
cmp "$work/before.json" "$work/after.json"
echo "the votes are identical"
extcli codes redeemed --as "viewer:$winner" | cut -f2 | cmp - "$work/code.txt"
echo "the winner still has the code; codes handed out: $(extcli codes rm --yes | cut -f3) of 50"

echo "== advance the clock by a week: the poll has expired"
extcli clock advance 7d
extcli vote get boss
