"""The image-offload projection keeps the contract of all projections, and so does a tiny one."""

from everfold.projections.image_offload.projection import IMAGE_OFFLOAD
from everfold.projections.testing import Example, MessageProjectionContract, Refusal
from tests.domain.kit import image, log, omit, replace, system, text, tool_result, user
from tests.domain.retitle import retitling

HISTORY = log(
    ("system/message", system("s", image(9))),
    ("user/message", user("u", text("see"), image(1), image(1), image(2))),
    ("tool/result", tool_result("c", text("out"), image(3), image(4, offloaded=True))),
    ("todo/write", {}),
    ("user/message", user("v", image(5)), replace(1, 1)),
    ("image/offload", omit((4, [0]))),
    ("user/message", user("w", text("again"), image(6), {"type": "x", "content": [image(7)]})),
)


class TestImageOffload(MessageProjectionContract):
    projection = IMAGE_OFFLOAD
    examples = (
        Example("one image", HISTORY[:3], omit((1, [0])), frozenset((1,))),
        Example("several of one message", HISTORY[:3], omit((1, [0, 2])), frozenset((1,))),
        Example("in a tool result", HISTORY[:3], omit((2, [0])), frozenset((2,))),
        Example("several messages", HISTORY[:3], omit((2, [0]), (1, [1])), frozenset((1, 2))),
        Example("after an omission", HISTORY, omit((6, [0])), frozenset((6,))),
    )
    refusals = (
        Refusal("no object", HISTORY, [], "offload-payload"),
        Refusal("no target", HISTORY, {"targets": []}, "offload-payload"),
        Refusal("an extra field", HISTORY, {**omit((6, [0])), "x": 1}, "offload-payload"),
        Refusal("a hidden node", HISTORY, omit((1, [0])), "offload-target"),
        Refusal("a log-only event", HISTORY, omit((3, [0])), "offload-target"),
        Refusal("a system message", HISTORY, omit((0, [0])), "offload-target"),
        Refusal("itself", HISTORY, omit((7, [0])), "offload-target"),
        Refusal("one target twice", HISTORY, omit((6, [0]), (6, [0])), "offload-target"),
        Refusal("omitted before", HISTORY, omit((4, [0])), "offload-index"),
        Refusal("marked in the log", HISTORY, omit((2, [1])), "offload-index"),
        Refusal("no such image", HISTORY, omit((6, [1])), "offload-index"),
        Refusal("the second target", HISTORY, omit((6, [0]), (4, [0])), "offload-index"),
    )


class TestRetitle(MessageProjectionContract):
    projection = retitling()
    others = (IMAGE_OFFLOAD,)
    examples = (
        Example("a title", HISTORY, {"seq": 6, "text": "new"}, frozenset((6,))),
        Example("an empty title", HISTORY, {"seq": 0, "text": ""}, frozenset((0,))),
    )
    refusals = (
        Refusal("asked to", HISTORY, {"seq": 6, "text": "reject"}, "projection-rejected"),
        Refusal("no message", HISTORY, {"seq": 3, "text": "new"}, "projection-rejected"),
    )
