"""The standing checks S1 to S7 of the field reports, for tests that run the whole product.

S1 committed rows never change. S2 folding again, in another process and on the other database, gives
the same. S3 every body satisfies all rules that are not under test. S4 requests are bounded by what the
test says. S5 an omission loses no text. S6 every turn has one clear outcome. S7 a text-only message
afterwards works, in a host that was opened anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from everfold.agent.requests import rebuild_request
from everfold.audit.auditing import audit
from everfold.host.sessions import Sessions
from everfold.llm.failure import FailureCode
from everfold.profiles.profile import Profile
from tests.end_to_end.product import Product, running
from tests.field_reports.witness import Witness, check_folds, check_texts
from tests.providers.rules import STRICT, Kind, Rules, Violation, violations
from tests.providers.strict_fake import Call, StrictFake
from tests.rebuilding import ASKED, is_summary

MOST_FOR_LAST_MESSAGE = 5
LAST = "thanks, that is all"


@dataclass
class Standing:
    """What a test says about itself, and what is checked when it has ended.

    Attributes:
        profile: the one that the product was opened with last.
        under_test: rules that bodies may break, since breaking them is what the test is about.
        has_last_message: False if the test leaves the provider refusing everything.
        damaged: sessions that the test itself harms.
    """

    url: str
    other_url: str
    witness: Witness
    profile: Profile | None = None
    fakes: Mapping[str, StrictFake] = field(default_factory=dict)
    under_test: set[Kind] = field(default_factory=set)
    has_last_message: bool = True
    damaged: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)

    def note(self, product: Product) -> None:
        """Look at a product from its start on."""
        self.profile, self.fakes = product.host.profile, product.fakes
        self.sessions.add(product.session_id)
        product.sessions.observers.append(self.witness.note)

    def check_product(self, product: Product) -> None:
        """S4 and S6, and that every log is sound, while the product still runs."""
        self.witness.look()
        assert product.most_calls is not None, (
            "S4: the test does not say how many requests are right"
        )
        assert product.calls <= product.most_calls, f"S4: {product.calls} requests"
        for result in product.results:
            check_outcome(result.kind, result.failure)
        for session_id in self.sessions - self.damaged:
            check_log(product.sessions, session_id)

    def check_bodies(self) -> None:
        """S3: no body breaks a rule that is not under test."""
        for fake in {id(fake): fake for fake in self.fakes.values()}.values():
            for call in fake.calls:
                broken = {fault.kind for fault in broken_rules(call, fake)}
                assert broken <= self.under_test, f"S3: {broken} at {call.path}"

    def check_last_message(self) -> None:
        """S7: text alone is answered, by a host that has nothing in memory."""
        assert self.profile is not None
        for session_id in sorted(self.sessions - self.damaged):
            with running(self.url, self.profile, self.fakes, session_id) as product:
                before = product.calls
                result = product.say(LAST)
                assert result.kind == "completed", f"S7: {result}"
                assert product.calls - before <= MOST_FOR_LAST_MESSAGE, "S7: too many requests"
                check_log(product.sessions, session_id)

    def check_store(self) -> None:
        """S1 and S2, over everything that was stored."""
        self.witness.check_rows()
        check_folds(self.url, self.other_url, self.damaged)


def check_outcome(kind: str, failure: object) -> None:
    """S6: refuse a silent stop."""
    if kind == "error":
        message, code = getattr(failure, "message", ""), getattr(failure, "code", "")
        assert message.strip(), "S6: an error without a word"
        assert code, "S6: an error without a code"
        assert code != FailureCode.UNKNOWN, f"S6: {message}"
    else:
        assert kind in ("completed", "max-tokens", "aborted"), f"S6: {kind}"


def check_log(sessions: Sessions, session_id: str) -> None:
    """S5, that each call has one answer, that summaries' requests are rebuilt, that the audit is sound."""
    session = sessions.resume(session_id)
    log = list(sessions.log(session_id))
    check_texts(session, log)
    for event in log:
        if event.type in ASKED:
            assert is_summary(rebuild_request(sessions, session_id, event.seq))
    report = audit(sessions, session_id)
    assert report.is_sound, report


def broken_rules(call: Call, fake: StrictFake) -> list[Violation]:
    """Return every strict rule that a body breaks, those of the fake and those of all providers."""
    if call.seen is None:
        return [] if call.violation is None else [call.violation]
    rules = _together(fake.rules)
    return list(violations(rules, call.seen, len(call.raw), frozenset(fake.uploads)))


def _together(rules: Rules) -> Rules:
    return replace(
        rules, pairing=True, nonempty=True, magic=STRICT.magic, wellformed=True, dims=True
    )
