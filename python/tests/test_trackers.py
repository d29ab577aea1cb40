"""Trackers: what was told them comes back from the real libraries."""

from __future__ import annotations

import json
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import laconic_gnn as lc
import numpy as np
import pytest
from graphs import arrays
from laconic_gnn.trackers import Tracker, round_figures, run_figures, run_parameters, run_texts

FAILS = "the third round was one too many"


def trained(*callbacks: Any, epochs: int = 12) -> lc.Run:
    """A lazy run of two stages that is evaluated every third round."""
    graph = lc.Graph.from_numpy(**arrays(), undirected=True)
    train = {"epochs": epochs, "eval_every": 3}
    return lc.train(graph, parts=2, schedule="lazy", train=train, on_round=list(callbacks))


def failing(tracker: Tracker) -> None:
    """A run in a ``with`` that does not come to its end."""

    def fails(round: dict[str, Any]) -> None:
        raise ZeroDivisionError(FAILS)

    with pytest.raises(ZeroDivisionError, match=FAILS), tracker:
        trained(tracker, fails)


def test_figures_are_the_numbers_of_rounds_and_of_the_run() -> None:
    rounds: list[dict[str, Any]] = []
    run = trained(rounds.append)
    assert [round["round"] for round in rounds] == [3, 6, 9, 12, 15, 18, 21, 24]
    figures = round_figures(rounds[0])
    assert figures["val/accuracy"] == rounds[0]["val"]["accuracy"] and figures["bytes"] == rounds[0]["bytes"]
    assert {"loss", "lr", "stage", "train/loss", "test/accuracy", "seconds"} < set(figures) and "round" not in figures
    assert round_figures({"round": 1, "val": {"accuracy": None}, "members": [0, 1], "stage": 0}) == {"stage": 0}
    of_run = run_figures(run)
    assert of_run["best/test/accuracy"] == run.accuracy and of_run["sent/total"] == run.bytes
    assert run.bytes == sum(of for name, of in of_run.items() if name.startswith("sent/") and name != "sent/total")
    assert run_parameters(run)["schedule.kind"] == "lazy" and run_texts(run)["laconic.parameters"] == run.digest


def test_a_tracker_does_not_stop_a_run_nor_change_what_is_learned(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from laconic_gnn.trackers.tensorboard import TensorBoardTracker

    with TensorBoardTracker(tmp_path) as tracker:
        assert trained(tracker).digest == trained().digest


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow with a store of this test's own: of files, as a database takes it ten seconds to make."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    mlflow.set_experiment("sites")
    yield mlflow
    while mlflow.active_run():
        mlflow.end_run()
    mlflow.set_tracking_uri(before)


def test_mlflow_has_every_round_and_the_whole_run(mlflow: Any) -> None:
    from laconic_gnn.trackers.mlflow import MlflowTracker

    rounds: list[dict[str, Any]] = []
    with MlflowTracker(run_name="lazy") as tracker:
        run = trained(tracker, rounds.append)
        tracker.finish(run)
    client = mlflow.MlflowClient()
    found = client.get_run(tracker.run_id)
    assert found.info.status == "FINISHED" and found.info.run_name == "lazy" and mlflow.active_run() is None
    for name in round_figures(rounds[0]):
        history = {point.step: point.value for point in client.get_metric_history(tracker.run_id, name)}
        assert history == {round["round"]: round_figures(round)[name] for round in rounds}, name
    for name, value in run_figures(run).items():
        assert found.data.metrics[name] == pytest.approx(value), name
    assert found.data.params == {name: str(value) for name, value in run_parameters(run).items()}
    assert run_texts(run).items() <= found.data.tags.items()
    # MLflow's own functions would have begun a run for the thread that rounds are told from.
    assert len(client.search_runs([found.info.experiment_id])) == 1


def test_mlflow_logs_to_the_run_that_is_active_and_leaves_it_so(mlflow: Any) -> None:
    from laconic_gnn.trackers.mlflow import MlflowTracker

    with mlflow.start_run() as active:
        with MlflowTracker() as tracker:
            tracker.finish(trained(tracker))
        assert tracker.run_id == active.info.run_id == mlflow.active_run().info.run_id
    assert mlflow.MlflowClient().get_run(tracker.run_id).data.metrics["stage"] == 1


def test_mlflow_is_told_of_failure_and_takes_names_of_all_metrics(mlflow: Any) -> None:
    from laconic_gnn.trackers.mlflow import MlflowTracker

    tracker = MlflowTracker()
    tracker({"round": 1, "val": {"hits@10": 0.5, "recall@5": 0.25}})
    failing(tracker)
    found = mlflow.MlflowClient().get_run(tracker.run_id)
    assert found.info.status == "FAILED"
    assert found.data.metrics["val/hits_at_10"] == 0.5 and found.data.metrics["val/recall_at_5"] == 0.25
    assert found.data.metrics["val/accuracy"] > 0


def wandb_records(folder: Path) -> list[Any]:
    """The records of the one offline run below a folder, which has ended."""
    [path] = folder.glob("wandb/offline-run-*/*.wandb")
    # wandb 0.31 writes them after finish() has returned.
    for _ in range(200):
        records = records_of(path.read_bytes())
        if records and records[-1].WhichOneof("record_type") == "exit":
            return records
        time.sleep(0.05)
    raise AssertionError(f"{path} does not come to an end")


def records_of(content: bytes) -> list[Any]:
    """The records of a log of blocks as LevelDB has it, after a header of 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, block, records, part = 7, 32768, [], b""
    while at + 7 <= len(content):
        if block - at % block < 7:
            at += block - at % block
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        part += content[at + 7 : at + 7 + length]
        at += 7 + length
        # Whole, or the last of several parts.
        if kind in (1, 4):
            records.append(Record.FromString(part))
            part = b""
    return records


def named(items: Any) -> dict[str, Any]:
    """Values by their names, of those in a record."""
    return {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in items}


def test_wandb_has_every_round_and_the_whole_run_and_stays_on_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("wandb")
    from laconic_gnn.trackers.wandb import WandbTracker

    rounds: list[dict[str, Any]] = []
    with WandbTracker(dir=tmp_path, project="sites") as tracker:
        run = trained(tracker, rounds.append)
        tracker.finish(run)
    assert tracker.run.offline
    records = wandb_records(tmp_path)

    history = [named(record.history.item) for record in records if record.WhichOneof("record_type") == "history"]
    assert [row["_step"] for row in history] == [round["round"] for round in rounds]
    for row, round in zip(history, rounds):
        assert round_figures(round).items() <= row.items()
    summary: dict[str, Any] = {}
    config: dict[str, Any] = {}
    for record in records:
        kind = record.WhichOneof("record_type")
        if kind == "summary":
            summary.update(named(record.summary.update))
        if kind in ("config", "run"):
            config.update(named((record.config if kind == "config" else record.run.config).update))
    assert run_figures(run).items() <= summary.items() and run_texts(run).items() <= summary.items()
    assert run_parameters(run).items() <= config.items()
    [end] = [record.exit for record in records if record.WhichOneof("record_type") == "exit"]
    assert end.exit_code == 0


def test_wandb_is_told_of_failure_and_a_run_of_yours_is_left_open(tmp_path: Path) -> None:
    wandb = pytest.importorskip("wandb")
    from laconic_gnn.trackers.wandb import WandbTracker

    (tmp_path / "yours").mkdir()
    yours = wandb.init(mode="offline", dir=tmp_path / "yours")
    with WandbTracker(yours) as tracker:
        tracker.finish(trained(tracker, epochs=3))
    yours.log({"more": 1})
    yours.finish()
    assert any("more" in named(record.history.item) for record in wandb_records(tmp_path / "yours"))
    (tmp_path / "fails").mkdir()
    failing(WandbTracker(dir=tmp_path / "fails"))
    [end] = [of.exit for of in wandb_records(tmp_path / "fails") if of.WhichOneof("record_type") == "exit"]
    assert end.exit_code == 1


def events(folder: Path) -> Any:
    """What TensorBoard itself reads in a folder."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    return reader.EventAccumulator(str(folder), size_guidance={reader.SCALARS: 0}).Reload()


def test_tensorboard_reads_every_round_and_the_whole_run(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from laconic_gnn.trackers.tensorboard import TensorBoardTracker

    rounds: list[dict[str, Any]] = []
    with TensorBoardTracker(tmp_path) as tracker:
        run = trained(tracker, rounds.append)
        tracker({"round": 25, "val": {"hits@10": 0.5}})
        tracker.finish(run)
    found = events(tmp_path)
    for name in round_figures(rounds[0]):
        steps = {event.step: event.value for event in found.Scalars(name)}
        assert steps == {round["round"]: np.float32(round_figures(round)[name]) for round in rounds}, name
    for name, value in run_figures(run).items():
        assert [event.value for event in found.Scalars(name)] == [np.float32(value)], name
    assert found.Scalars("val/hits_at_10")[0].value == 0.5
    texts = {tag: found.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in found.Tags()["tensors"]}
    assert texts["laconic.parameters/text_summary"] == run.digest
    assert "    schedule.kind = lazy" in texts["config/text_summary"].splitlines()


def test_tensorboard_needs_neither_pytorch_nor_tensorflow_nor_itself(tmp_path: Path) -> None:
    import subprocess

    pytest.importorskip("tensorboardX")
    code = (
        "import sys\n"
        "for name in ('torch', 'tensorflow', 'tensorboard'): sys.modules[name] = None\n"
        "from laconic_gnn.trackers.tensorboard import TensorBoardTracker\n"
        f"with TensorBoardTracker({str(tmp_path)!r}) as tracker: tracker({{'round': 3, 'loss': 0.5}})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert [(event.step, event.value) for event in events(tmp_path).Scalars("loss")] == [(3, 0.5)]


def test_a_writer_of_yours_is_left_open(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    from laconic_gnn.trackers.tensorboard import TensorBoardTracker
    from tensorboardX import SummaryWriter

    writer = SummaryWriter(str(tmp_path))
    with TensorBoardTracker(writer=writer) as tracker:
        tracker({"round": 1, "loss": 2.0})
    writer.add_scalar("more", 1.0, 2)
    writer.close()
    assert {"loss", "more"} <= set(events(tmp_path).Tags()["scalars"])
    with pytest.raises(ValueError, match="a folder to write into, or a writer"):
        TensorBoardTracker()


@pytest.mark.parametrize(
    ("library", "module", "name", "words"),
    [
        ("mlflow", "mlflow", "MlflowTracker", []),
        ("wandb", "wandb", "WandbTracker", []),
        ("tensorboardX", "tensorboard", "TensorBoardTracker", ["runs"]),
    ],
)
def test_without_a_library_its_tracker_says_what_to_install(
    library: str, module: str, name: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    monkeypatch.setitem(sys.modules, library, None)
    tracker = getattr(importlib.import_module(f"laconic_gnn.trackers.{module}"), name)
    with pytest.raises(ImportError, match=f"pip install {library}"):
        tracker(*words)
