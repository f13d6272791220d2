"""What commands print in a pipe, and their exit codes: a transcript for each noun, without what the service does."""

from __future__ import annotations

import shlex

import pytest

TRANSCRIPTS = {
    "vote": """
$ vote get
$ vote cast -5 # 2
$ vote cast lunch 3 --as viewer:U2
3  1
$ vote cast lunch -- -5
-5  1
3  1
$ vote get lunch
-5  1
3  1
$ vote logs lunch
U2  U2  3  1900000000000  1
U1  U1  -5  1900000000000  1
$ vote list
lunch  1001  2  active  1900000000000
$ vote config lunch # 4
$ vote define lunch --prompt Which? --options 'Soup, Rice'
$ vote config lunch --query '[prompt, options]' -o json
["Which?", ["Soup", "Rice"]]
$ vote restart lunch
$ vote get lunch
$ vote restart absent # 4
$ vote rm lunch
$ vote list
""",
    "rank": """
$ rank submit colour --key blue
accepted  true
$ rank submit colour --key red
accepted  true
original  blue
$ rank submit colour --key blue --as viewer:U2
accepted  true
$ rank submit colour --key blue --as viewer:U3
accepted  true
$ rank get colour
blue  2
red  1
$ rank get colour --top 1
blue  2
$ rank list
colour  1001  3  1900000000000
$ rank rm colour
$ rank get colour -o table
no answers yet
""",
    "accumulate": """
$ accumulate add ratings '{"stars":5}'
$ accumulate add ratings '{"stars":3}' --as viewer:U2
$ accumulate get ratings
1900000000000  1001  U2  {"stars":3}
1900000000000  1001  U1  {"stars":5}
$ accumulate list
ratings  1001  2  1900000000000
$ accumulate list --channel 5
""",
    "state": """
$ state set extension-viewer n=4 on=true text=dark 'quoted="4"' 'list=[1,2]' empty=
$ state get extension_viewer
n  4
on  true
text  "dark"
quoted  "4"
list  [1,2]
empty  ""
$ state patch extension-viewer n=null on=null list=null empty=null
$ state get extension-viewer -o jsonl
{"key":"text","value":"dark"}
{"key":"quoted","value":"4"}
$ state get viewer --user U7 # 4
$ state all -o json
{"extension":{},"channel":{},"viewer":{},"extension_viewer":{"text":"dark","quoted":"4"}}
$ state rm extension-viewer
$ state get extension-viewer
$ store-config set channel theme=dark
$ store-config all -o json
{"extension":{},"channel":{"theme":"dark"}}
$ json-store set score best=4 name=Ann
$ json-store get score
best  4
name  "Ann"
$ json-store rm score
$ json-store get absent # 4
""",
    "trivia": """
$ trivia define q1 --name 'Which team?' --order 2 --image https://example.com/a.png
$ trivia list
$ trivia list --as backend
q1  inactive  Which team?
$ trivia define-option q1 red --name 'The red team'
red  The red team
$ trivia define-option q1 blue --name Blue
red  The red team
blue  Blue
$ trivia define q1 --description 'The final' --query description
The final
$ trivia define-option q1 red --short-name R --query options[0].name
The red team
$ trivia get q1 --as backend -o json --query '[name, description, order, options[0].[name, short_name]]'
["Which team?", "The final", 2.0, ["The red team", "R"]]
$ trivia move q1 unlocked
unlocked
$ trivia vote q1 red --channel 2002
$ trivia vote q1 blue --as viewer:U2
$ trivia move q1 results --winner red
results
$ trivia get q1 --channel 2002
red  The red team  winner, yours
blue  Blue
$ trivia list --as viewer:U2
q1  results  Which team?  blue  red
$ trivia leaderboard
2002  50
1001  0
$ trivia team
2002
$ trivia join --channel 1001 --as viewer:U2
1001
$ trivia rm-option q1 blue
red  The red team  winner
$ trivia rm q1
$ trivia rm q1 # 4
""",
    "codes": """
$ codes upload --set Hat=hats.txt --set Cap=caps.txt --index 1 --index 4
$ codes mark-from-list U1 U2 --prize 1
$ codes eligible
0  0
1  1
2  0
3  0
4  0
$ codes redeem 1
HAT-1
$ codes redeem 1 --as viewer:U2 -o json
{"all_prizes":["HAT-2"],"code":"HAT-2"}
$ codes redeem 4 # 7
$ codes redeemed
1  HAT-1
$ codes list
1  Hat  2  0
4  Cap  0  1
$ codes rm --yes
1  Hat  2
4  Cap  0
$ codes rm -o json
{"distributed":[]}
$ codes list -o table
no sets
""",
    "bits": """
$ bits purchase hat --id t1 --cost 50 --as viewer:7
t1
$ bits purchase cap --id t2 --as viewer:U2
t2
$ bits list hat
t1  hat  50  bits  7  1900000000000
$ bits validate t1
$ bits validate t1 # 4
$ bits refund --sku cap --user 2
$ bits list
""",
    "clock": """
$ clock now
1900000000000
$ clock next --jump # 7
$ vote cast lunch 1
1  1
$ clock next
1900604800000  poll  lunch  my-extension  1001
$ contents polls
lunch  my-extension  1001  1  active  1900000000000  1900604800000
$ clock next --jump
poll  lunch  1900604800000
$ clock now
1900604800000
$ contents --query polls
0
$ clock set -1h
$ clock freeze --off --query frozen
false
""",
    "ns": """
$ ns new green
URL/_ns/green
$ ns fork default blue
URL/_ns/blue
$ vote cast lunch 1 --url URL/_ns/blue
1  1
$ ns fork blue red
URL/_ns/red
$ vote get lunch --url URL/_ns/red
1  1
$ ns fork default blue # 4
$ ns list
blue
green
red
$ ns rm red
$ ns rm green
$ ns rm blue --url URL/_ns/blue
$ ns list
""",
    "link": """
$ link list
$ link token # 2
$ link end # 2
$ pin status
false
$ user info --as broadcaster --query '[role, channel_id]' -o json
["broadcaster", "1001"]
""",
}
"""Two spaces are a tab. An exit code other than 0 comes after `#`."""


@pytest.mark.parametrize("noun", TRANSCRIPTS)
def test_commands_print_what_the_transcript_shows(extcli, live, folder, noun: str):
    live.set(1_900_000_000_000)
    live.freeze()
    (folder / "hats.txt").write_text("HAT-1\nHAT-2\n")
    (folder / "caps.txt").write_text("CAP-1\n")

    for block in TRANSCRIPTS[noun].rstrip().replace("URL", live.url).split("\n$ ")[1:]:
        line, _, printed = block.partition("\n")
        command, _, code = line.partition(" # ")
        result = extcli(*shlex.split(command), exits=int(code or 0))
        shown = "\n".join(row.replace("\t", "  ").rstrip() for row in result.stdout.splitlines())
        assert printed == shown, line
