"""Synchronization methods that a user could configure, by name, for `bench/synchronizing` and `bench/shaped`."""


def periodic(steps, keep, collective="two_sided", values="i8"):
    return {
        "sync.policy": "periodic",
        "sync.local_steps": steps,
        "sync.collective": collective,
        "compression.policy": "fixed",
        "compression.compressor": "topk",
        "compression.topk.values": values,
        "compression.keep": keep,
        "inject.policy": "none",
    }


def every(keep, collective="gather"):
    return {**periodic(1, keep, collective), "sync.policy": "every"}


WAYS = {
    "dense": {"sync.policy": "every", "compression.policy": "none", "sync.collective": "gather", "inject.policy": "none"},
    "topk 1 %, every batch, gather": every(0.01),
    "topk 5 %, 4 local steps, gather": periodic(4, 0.05, "gather"),
    "topk 5 %, 4 local steps, two_sided": periodic(4, 0.05),
    "topk 5 %, 10 local steps, two_sided": periodic(10, 0.05),
    "topk 2 %, 10 local steps, two_sided": periodic(10, 0.02),
    "topk 1.3 %, 10 local steps, two_sided": periodic(10, 0.013),
    "topk 1 %, 10 local steps, two_sided": periodic(10, 0.01),
    "topk 2 %, 20 local steps, two_sided": periodic(20, 0.02),
}
USUAL = list(WAYS)[:6]
WAYS["dense, sum"] = {**WAYS["dense"], "sync.collective": "sum"}
AUTO = {"sync.policy": "auto", "compression.policy": "auto", "sync.collective": "auto"}
WAYS["auto"] = AUTO
WAYS["auto, no injected rows"] = {**AUTO, "inject.policy": "none"}
for steps in (4, 10):
    for collective in ("gather", "two_sided"):
        # A quarter of each batch comes from other devices.
        way = {**periodic(steps, 0.05, collective), "inject.policy": "auto"}
        WAYS[f"topk 5 %, {steps} local steps, {collective}, injected rows"] = way
LOW_RANK = {**every(1, "low_rank"), "compression.compressor": "low_rank", "compression.momentum": "group"}
WAYS["low rank 2, every batch"] = LOW_RANK
WAYS["auto, no injected rows, 1.5 of stream"] = {**AUTO, "inject.policy": "none", "sync.budget": '"1.5 of stream"'}
WAYS["auto, 0.1 of stream"] = {**AUTO, "sync.budget": '"0.1 of stream"'}
# Twelve fixed methods that a user could configure.
GRID = ["dense, sum", "topk 1 %, every batch, gather"]
for steps, keeps in {4: (0.05, 0.02, 0.01), 10: (0.05, 0.02, 0.01), 20: (0.05, 0.02), 32: (0.05, 0.01)}.items():
    for share in keeps:
        name = f"topk {share * 100:g} %, {steps} local steps, two_sided"
        WAYS.setdefault(name, periodic(steps, share))
        GRID.append(name)
