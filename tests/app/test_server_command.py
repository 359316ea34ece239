"""The command `serve` as a process, and a real model in the server."""

import http.client
import json
import math
import signal
import subprocess
import sys
import time
import urllib.parse

import pytest
from serving_helper import post, serving_

from text_infilling.app import cli
from text_infilling.inference.infiller import Infiller
from text_infilling.vocabulary import Vocabulary


def test_a_model_fills_over_http_what_it_fills_alone():
    from text_infilling.models.self_attention import SelfAttentionModel

    words = ["the", "cat", "dog", "sleeps", "runs", ",", "."]
    sizes = {"dim": 16, "num_heads": 2, "ffn_dim": 16, "num_blocks": 1}
    model = SelfAttentionModel(len(Vocabulary(words)), {"decoder": sizes})
    model.build()
    infiller = Infiller(model, Vocabulary(words), longest=4)
    texts = ["The ____ sleeps.", "____, ____", "no blank"]
    limits = [{"exact_words": 2}, [{"max_words": 1}, {"min_words": 2}], None]
    infiller.fill("____")  # traces the graph before any request waits for it, as the command does
    with serving_(infiller) as server:
        status, answer = post(server, texts=texts, limits=limits, num_results=3)
        _, one = post(server, text=texts[1], limits=limits[1], num_results=3)
        refused = post(server, text=texts[1], limits=[None])
    assert status == 200
    for result, text, limit in zip(answer["results"], texts, limits):
        alone = infiller.fill(text, limits=limit, num_results=3)
        assert [way["text"] for way in result["alternatives"]] == [way.text for way in alone.alternatives]
        assert math.isclose(result["log_probability"], alone.log_probability, abs_tol=1e-4)
    assert one["results"][0]["text"] == answer["results"][1]["text"]
    assert refused[0] == 400 and "one entry per blank, 2" in refused[1]["error"]


STAND_IN = """
import json, sys, time, types
class Infiller:
    load = classmethod(lambda cls, folder: cls())
    def fill(self, texts, **options):
        if "slow" in texts[0]:
            print("filling", flush=True)
            time.sleep(2)
        return []
sys.modules["text_infilling.inference.infiller"] = types.SimpleNamespace(Infiller=Infiller)
from text_infilling.app import cli, commands
commands.open_run = lambda folder: types.SimpleNamespace(path=folder, model="stub", learned=None)
cli.main(sys.argv[1:])
"""


def command(tmp_path, *arguments):
    """Starts `text-infill serve` without a model, as a process."""
    line = [sys.executable, "-c", STAND_IN, "serve", "--run", str(tmp_path), *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_command_prints_its_url_and_stops_on_ctrl_c(tmp_path, host):
    with command(tmp_path, "--port=0", "--host", host) as process:
        ready = process.stdout.readline()
        port = urllib.parse.urlsplit(ready.split()[2]).port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", "/health")
        health = json.loads(connection.getresponse().read())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert ready.startswith(f"ready at http://{host}:{port}/")
    assert health == {"status": "ok", "run": str(tmp_path), "model": "stub"}
    assert process.returncode == 130
    *warning, last = err.splitlines()
    assert last == "stopped"
    assert [line.split(":")[0] for line in warning] == ["warning"] * (host == "0.0.0.0")


def test_on_sigterm_the_running_request_is_answered_and_waiting_ones_get_503(tmp_path):
    with command(tmp_path, "--port=0") as process:
        port = urllib.parse.urlsplit(process.stdout.readline().split()[2]).port
        running, waiting = (http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(2))
        running.request("POST", "/fill", '{"text": "slow ____"}', {"Content-Type": "application/json"})
        assert process.stdout.readline() == "filling\n"
        waiting.request("POST", "/fill", '{"text": "a ____"}', {"Content-Type": "application/json"})
        time.sleep(0.5)  # until it is in the queue
        process.send_signal(signal.SIGTERM)
        answers = running.getresponse(), waiting.getresponse()
        assert [answer.status for answer in answers] == [200, 503]
        assert json.loads(answers[0].read()) == {"results": []}
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "stopped by SIGTERM\n")


def test_a_port_in_use_prints_a_one_line_error(server, tmp_path):
    with command(tmp_path, f"--port={server.port}") as process:
        out, err = process.communicate(timeout=20)
    assert process.returncode == 1 and not out
    assert err.startswith(f"error: cannot listen on 127.0.0.1 port {server.port}: ") and err.count("\n") == 1


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "prometheus_client"])
def test_without_the_extra_packages_one_line_says_how_to_install_them(missing, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith("text_infilling.app.server")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["serve", "--port=0"])
    assert exit_.value.code == 1
    err = capsys.readouterr().err
    assert err.startswith(f"error: serve needs {missing}: run `pip install -e '.[serve]'`") and err.count("\n") == 1
