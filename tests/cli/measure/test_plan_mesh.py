"""`byhand plan --mesh`: for devices that are not here; JAX must know them when it starts."""

import json

import pytest

from cli import inside
from cli.process import byhand, error_line

jax = pytest.importorskip("jax", reason="the xla runtime needs jax (extra `xla`)")
jax.config.update("jax_num_cpu_devices", 8)  # before any test of this process begins with one
MESH = ("plan", "--mesh", "data=2,fsdp=8", "--shape", "16,16,32,2,4,64")


def test_what_a_device_holds_computes_and_sends():
    said = json.loads(byhand(*MESH, "--machine", "h100", "--json").stdout)
    assert (said["devices"], said["per_host"], said["machine"]) == (16, 8, "h100")
    kinds = {(sent["kind"], sent["between_hosts"]) for sent in said["sent"]}
    assert {("all-gather", False), ("reduce-scatter", False), ("all-reduce", True)} <= kinds
    assert 0 < said["computing_s"] < said["sending_s"]


def test_it_is_written_for_people_too():
    mesh = [word.replace("fsdp=8", "fsdp=4") for word in MESH]  # of no more devices than this process has
    done = inside.byhand(*mesh, "--per-host", 4, "--recompute", "blocks", "--dtype", "bfloat16")
    assert done.returncode == 0, done.stderr.decode()
    said = done.stdout.decode()
    first, second = said.splitlines()[:2]
    assert first == "mesh data=2,fsdp=4: 8 devices, 4 a host"
    assert second == "a step of 16 × 16 tokens, bfloat16, recompute blocks; each device, as XLA counts,"
    for word in ("holds", "computes", "sends", "within its host: all-gather", "between hosts: all-reduce"):
        assert word in said
    assert "takes" not in said


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--mesh", "data=0"], "mesh is 'data=0'"),
        (["--mesh", "data=99999"], "can have at most 4,096 here"),
        (["--mesh", "data=2", "--per-host", "0"], "per_host is 0"),
        (["--mesh", "data=3", "--shape", "4,16,32,2,4,64"], "3 devices cannot share 4 rows. Use a multiple of 3."),
        (["--machine", "h100"], "--machine changes nothing without --mesh. Leave it out."),
        (["--per-host", "8"], "--per-host changes nothing without --mesh. Leave it out."),
        (["--mesh", "data=2", "--steps", "3"], "--steps changes nothing with --mesh. Leave it out."),
        (["--streams", "1"], "--streams changes nothing with --of train. Leave it out."),
        (["--of", "decode", "--dtype", "bfloat16"], "--dtype changes nothing with --of decode. Leave it out."),
    ],
)
def test_what_cannot_be_planned_is_said(flags, why):
    assert why in error_line(inside.byhand("plan", *flags))
