"""Refusals of trivia."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emulator.errors import BadRequest, Facts, NotFound, refusal

RULE: Final = "gaps: Trivia"
_SMALLER: Final = "Remove some: `extcli trivia rm` or `extcli trivia rm-option`."


@refusal(NotFound, "Not Found", RULE, "There is no such question",
         "Create it first: `extcli trivia define {question}`; `extcli trivia list` shows what there is.")  # fmt: skip
def no_question(*, question: str) -> Facts:
    return Facts(f"there is no question {question}", f"question {question}", "a question of the extension")


@refusal(NotFound, "Not Found", RULE, "The question is not open, or does not exist",
         "Open it: `extcli trivia move {question} unlocked`; `extcli trivia list --as backend` shows all.")  # fmt: skip
def question_not_open(*, question: str) -> Facts:
    return Facts(f"no question {question} is open", f"question {question}", "a question that is not inactive")


@refusal(NotFound, "Not Found", RULE, "The question has no such option",
         "Name another option: `extcli trivia get {question}` lists them.")  # fmt: skip
def no_option(*, question: str, option: str) -> Facts:
    return Facts(f"the question {question} has no option {option}", f"option {option}", f"an option of {question}")


@refusal(BadRequest, "question is not unlocked", RULE, "The question takes no votes now",
         "Unlock it: `extcli trivia move {question} unlocked`.")  # fmt: skip
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


@refusal(BadRequest, "Option is the winner", RULE, "The option is the winner",
         "Change the state first: `extcli trivia move {question} locked`.")  # fmt: skip
def option_is_winner(*, question: str, option: str) -> Facts:
    detail = f"option: {option} is the winner; change the state first"
    return Facts(detail, f"option {option}, the winner of {question}", "another option")


@refusal(BadRequest, "Invalid transition", RULE, "There is no such state",
         "Move the question to one of the states: `extcli trivia move`.")  # fmt: skip
def no_state(*, state: str, states: Iterable[str]) -> Facts:
    known = ", ".join(states)
    return Facts(f"transition: {state!r} is not one of {known}", f"state {state!r}", f"one of {known}")


@refusal(BadRequest, "Invalid winner", RULE, "The state needs a winner",
         "Name the option: `extcli trivia move {question} results --winner OPTION`.")  # fmt: skip
def no_winner(*, question: str, state: str) -> Facts:
    return Facts(
        f"winner: {state} needs the id of the winning option", "no winner", f"the winning option of {question}"
    )
