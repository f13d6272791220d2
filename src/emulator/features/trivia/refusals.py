"""What trivia refuses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emulator.errors import BadRequest, NotFound
from emulator.refusals import Facts, refusal

RULE: Final = "gaps: Trivia"
_SMALLER: Final = "Remove some: `extcli trivia rm` or `extcli trivia rm-option`."


@refusal(
    NotFound,
    "Not Found",
    rule=RULE,
    title="There is no such question",
    next_step="Create it first: `extcli trivia define {question}`; `extcli trivia list` shows what there is.",
)
def no_question(*, question: str) -> Facts:
    return Facts(f"there is no question {question}", f"question {question}", "a question of the extension")


@refusal(
    NotFound,
    "Not Found",
    rule=RULE,
    title="The question is not open, or does not exist",
    next_step="Open it: `extcli trivia move {question} unlocked`; `extcli trivia list --as backend` shows all.",
)
def question_not_open(*, question: str) -> Facts:
    return Facts(f"no question {question} is open", f"question {question}", "a question that is not inactive")


@refusal(
    NotFound,
    "Not Found",
    rule=RULE,
    title="The question has no such option",
    next_step="Name another option: `extcli trivia get {question}` lists them.",
)
def no_option(*, question: str, option: str) -> Facts:
    return Facts(f"the question {question} has no option {option}", f"option {option}", f"an option of {question}")


@refusal(
    BadRequest,
    "question is not unlocked",
    rule=RULE,
    title="The question takes no votes now",
    next_step="Unlock it: `extcli trivia move {question} unlocked`.",
)
def not_unlocked(*, question: str, state: str, takes_votes: str) -> Facts:
    return Facts(f"{question} is in {state}; it takes votes in {takes_votes}", f"state {state}", f"state {takes_votes}")


@refusal(BadRequest, "Too many questions", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def too_many_questions(*, limit: int) -> Facts:
    return Facts(f"the limit is {limit} questions; remove one first", "one question too many", f"at most {limit}")


@refusal(BadRequest, "Too many options", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def too_many_options(*, limit: int) -> Facts:
    detail = f"the limit is {limit} options per question; remove one first"
    return Facts(detail, "one option too many", f"at most {limit} per question")


@refusal(BadRequest, "Contest too large", rule=RULE, title="The contest is too large", next_step=_SMALLER)
def contest_too_large(*, size: int, limit: int) -> Facts:
    detail = f"the questions have {size} bytes of JSON; the limit is {limit}"
    return Facts(detail, f"{size} bytes of JSON", f"at most {limit} bytes")


@refusal(
    BadRequest,
    "Option is the winner",
    rule=RULE,
    title="The option is the winner",
    next_step="Change the state first: `extcli trivia move {question} locked`.",
)
def option_is_winner(*, question: str, option: str) -> Facts:
    detail = f"option: {option} is the winner; change the state first"
    return Facts(detail, f"option {option}, the winner of {question}", "another option")


@refusal(
    BadRequest,
    "Invalid transition",
    rule=RULE,
    title="There is no such state",
    next_step="Move the question to one of the states: `extcli trivia move`.",
)
def no_state(*, state: str, states: Iterable[str]) -> Facts:
    known = ", ".join(states)
    return Facts(f"transition: {state!r} is not one of {known}", f"state {state!r}", f"one of {known}")


@refusal(
    BadRequest,
    "Invalid winner",
    rule=RULE,
    title="The state needs a winner",
    next_step="Name the option: `extcli trivia move {question} results --winner OPTION`.",
)
def no_winner(*, question: str, state: str) -> Facts:
    return Facts(
        f"winner: {state} needs the id of the winning option", "no winner", f"the winning option of {question}"
    )
