"""What needs a socket: clients that leave, that send slowly, and a process that stops."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("httpx")

from byhand import ModelConfig, TrainConfig
from byhand.serving.connections import Said, affordable
from byhand.serving.limits import Limits
from cli.inside import write_run
from cli.process import PATIENCE, environment
from serving.house import listening, service

COMPLETIONS = "/v1/completions"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_ends_its_work_and_no_other(stream):
    found = service(limits=Limits(slots=2), context=4096)
    steps, step = [], found.served.engine.decoder.step

    def slow(most):
        steps.append(len(found.served.engine.running))
        time.sleep(0.005)
        step(1)

    found.served.engine.decoder.step = slow
    with listening(found) as port:
        leaving = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        staying = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        headers = {"content-type": "application/json"}
        for connection, streams, length in ((leaving, stream, 4000), (staying, False, 40)):
            body = json.dumps({"prompt": "a", "max_tokens": length, "seed": 1, "stream": streams})
            connection.request("POST", COMPLETIONS, body, headers)
        while 2 not in steps:
            time.sleep(0.005)
        leaving.close()
        with closing(staying):
            answer = json.loads(staying.getresponse().read())
        assert answer["usage"]["completion_tokens"] == 40
        while found.served.engine.running:
            time.sleep(0.005)
    assert len(steps) < 4000  # not to the end: the server heard of it, which takes it far less than 20 s


@pytest.mark.parametrize("end", ["its client leaves", "its time is over", "the server stops"])
def test_an_explanation_ends_when(end):
    found = service(limits=Limits(seconds=0.2 if end == "its time is over" else PATIENCE))
    begun, ended = threading.Event(), threading.Event()

    def explain(version, values):
        begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    found.explain = explain
    with listening(found) as port:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        connection.request("POST", "/v1/explain", '{"target": "loss"}', {"content-type": "application/json"})
        assert end == "its time is over" or begun.wait(PATIENCE)
        if end == "its client leaves":
            connection.close()
        elif end == "its time is over":
            assert connection.getresponse().status == 504
        if end != "the server stops":
            assert not begun.is_set() or ended.wait(PATIENCE)
    assert not begun.is_set() or ended.wait(PATIENCE)
    if end == "the server stops":
        assert connection.getresponse().status == 503
    connection.close()


def test_a_stream_cut_at_any_byte_leaves_no_work_and_no_other_text_changed():
    found = service(limits=Limits(slots=2))
    body = json.dumps({"prompt": "To be", "max_tokens": 12, "seed": 1, "stream": True, "logprobs": 1}).encode()
    head = f"POST {COMPLETIONS} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
    with listening(found) as port:
        staying = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

        def begun(count):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as cut:
                cut.sendall(request)
                return cut.makefile("rb").read(count)

        def whole():
            staying.request("POST", COMPLETIONS, '{"prompt": "ab", "seed": 2}', {"content-type": "application/json"})
            return json.loads(staying.getresponse().read())["choices"]

        with closing(staying):
            alone, length = whole(), len(begun(-1))
            for k in range(0, length, length // 8):
                begun(k)
                assert whole() == alone
            while found.served.engine.running or found.served.engine.waiting:
                time.sleep(0.005)
            assert len(begun(-1)) == length
            assert not found.worker._live


def test_a_header_that_does_not_come_ends_the_connection():
    """Whatever came before, the header of a second request too."""
    with listening(service(limits=Limits(header_seconds=0.2))) as port:
        for begun in (
            b"",
            b"GET /health HTTP/1.1\r\nhost: local",
            b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /",
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as slow, suppress(ConnectionError):
                slow.sendall(begun)
                while slow.recv(4096):  # until the server closes
                    pass


def test_what_is_no_request_and_connections_that_are_too_many_are_refused():
    with listening(service(limits=Limits(connections=3))) as port:
        where = "127.0.0.1", port
        for wrong in (
            b"\x16\x03\x01\r\n\r\n",
            b"GET / HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 20_000,
            b"GET / HTTP/9\r\n\r\n",
        ):
            with socket.create_connection(where, timeout=PATIENCE) as other:
                other.sendall(wrong)
                answer = other.makefile("rb").read()
                assert answer.startswith(b"HTTP/1.1 400")
                assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "invalid_request_error"
        many = [socket.create_connection(where, timeout=PATIENCE) for _ in range(3)]
        with socket.create_connection(where, timeout=PATIENCE) as more:
            assert more.makefile("rb").read().startswith(b"HTTP/1.1 503")
        for one in many:
            one.close()


def test_a_client_that_does_not_read_ends_the_connection():
    with listening(service(limits=Limits(read_seconds=0.1, connections=1))) as port:
        where, asked = ("127.0.0.1", port), b"GET /web/vendor/lit-html.js HTTP/1.1\r\nhost: localhost\r\n\r\n"
        with socket.create_connection(where, timeout=PATIENCE) as stuck:
            stuck.sendall(asked * 800)  # the answers are more than the system keeps for it
            answer, deadline = b"", time.monotonic() + PATIENCE
            while not answer.startswith(b"HTTP/1.1 200"):
                assert time.monotonic() < deadline
                time.sleep(0.05)
                with socket.create_connection(where, timeout=PATIENCE) as other:
                    other.sendall(asked.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
                    with suppress(ConnectionError):  # refused before it has asked
                        answer = other.makefile("rb").read()


def test_connections_are_as_many_as_files_may_be_open(monkeypatch, caplog):
    resource = pytest.importorskip("resource")
    bounds = []
    monkeypatch.setattr(resource, "setrlimit", lambda which, found: bounds.append(found))
    for found, expected in (((64, 64), 8), ((256, resource.RLIM_INFINITY), 512), ((1024, 1024), 512)):
        monkeypatch.setattr(resource, "getrlimit", lambda which, found=found: found)
        assert affordable(512) == expected
    assert bounds == [(64, 64), (704, resource.RLIM_INFINITY)]
    said = Said()
    for _ in range(9):
        said(None, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")})
    assert len(caplog.records) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no such signals")
def test_a_process_finishes_its_answers_and_stops(tmp_path):
    write_run(tmp_path / "run", TrainConfig(model=ModelConfig(seq_len=128, d_model=16), steps=10))
    command = [sys.executable, "-m", "byhand", "serve", "run", "--port", "0", "--runtime", "numpy"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline()
        port = int(said.partition("127.0.0.1:")[2].partition("/")[0])
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        body = json.dumps({"prompt": "a", "max_tokens": 100, "stream": True, "seed": 1})
        connection.request("POST", COMPLETIONS, body, {"content-type": "application/json"})
        response = connection.getresponse()
        assert response.read(6) == b"data: "
        os.kill(process.pid, signal.SIGINT)
        rest = response.read()
        assert rest.endswith(b"data: [DONE]\n\n")
        assert b'"finish_reason":"length"' in rest
        connection.close()
        assert process.wait(PATIENCE) == 0
        assert "stopping" in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
