"""Runs our product as the peer `ours` of the benchmark whose folder is in BENCH_FOLDER.

Adds a run definition to the benchmark's own table and calls its entry; the folder is not changed.
The product is the program in BENCH_BINARY. The variant `openai-chat` talks the other wire format.
"""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["BENCH_FOLDER"])
import run_peer


def ours(c):
    if c.variant == "openai-chat":
        provider = "openai"
        env = {"OPENAI_BASE_URL": c.url + "/v1", "OPENAI_API_KEY": run_peer.KEY}
    elif c.variant in ("", "anthropic-messages"):
        provider = "anthropic"
        env = {"ANTHROPIC_BASE_URL": c.url, "ANTHROPIC_API_KEY": run_peer.KEY}
    else:
        sys.exit("unknown variant " + c.variant)
    argv = [os.environ["BENCH_BINARY"], "-p", c.prompt, "--permission-mode", "bypass",
            "--model", provider + "/mock-model"]
    return argv, {"CODING_AGENT_HOME": c.home, **env}, {}


run_peer.PEERS["ours"] = ours
run_peer.main()
